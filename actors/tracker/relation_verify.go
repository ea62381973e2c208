package tracker

import (
	"encoding/binary"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// relationRows are the plain rows that say which issues are blocked.
var relationRows = []storage.RowSpec{
	{ID: blockedTable, Name: "open blockers", Check: checkBlockers},
	{ID: releaseTable, Name: "released issue", Check: checkRelease},
}

// checkBlockers checks the number of an issue's open blockers.
func checkBlockers(v *storage.View, fields, value []byte) error {
	if len(fields) != len(storage.ID{}) || len(value) != 8 {
		return fmt.Errorf("%w: open blockers of %d and %d bytes", storage.ErrFormat, len(fields), len(value))
	}
	n, err := openBlockers(v, issueOfKey(fields))
	if err == nil && (n == 0 || n != binary.BigEndian.Uint64(value)) {
		err = fmt.Errorf("says %d, there are %d", binary.BigEndian.Uint64(value), n)
	}
	return err
}

// openBlockers counts the open issues that block one.
func openBlockers(v *storage.View, issue storage.ID) (n uint64, err error) {
	view := View{View: *v}
	err = view.eachNeighbor(issue, edgeBlocks, inward, func(blocker storage.ID) (bool, error) {
		_, err := issues.Record(v, issueKey(blocker), func(rec storage.Record) error {
			if rec.Flags()&issueClosed == 0 {
				n++
			}
			return nil
		})
		return true, err
	})
	return n, err
}

// checkRelease checks that the timer will come to an issue that is not blocked any more.
func checkRelease(v *storage.View, fields, value []byte) error {
	if len(fields) != len(storage.ID{}) {
		return fmt.Errorf("%w: released issue of %d bytes", storage.ErrFormat, len(fields))
	}
	var held heldRelease
	if err := json.Unmarshal(value, &held); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrFormat, err)
	}
	set, err := v.Has(timerTable, timerKey(nil, timerRelease, ""))
	if err == nil && !set {
		err = fmt.Errorf("the timer that continues with it is not set")
	}
	return err
}

// checkRelations checks that the issues of every relation exist, that no issue has more
// than there may be, that blocked issues are counted, and that there are no rings.
func checkRelations(v *storage.View, report reporter) error {
	degree := map[storage.ID]int{}
	heads := map[edgeKind]map[storage.ID][]storage.ID{edgeBlocks: {}, edgeDuplicates: {}}
	err := relations.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := relations.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		e := row.Value.edge()
		for _, id := range [...]storage.ID{e.from, e.to} {
			degree[id]++
			there, err := v.Has(issueTable, issueKey(id))
			if err != nil {
				return false, err
			}
			if !there {
				report(relations.Name, pk, "its issue %s is not there", id)
			}
		}
		if e.from == e.to {
			report(relations.Name, pk, "is of an issue with itself")
		}
		if e.kind.ringless() {
			heads[e.kind][e.from] = append(heads[e.kind][e.from], e.to)
		}
		if e.kind != edgeBlocks {
			return true, nil
		}
		n, err := openBlockers(v, e.to)
		if err != nil || n == 0 {
			return err == nil, err
		}
		counted, err := v.Has(blockedTable, issueKey(e.to))
		if err == nil && !counted {
			report("open blockers", issueKey(e.to), "there is no row, though there are %d", n)
		}
		return true, err
	})
	if err != nil {
		return err
	}
	for id, n := range degree {
		if n > maxRelations {
			report(relations.Name, id[:], "issue %s has %d relations", id, n)
		}
	}
	for kind, next := range heads {
		if id, ring := ringAmong(next); ring {
			report(relations.Name, id[:], "issue %s is in a ring of %s", id, edgeForms[kind][0])
		}
	}
	return nil
}

// ringAmong returns an issue that is in a ring of edges, or behind one, if there is a
// ring. It takes away issues that no edge leads to until none is left.
func ringAmong(next map[storage.ID][]storage.ID) (storage.ID, bool) {
	into := map[storage.ID]int{}
	for _, ends := range next {
		for _, id := range ends {
			into[id]++
		}
	}
	var free []storage.ID
	for id := range next {
		if into[id] == 0 {
			free = append(free, id)
		}
	}
	for len(free) > 0 {
		id := free[len(free)-1]
		free = free[:len(free)-1]
		for _, end := range next[id] {
			if into[end]--; into[end] == 0 {
				delete(into, end)
				free = append(free, end)
			}
		}
	}
	for id := range into {
		return id, true
	}
	return storage.ID{}, false
}
