package tracker

import (
	"errors"
	"time"

	"switchyard/storage"
)

// fixtureFlow runs the steps of a workflow in a world, as the engine does.
type fixtureFlow struct {
	w       *issueFixture
	request Request
	// before is called in front of each step, which fails with its error.
	before func(op *Op) error
}

func (f *fixtureFlow) Request() *Request       { return &f.request }
func (f *fixtureFlow) Now() time.Time          { return f.w.now }
func (*fixtureFlow) NewID() storage.ID         { panic("not needed") }
func (*fixtureFlow) Secret([]byte)             { panic("not needed") }
func (*fixtureFlow) Inbound() *InboundSettings { panic("not needed") }
func (*fixtureFlow) Shards() int               { panic("not needed") }

func (*fixtureFlow) CommandAs(Permit, Caller, storage.ID, *Op, any) (Reply, error) {
	panic("not needed")
}

func (f *fixtureFlow) Query(_ storage.ID, op *Op, in any) (Reply, error) { return f.step(op, in) }

func (f *fixtureFlow) Command(permit Permit, _ storage.ID, op *Op, in any) (Reply, error) {
	if permit.basis != basisService {
		return Reply{}, errNoRights(op.Name)
	}
	return f.step(op, in)
}

func (f *fixtureFlow) step(op *Op, in any) (Reply, error) {
	if f.before != nil {
		if err := f.before(op); err != nil {
			return Reply{}, err
		}
	}
	if op.Kind == Query {
		return f.w.ask(&System, op, in)
	}
	reply, _, err := f.w.try(&System, op, in)
	return reply, err
}

// flow runs a workflow of a timer; before is called in front of each step.
func (w *issueFixture) flow(op *Op, before func(op *Op) error) error {
	f := &fixtureFlow{w: w, request: *w.request(&System), before: before}
	_, err := op.RunFlow(f, &TimerIn{})
	return err
}

// due reports whether a timer is set.
func (w *issueFixture) due(kind string) bool {
	w.Helper()
	view := storage.NewView(w.db, 1, w.workspace)
	is, err := view.Has(timerTable, timerKey(nil, kind, ""))
	if err != nil {
		w.Fatal(err)
	}
	return is
}

// indexAll indexes everything that waits, and merges what is to be merged.
func (w *issueFixture) indexAll() {
	w.Helper()
	for w.due(timerIndexSearch) {
		if err := w.flow(indexSearchOp, nil); err != nil {
			w.Fatal(err)
		}
	}
	for w.due(timerMergeSegments) {
		if err := w.flow(mergeSegmentsOp, nil); err != nil {
			w.Fatal(err)
		}
	}
}

// indexAnew drops the index, as a store has none that an earlier version wrote, and
// indexes everything.
func (w *issueFixture) indexAnew() {
	w.Helper()
	w.indexAll()
	w.run(&System, NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		err := errors.Join(tx.SetTimer(timerIndexSearch, "", tx.now))
		for _, table := range []storage.TableID{searchManifest, searchReplaced, searchSegments} {
			err = errors.Join(err, tx.Writer().DeleteRows(table, nil))
		}
		return Reply{}, err
	}), &None{})
	w.buffer.Discard()
	w.segments = storage.NewSegmentCache(1<<20, SegmentTable) // the store would drop what it kept
	w.indexAll()
}

// manifest reads the manifest of the search index.
func (w *issueFixture) manifest() storage.Manifest {
	w.Helper()
	v := View{View: storage.NewView(w.db, 1, w.workspace)}
	m, err := v.manifest()
	if err != nil {
		w.Fatal(err)
	}
	return m
}
