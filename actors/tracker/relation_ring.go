package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// maxRingLooks limits the relations that are looked at to find out whether a new one
// closes a ring.
const maxRingLooks = 20_000

// RingDetails are the details of the CONFLICT for a relation that would close a ring: the
// identifiers of the ring's issues, in its order, as far as the caller may see them.
type RingDetails struct {
	Path []string `json:"path"`
}

// ringSide is the part of a search for a ring that starts at one end of the new edge.
type ringSide struct {
	along direction
	queue []storage.ID
	// came has the issues that were found; each one's value is the issue it was found
	// from.
	came  map[storage.ID]storage.ID
	looks int
}

func newRingSide(start storage.ID, along direction) *ringSide {
	return &ringSide{along: along, queue: []storage.ID{start}, came: map[storage.ID]storage.ID{start: {}}}
}

// ringOf returns the issues of the ring that a new edge would close, from the edge's
// beginning on; nil if it closes none. It searches from both ends, always on the side
// where it has looked at less, and ends as soon as one side has nothing left. So a new
// edge costs little as long as one of its ends has few issues before it, or behind it.
func (v *View) ringOf(e edge) ([]storage.ID, error) {
	ring, _, err := v.searchRing(e, maxRingLooks)
	return ring, err
}

// searchRing is ringOf with a limit of its own, and returns how many relations it has
// looked at.
func (v *View) searchRing(e edge, most int) (ring []storage.ID, looks int, err error) {
	ahead, behind := newRingSide(e.to, outward), newRingSide(e.from, inward)
	for len(ahead.queue) > 0 && len(behind.queue) > 0 {
		side, other := ahead, behind
		if behind.looks < ahead.looks {
			side, other = behind, ahead
		}
		at := side.queue[0]
		side.queue = side.queue[1:]
		var met storage.ID
		err := v.eachNeighbor(at, e.kind, side.along, func(next storage.ID) (bool, error) {
			if side.looks++; ahead.looks+behind.looks > most {
				return false, Conflict(fmt.Sprintf("The two issues have more than %d relations before and behind them, too many to look for a ring.", most),
					"Remove relations that are not needed any more.")
			}
			if _, known := side.came[next]; known {
				return true, nil
			}
			side.came[next] = at
			if _, found := other.came[next]; found {
				met = next
				return false, nil
			}
			side.queue = append(side.queue, next)
			return true, nil
		})
		if err != nil {
			return nil, 0, err
		}
		if met != (storage.ID{}) {
			return ringThrough(e, met, ahead, behind), ahead.looks + behind.looks, nil
		}
	}
	return nil, ahead.looks + behind.looks, nil
}

// ringThrough puts a ring together from the issue at which the two sides met.
func ringThrough(e edge, met storage.ID, ahead, behind *ringSide) []storage.ID {
	ring := []storage.ID{}
	for at := met; at != (storage.ID{}); at = ahead.came[at] {
		ring = append(ring, at)
	}
	ring = append(ring, e.from)
	slices.Reverse(ring) // the edge's beginning, its end, and so on up to met
	for at := behind.came[met]; at != (storage.ID{}) && at != e.from; at = behind.came[at] {
		ring = append(ring, at)
	}
	if met == e.from {
		ring = ring[:len(ring)-1]
	}
	return ring
}

// ringConflict returns the error for an edge that would close a ring.
func (v *View) ringConflict(e edge, ring []storage.ID) error {
	path := make([]string, 0, len(ring))
	for _, id := range ring {
		brief, err := v.relatedIssue(id)
		if err != nil {
			return err
		}
		if brief != nil && brief.Identifier != nil {
			path = append(path, *brief.Identifier)
		}
	}
	return &Error{
		Code: CodeConflict, Message: e.kind.ringFault(), Hint: "Nothing was changed. Remove one of the relations between the issues in details.path first.",
		Details: RingDetails{path},
	}
}

// ringFault is the message for an edge of the kind that would close a ring.
func (k edgeKind) ringFault() string {
	if k == edgeDuplicates {
		return "The issue would be a duplicate of itself, by way of the issues that duplicate it."
	}
	return "The issue would block itself, by way of the issues that it blocks."
}
