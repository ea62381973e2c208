package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// timerMergeSegments is set while segments are to be merged.
const timerMergeSegments = "search.segments"

// mergeSegmentsOp merges segments while there are too many of about a size. It reads and
// makes a part of the new segment at a time, on the timer's goroutine, and the
// workspace's own writes it. The segments that are merged count until the last part.
var mergeSegmentsOp = NewWorkflow[TimerIn, None]("MergeSegments", "Merge segments of the search index", Needs{}, func(f Flow, _ *TimerIn) (Reply, error) {
	for {
		begin := beginSegmentIn{merge: true}
		if err := indexStep(f, beginSegmentOp, &begin); err != nil {
			return Reply{}, err
		}
		if len(begin.of) == 0 {
			return Reply{Outcome: NoContent}, settleReplaced(f)
		}
		if err := mergeOnce(f, &begin); err != nil {
			return Reply{}, err
		}
	}
}, LongRunning)

func mergeOnce(f Flow, begin *beginSegmentIn) error {
	in := mergePart{merge: searchIndex.Merge(begin.number, begin.of)}
	var last []storage.SegmentRow
	for !in.merge.Done() {
		if err := indexStep(f, mergePartOp, &in); err != nil {
			return err
		}
		var err error
		if last, err = writeSegment(f, begin.number, true, append(last, in.rows...)); err != nil {
			return err
		}
	}
	err := indexStep(f, completeMergeOp, &completeMergeIn{merge: in.merge, number: begin.number, settled: begin.settled, rows: last})
	return err
}

// mergePart is the next part of a merge.
type mergePart struct {
	merge *storage.SegmentMerge
	begun bool
	rows  []storage.SegmentRow // the answer
}

var mergePartOp = NewQuery[mergePart, None]("MergePart", "Make a part of a merged segment", Needs{}, func(v *View, in *mergePart) (_ Reply, err error) {
	v.RecallSegments(storage.SegmentMoment{}) // it reads all rows, and they are of no use afterwards
	if !in.begun {
		if err := v.beginMerge(in.merge); err != nil {
			return Reply{}, fmt.Errorf("begin a merge: %w", err)
		}
		in.begun = true
	}
	if in.rows, err = in.merge.Step(v, segmentChunk); err != nil {
		return Reply{}, fmt.Errorf("merge segments: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}, FromSnapshot)

func (v *View) beginMerge(merge *storage.SegmentMerge) error {
	ages := map[storage.Doc]uint32{}
	err := v.Rows(searchReplaced, nil, nil, func(fields, value []byte) (bool, error) {
		doc, age, err := parseReplaced(fields, value)
		ages[doc] = age
		return true, err
	})
	if err != nil {
		return err
	}
	return merge.Begin(v, func(doc storage.Doc) uint32 { return ages[doc] })
}

// completeMergeIn is the last part of a merge.
type completeMergeIn struct {
	merge   *storage.SegmentMerge
	number  uint32
	settled uint32
	rows    []storage.SegmentRow
}

var completeMergeOp = NewCommand[completeMergeIn, None]("CompleteMerge", "Put a merged segment into the search index", Needs{}, func(tx *Tx, in *completeMergeIn) (Reply, error) {
	m, err := tx.manifest()
	if err != nil {
		return Reply{}, err
	}
	if err := tx.recent().load(tx); err != nil {
		return Reply{}, err
	}
	of := in.merge.Numbers()
	if m.Merging != in.number || !m.Replace(in.merge.Segment(), of) {
		return Reply{}, errGivenUp
	}
	m.Merging, m.Settled = 0, max(m.Settled, in.settled)
	if err := tx.writeRows(in.number, in.rows); err != nil {
		return Reply{}, err
	}
	for _, n := range of {
		if err := tx.dropSegment(n); err != nil {
			return Reply{}, err
		}
	}
	if in.merge.Segment().Docs == 0 {
		if err := tx.dropSegment(in.number); err != nil {
			return Reply{}, err
		}
	}
	tx.recent().mergedSegments(m)
	return Reply{Outcome: NoContent}, tx.setManifest(&m)
})

// settledMany is how many rows of searchReplaced one command removes.
const settledMany = 2000

// settledIn names rows of searchReplaced that are of no use any longer.
type settledIn struct {
	through uint32 // the age up to which they are settled
	docs    []storage.Doc
	behind  storage.Doc // the issue after which to continue; 0: from the newest
	left    uint64      // rows that stay
	noted   uint64      // the manifest's number of rows before they were gone through
	done    bool
}

// settleReplaced removes the rows of searchReplaced that a merge has made useless, and
// with the last of them the timer.
func settleReplaced(f Flow) error {
	var in settledIn
	for {
		if err := indexStep(f, findSettledOp, &in); err != nil {
			return err
		}
		if err := indexStep(f, removeSettledOp, &in); err != nil || in.done {
			return err
		}
	}
}

var findSettledOp = NewQuery[settledIn, None]("FindSettled", "Find what a merge has made useless", Needs{}, func(v *View, in *settledIn) (Reply, error) {
	m, err := v.manifest()
	if err != nil {
		return Reply{}, err
	}
	in.through, in.docs, in.done = m.Settled, in.docs[:0], true
	if in.behind == 0 {
		in.noted = m.Replaced
	}
	if m.Settled == 0 {
		in.left = m.Replaced
		return Reply{Outcome: NoContent}, nil
	}
	var from storage.Key
	if in.behind > 0 {
		from = replacedKey(nil, in.behind-1)
	}
	err = v.Rows(searchReplaced, nil, from, func(fields, value []byte) (bool, error) {
		doc, age, err := parseReplaced(fields, value)
		switch {
		case err != nil:
			return false, err
		case len(in.docs) == settledMany:
			in.done = false
			return false, nil
		case age <= m.Settled:
			in.docs = append(in.docs, doc)
		default:
			in.left++
		}
		in.behind = doc
		return true, nil
	})
	return Reply{Outcome: NoContent}, err
}, FromSnapshot)

var removeSettledOp = NewCommand[settledIn, None]("RemoveSettled", "Remove what a merge has made useless", Needs{}, func(tx *Tx, in *settledIn) (Reply, error) {
	m, err := tx.manifest()
	if err != nil {
		return Reply{}, err
	}
	for _, doc := range in.docs {
		// It may have been replaced once more since it was found.
		value, err := tx.Value(searchReplaced, replacedKey(nil, doc), nil)
		if err != nil {
			return Reply{}, err
		}
		if value == nil {
			continue
		}
		if _, age, err := parseReplaced(replacedKey(nil, doc), value); err != nil || age > in.through {
			in.left++
			continue
		}
		if err := tx.Writer().DeleteValue(searchReplaced, replacedKey(nil, doc)); err != nil {
			return Reply{}, err
		}
	}
	if !in.done {
		return Reply{Outcome: NoContent}, nil
	}
	// Segments that were completed meanwhile have added rows. Some may be counted twice: that is of no
	// harm, but with none counted searches would not look for any.
	m.Settled, m.Replaced = 0, in.left+max(m.Replaced, in.noted)-in.noted
	if err := tx.setManifest(&m); err != nil {
		return Reply{}, err
	}
	from, to := m.ToMerge()
	return Reply{Outcome: NoContent}, tx.endSweep(mergeSegments, from < to, time.Time{})
})
