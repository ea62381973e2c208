package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"switchyard/storage"
)

// timerIndexSearch is set while there are issues to be indexed.
const timerIndexSearch = "search.merge"

// segmentChunk bounds the bytes of a segment that one command writes, so that no other
// command waits long for it.
const segmentChunk = 256 << 10

// errGivenUp ends the making of a segment that is of no use any longer: the workspace
// has been indexed by another run of the timer, as after a change of owner.
var errGivenUp = errors.New("the segment was given up: another was made meanwhile")

// indexSearchOp makes a segment of the issues that the index lacks. It is made on the
// timer's goroutine; the workspace's own only writes it, a part at a time. The last part
// comes with the manifest that makes it count.
var indexSearchOp = NewWorkflow[TimerIn, None]("IndexSearch", "Index changed issues for searches", Needs{}, func(f Flow, _ *TimerIn) (Reply, error) {
	var b segmentBuild
	if err := indexStep(f, BuildSegment, &b); err != nil {
		return Reply{}, err
	}
	number := uint32(0)
	if b.bytes > segmentChunk {
		begin := beginSegmentIn{}
		if err := indexStep(f, beginSegmentOp, &begin); err != nil {
			return Reply{}, err
		}
		number = begin.number
		var err error
		if b.rows, err = writeSegment(f, number, false, b.rows); err != nil {
			return Reply{}, err
		}
	}
	err := indexStep(f, completeSegmentOp, &completeSegmentIn{number: number, build: &b})
	return Reply{Outcome: NoContent}, err
}, LongRunning)

// indexStep runs a step of a workflow of the index. Its input holds what it answers.
func indexStep(f Flow, op *Op, in any) error {
	workspace := f.Request().Workspace
	if op.Kind == Query {
		_, err := f.Query(workspace, op, in)
		return err
	}
	permit, err := permitOf(f)
	if err == nil {
		_, err = f.Command(permit, workspace, op, in)
	}
	return err
}

// writeSegment writes the rows of a segment but the last ones, which it returns.
func writeSegment(f Flow, number uint32, merge bool, rows []storage.SegmentRow) (last []storage.SegmentRow, err error) {
	for len(rows) > 0 {
		n, size := 0, 0
		for n < len(rows) && size < segmentChunk {
			size += len(rows[n].Fields) + len(rows[n].Value)
			n++
		}
		if n == len(rows) {
			return rows, nil
		}
		if err := indexStep(f, writeSegmentOp, &writeSegmentIn{number: number, merge: merge, rows: rows[:n]}); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	return nil, nil
}

// BuildSegment makes a segment of the oldest issues of the tail. Nothing is written.
var BuildSegment = NewQuery[segmentBuild, None]("BuildSegment", "Make a segment of changed issues", Needs{}, func(v *View, b *segmentBuild) (Reply, error) {
	if err := b.build(v); err != nil {
		return Reply{}, fmt.Errorf("build a segment: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}, FromSnapshot)

// beginSegmentIn asks for the number of a segment that takes several batches.
type beginSegmentIn struct {
	merge bool
	// The answer: the number and, of a merge, what is merged. Rows of searchReplaced up
	// to the age of settled are of no use when it is done.
	number  uint32
	of      []storage.Segment
	settled uint32
}

var beginSegmentOp = NewCommand[beginSegmentIn, None]("BeginSegment", "Begin to write a segment", Needs{}, func(tx *Tx, in *beginSegmentIn) (Reply, error) {
	m, err := tx.manifest()
	if err != nil {
		return Reply{}, err
	}
	begun := m.Begun(in.merge)
	if err := tx.dropSegment(*begun); err != nil { // an earlier owner of the workspace left it
		return Reply{}, err
	}
	*begun = 0
	if in.merge {
		from, to := m.ToMerge()
		if in.of = slices.Clone(m.Segments[from:to]); len(in.of) == 0 {
			return Reply{Outcome: NoContent}, tx.setManifest(&m)
		}
		if from == 0 && to == len(m.Segments) {
			in.settled = m.Next
			if m.Flushing != 0 {
				in.settled = m.Flushing - 1 // what that one replaces is not known yet
			}
		}
	}
	m.Next++
	*begun, in.number = m.Next, m.Next
	return Reply{Outcome: NoContent}, tx.setManifest(&m)
})

func (tx *Tx) setManifest(m *storage.Manifest) error {
	if err := tx.Writer().SetValue(searchManifest, nil, m.Encode(nil)); err != nil {
		return fmt.Errorf("write the manifest of the search index: %w", err)
	}
	return nil
}

// dropSegment deletes all rows of a segment; none for 0.
func (tx *Tx) dropSegment(number uint32) error {
	if number == 0 {
		return nil
	}
	return tx.Writer().DeleteRows(searchSegments, storage.SegmentPrefix(number))
}

// writeSegmentIn is a part of a segment that was begun.
type writeSegmentIn struct {
	number uint32
	merge  bool
	rows   []storage.SegmentRow
}

var writeSegmentOp = NewCommand[writeSegmentIn, None]("WriteSegment", "Write a part of a segment", Needs{}, func(tx *Tx, in *writeSegmentIn) (Reply, error) {
	m, err := tx.manifest()
	if err != nil {
		return Reply{}, err
	}
	if *m.Begun(in.merge) != in.number {
		return Reply{}, errGivenUp
	}
	return Reply{Outcome: NoContent}, tx.writeRows(in.number, in.rows)
})

// writeRows writes rows of a segment under its number.
func (tx *Tx) writeRows(number uint32, rows []storage.SegmentRow) error {
	for _, row := range rows {
		binary.BigEndian.PutUint32(row.Fields, number)
		if err := tx.Writer().SetValue(searchSegments, row.Fields, row.Value); err != nil {
			return fmt.Errorf("write a segment: %w", err)
		}
	}
	return nil
}

// completeSegmentIn is the rest of a segment made of changed issues; number is 0 for
// one that is written as a whole.
type completeSegmentIn struct {
	number uint32
	build  *segmentBuild
}

var completeSegmentOp = NewCommand[completeSegmentIn, None]("CompleteSegment", "Put a segment into the search index", Needs{}, func(tx *Tx, in *completeSegmentIn) (Reply, error) {
	if err := tx.completeSegment(in.number, in.build); err != nil {
		return Reply{}, fmt.Errorf("put a segment into the search index: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
})

func (tx *Tx) completeSegment(number uint32, b *segmentBuild) error {
	m, err := tx.manifest()
	if err == nil {
		err = tx.recent().load(tx)
	}
	if err != nil {
		return err
	}
	if m.Through != b.from || number != 0 && number != m.Flushing {
		return errGivenUp
	}
	if m.Next == 0 {
		if err := tx.dropEarlierIndex(); err != nil {
			return err
		}
	}
	if number == 0 {
		if err := tx.dropSegment(m.Flushing); err != nil { // an earlier owner of the workspace left it
			return err
		}
		m.Next++
		number = m.Next
	}
	m.Flushing = 0
	if err := tx.writeRows(number, b.rows); err != nil {
		return err
	}
	for _, c := range b.changed {
		doc := storage.DocOf(c.id)
		switch change := tx.recent().change(doc); change {
		case 0:
			return errGivenUp
		case c.change:
			if err := tx.Writer().DeleteValue(searchChanged, c.id[:]); err != nil {
				return err
			}
			tx.recent().unchanged(doc)
		} // else it has changed once more, and its row stays
		if doc > b.from {
			continue
		}
		m.Replaced++
		if err := tx.Writer().SetValue(searchReplaced, replacedKey(nil, doc), binary.BigEndian.AppendUint32(nil, number)); err != nil {
			return err
		}
	}
	m.Through = b.through
	if s := b.segment; s.Docs > 0 {
		s.Number, s.Age = number, number
		m.Segments = append(m.Segments, s)
	}
	if err := tx.setManifest(&m); err != nil {
		return err
	}
	if from, to := m.ToMerge(); from < to {
		at, err := tx.atOnce()
		if err != nil {
			return err
		}
		if err := tx.setSweep(mergeSegments, at); err != nil {
			return err
		}
	}
	left, long := tx.recent().indexed(m)
	switch {
	case b.more || left >= indexMany || tx.recent().text >= tx.buffer.indexText:
		return tx.SetTimerAtOnce(timerIndexSearch, "")
	case left >= tx.buffer.indexFew || long:
		return tx.SetTimer(timerIndexSearch, "", tx.now.Add(indexSoon))
	}
	return tx.endSweep(indexSearch, false, time.Time{})
}

// dropEarlierIndex removes the rows of the index that a workspace has from an earlier
// version, before its first segment counts.
func (tx *Tx) dropEarlierIndex() error {
	for table := earlierSearchFirst; table <= earlierSearchLast; table++ {
		has, err := tx.Has(table, nil)
		if err == nil && has {
			err = tx.Writer().DeleteRows(table, nil)
		}
		if err != nil {
			return fmt.Errorf("remove an earlier index: %w", err)
		}
	}
	return nil
}
