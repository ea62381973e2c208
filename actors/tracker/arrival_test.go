package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"switchyard/storage"
)

// departing is a workspace with people, content and timers, and the blocks of its rows.
type departing struct {
	from   *testService
	home   Onboarded
	member string
	blocks [][]byte
}

func departs(t *testing.T) *departing {
	t.Helper()
	w := newTestService(t)
	w.random = rand.NewChaCha8([32]byte{2}) // ids other than those of the service where it arrives
	d := &departing{from: w, home: w.onboard("leaving")}
	_, d.member = w.member(d.home, RoleMember, "write")
	for range 20 {
		w.issue(d.home.Token.Secret, d.home.Workspace.ID, d.home.Team.ID)
	}
	d.blocks = w.blocks(d.home.Workspace.ID, 2000)
	return d
}

// blocks returns the rows of a workspace in blocks.
func (w *testService) blocks(id WorkspaceID, size int) (blocks [][]byte) {
	w.Helper()
	raw := id.raw()
	c := storage.NewRowCopy(w.db.NewSnapshot(), storage.ShardOf(raw, testShards), raw, StaysBehind, nil)
	for {
		block, err := c.Next(nil, size)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			w.Fatal(err)
		}
		blocks = append(blocks, block)
	}
	if err := c.Close(); err != nil {
		w.Fatal(err)
	}
	return blocks
}

// arrive has a service take all rows, and returns the id of the arrival.
func (d *departing) arrive(w *testService) string {
	w.Helper()
	id := d.home.Workspace.ID
	at := decode[ArrivalAnswer](w, w.must("root", id, BeginArrival, &NewArrivalIn{From: "elsewhere"}).Body).Arrival
	for n, block := range d.blocks {
		in := &TakeRowsIn{ID: at.ID, N: Some(int64(n)), Body: block}
		at = decode[ArrivalAnswer](w, w.must("root", id, TakeRows, in).Body).Arrival
		if again := w.must("root", id, TakeRows, in); !bytes.Contains(again.Body, fmt.Appendf(nil, `"next":%d`, n+1)) {
			w.Errorf("the repeat of block %d is answered %s", n, again.Body)
		}
	}
	if at.State != ArrivalRunning || at.Next != int64(len(d.blocks)) {
		w.Fatalf("the arrival is %+v", at)
	}
	return at.ID
}

// A workspace that arrives is not there before its arrival ends, and whole afterwards. An end that
// is cut at any step is made good by a repeat.
func TestArrival_EndCutAtEveryStep(t *testing.T) {
	t.Parallel()
	d := departs(t)
	for step := range 6 {
		for _, persisted := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d/persisted %t", step, persisted), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				here, id := w.onboard("here"), d.home.Workspace.ID
				end := &EndArrivalIn{ID: d.arrive(w)}
				_, err := w.ask(d.home.Token.Secret, id, WorkspaceByID, &None{})
				wantCode(t, err, CodeUnauthorized)
				w.verify()
				if w.cut = nil; step > 0 {
					w.cut = &crashPoint{step: step, persisted: persisted}
				}
				_, err = w.ask("root", id, EndArrival, end)
				if cut := step > 0 && step <= 5; cut && err != nil && !errors.Is(err, errCut) || !cut && err != nil {
					t.Fatalf("the end is answered %v", err)
				}
				w.cut = nil
				w.restart()
				w.verify()
				if _, err := w.ask("root", id, EndArrival, end); err != nil {
					// The slug is reserved by the end that was cut, until its timer.
					wantCode(t, err, CodeUnavailable)
					w.pass(2 * resolveAfter)
					w.must("root", id, EndArrival, end)
				}
				w.pass(2 * time.Minute)
				w.verify()
				if !w.sees(d.member, id) || !w.sees(d.home.Token.Secret, id) || w.sees(here.Token.Secret, id) {
					t.Error("the members are not those of the workspace")
				}
				was := d.from.exported(id, &ExportIn{}, 1000)
				if got := w.exported(id, &ExportIn{}, 1000); !bytes.Equal(got, was) {
					t.Errorf("the export is %s\nwas %s", got, was)
				}
				all, _ := w.stores(id)
				if all == 0 {
					t.Error("the rows are not counted")
				}
				w.issue(d.home.Token.Secret, id, d.home.Team.ID)
				w.verify()
				w.must(d.home.Token.Secret, id, DeleteWorkspace, &None{})
				w.pass(2 * time.Minute)
				w.verify()
				if n := w.traces(id); n != 0 {
					t.Errorf("%d rows are left of the deleted workspace", n)
				}
			})
		}
	}
}

// Two requests that end the same arrival at once, as a repeat after a lost answer and the request
// before it, don't refuse each other for good: a client takes such a refusal for a workspace that has
// not begun.
func TestArrival_EndsAtOnce(t *testing.T) {
	t.Parallel()
	d := departs(t)
	for step := 1; step <= 7; step++ {
		for _, cut := range []int{0, 3, 4, 5} { // the step before which the other request's node dies
			t.Run(fmt.Sprintf("before step %d, cut at %d", step, cut), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				id := d.home.Workspace.ID
				end := &EndArrivalIn{ID: d.arrive(w)}
				var other error
				w.between = func(n int) {
					if n != step {
						return
					}
					w.between = nil
					if cut > 0 {
						w.cut = &crashPoint{step: cut}
					}
					_, other = w.ask("root", id, EndArrival, end)
					w.cut = nil
				}
				_, err := w.ask("root", id, EndArrival, end)
				w.between = nil
				for _, err := range []error{err, other} {
					if err != nil && !errors.Is(err, errCut) {
						wantCode(t, err, CodeUnavailable)
					}
				}
				w.pass(2 * resolveAfter)
				w.must("root", id, EndArrival, end)
				w.verify()
				if !w.sees(d.member, id) || !w.sees(d.home.Token.Secret, id) {
					t.Error("the members don't see the workspace")
				}
			})
		}
	}
}

// An end that comes too late releases its own reservation of the slug, not the one that another end
// has made meanwhile: that workspace could begin without an entry in the directory.
func TestArrival_LateEndReleasesItsOwnReservation(t *testing.T) {
	t.Parallel()
	d := departs(t)
	w := newTestService(t)
	id := d.home.Workspace.ID
	end := &EndArrivalIn{ID: d.arrive(w)}
	w.between = func(n int) {
		switch n {
		case 4: // the slug is reserved
			w.pass(foundWithin + time.Second)
		case 5: // the workspace came too late
			w.pass(2 * resolveAfter)
			w.between = nil
			w.cut = &crashPoint{step: 4}
			if _, err := w.ask("root", id, EndArrival, end); !errors.Is(err, errCut) {
				t.Errorf("the other end is answered %v", err)
			}
			w.cut = nil
		}
	}
	_, err := w.ask("root", id, EndArrival, end)
	wantCode(t, err, CodeUnavailable)
	_, err = w.ask("root", id, EndArrival, end)
	wantCode(t, err, CodeUnavailable) // the other end's reservation is there
	_, err = w.ask("root", id, BeginArrival, &NewArrivalIn{From: "elsewhere"})
	wantCode(t, err, CodeUnavailable)
	w.pass(2 * resolveAfter)
	w.must("root", id, EndArrival, end)
	w.verify()
}

func TestArrival_Refusals(t *testing.T) {
	t.Parallel()
	d := departs(t)
	w := newTestService(t)
	here, id := w.onboard("here"), d.home.Workspace.ID
	refused := func(what string, code Code, of WorkspaceID, op *Op, in any) {
		t.Helper()
		before := w.fingerprint()
		_, err := w.ask("root", of, op, in)
		var told *Error
		if !errors.As(err, &told) || told.Code != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
		if w.fingerprint() != before {
			t.Errorf("%s: something was written", what)
		}
	}
	begin := &NewArrivalIn{From: "elsewhere"}
	refused("a workspace that is there", CodeConflict, here.Workspace.ID, BeginArrival, begin)
	refused("rows without an arrival", CodeNotFound, id, TakeRows, &TakeRowsIn{ID: "x", N: Some[int64](0), Body: d.blocks[0]})
	refused("an end without an arrival", CodeNotFound, id, EndArrival, &EndArrivalIn{ID: "x"})
	refused("no arrival to give up", CodeNotFound, id, AbandonArrival, &None{})
	refused("no arrival to give up by its id", CodeNotFound, id, AbandonArrivalByID, &AbandonArrivalByIDIn{ID: "x"})
	refused("no arrival to show", CodeNotFound, id, ShowArrival, &None{})
	if _, err := w.ask(here.Token.Secret, id, BeginArrival, begin); err == nil {
		t.Error("an admin of another workspace begins an arrival")
	}

	arrival := decode[ArrivalAnswer](w, w.must("root", id, BeginArrival, begin).Body).Arrival.ID
	set := func(key []byte, value string) []byte {
		return storage.AppendRow(nil, &storage.RowChange{Op: storage.RowSet, Key: key, Value: []byte(value)})
	}
	for what, block := range map[string][]byte{
		"no block":                        []byte("hello"),
		"a row of the directory":          set([]byte{byte(directoryTable), 1}, "{}"),
		"an entry of a shard-wide index":  set([]byte{byte(timerByDue), 1}, ""),
		"an unknown table":                set([]byte{255, 1}, ""),
		"the read-only mode":              set([]byte{byte(readOnlyTable)}, "{}"),
		"an arrival":                      set([]byte{byte(arrivalTable)}, "{}"),
		"another row of a workspace":      set([]byte{byte(workspaceTable), 1}, "{}"),
		"a deletion over several tables":  storage.AppendRow(nil, &storage.RowChange{Op: storage.RowDeleteRange, Key: []byte{byte(issueTable)}, Value: []byte{byte(issueTable) + 5}}),
		"a deletion to the end":           storage.AppendRow(nil, &storage.RowChange{Op: storage.RowDeleteRange, Key: []byte{byte(issueTable)}}),
		"the workspace's own row deleted": storage.AppendRow(nil, &storage.RowChange{Op: storage.RowDelete, Key: []byte{byte(workspaceTable)}}),
	} {
		refused(what, CodeBadRequest, id, TakeRows, &TakeRowsIn{ID: arrival, N: Some[int64](0), Body: block})
	}
	refused("a later block", CodeConflict, id, TakeRows, &TakeRowsIn{ID: arrival, N: Some[int64](1), Body: d.blocks[0]})
	refused("the rows of another arrival", CodeNotFound, id, TakeRows, &TakeRowsIn{ID: "x", N: Some[int64](0), Body: d.blocks[0]})
	refused("an end without the workspace's row", CodeConflict, id, EndArrival, &EndArrivalIn{ID: arrival})

	// Another beginning gives the first one up.
	w.must("root", id, TakeRows, &TakeRowsIn{ID: arrival, N: Some[int64](0), Body: d.blocks[0]})
	end := d.arrive(w)
	refused("the rows of the arrival before", CodeNotFound, id, TakeRows, &TakeRowsIn{ID: arrival, N: Some[int64](1), Body: d.blocks[0]})
	// Nor does the first one's program give up the second one.
	refused("the arrival before to give up", CodeNotFound, id, AbandonArrivalByID, &AbandonArrivalByIDIn{ID: arrival})
	w.onboard("leaving") // takes the slug
	refused("a slug that is taken", CodeConflict, id, EndArrival, &EndArrivalIn{ID: end})
	w.must("root", id, AbandonArrival, &None{})
	refused("no arrival any more", CodeNotFound, id, ShowArrival, &None{})
	w.must("root", id, AbandonArrivalByID, &AbandonArrivalByIDIn{ID: d.arrive(w)})
	refused("no arrival any more", CodeNotFound, id, ShowArrival, &None{})
	w.verify()
	if n := w.traces(id); n != 0 {
		t.Errorf("%d rows are left", n)
	}

	w = newTestService(t)
	end = d.arrive(w)
	w.must("root", id, EndArrival, &EndArrivalIn{ID: end})
	refused("a workspace that has arrived", CodeConflict, id, AbandonArrival, &None{})
	refused("a workspace that has arrived, by its arrival", CodeConflict, id, AbandonArrivalByID, &AbandonArrivalByIDIn{ID: end})
}

// An arrival that is given up while a request ends it does not begin, and one that has begun is not
// given up.
func TestArrival_AbandonedWhileItEnds(t *testing.T) {
	t.Parallel()
	d := departs(t)
	for step := 1; step <= 7; step++ {
		w := newTestService(t)
		id := d.home.Workspace.ID
		at := d.arrive(w)
		var abandoned error
		w.between = func(n int) {
			if n == step {
				w.between = nil
				_, abandoned = w.ask("root", id, AbandonArrivalByID, &AbandonArrivalByIDIn{ID: at})
			}
		}
		_, err := w.ask("root", id, EndArrival, &EndArrivalIn{ID: at})
		w.between = nil
		if abandoned == nil {
			wantCode(t, err, CodeNotFound)
		} else {
			wantCode(t, abandoned, CodeConflict)
		}
		w.pass(2 * resolveAfter)
		w.verify()
		if _, err := w.ask(d.home.Token.Secret, id, WorkspaceByID, &None{}); (err == nil) != (abandoned != nil) {
			t.Errorf("given up before step %d: %v, and the workspace: %v", step, abandoned, err)
		}
	}
}

// An arrival whose rows do not come any more leaves nothing after an hour.
func TestArrival_Idle(t *testing.T) {
	t.Parallel()
	d := departs(t)
	w := newTestService(t)
	id := d.home.Workspace.ID
	d.arrive(w)
	w.pass(arrivalIdle / 2)
	if w.traces(id) == 0 {
		t.Fatal("the arrival ended early")
	}
	w.pass(arrivalIdle)
	w.verify()
	if n := w.traces(id); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
