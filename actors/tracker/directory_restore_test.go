package tracker

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// take copies the rows of a shard of another service over those here.
func (w *testService) take(from *testService, shard storage.Shard) {
	w.Helper()
	batch := w.db.NewBatch()
	from.each(func(key, value []byte) {
		if in, _, _, _, err := storage.SplitKey(key); err == nil && in == shard {
			if err := batch.Set(bytes.Clone(key), bytes.Clone(value), nil); err != nil {
				w.Fatal(err)
			}
		}
	})
	if err := errors.Join(batch.Commit(pebble.NoSync), batch.Close()); err != nil {
		w.Fatal(err)
	}
}

func (w *testService) restored() RestoreReport {
	w.Helper()
	return w.agree(Restored)
}

// agree makes the directory agree with shards of other moments.
func (w *testService) agree(by func(*storage.Walk, int, func(*Op, any) error) (RestoreReport, error)) RestoreReport {
	w.Helper()
	l := w.bufferOf(storage.DirectoryID)
	report, err := by(storage.NewWalk(w.db), testShards, NewRestore(l, w.now, func() error {
		commitBuffer(w, w.db, l)
		return nil
	}))
	if err != nil {
		w.Fatal(err)
	}
	return report
}

// The workspaces' shards are copied first, then a workspace is made, one is deleted, one is
// half deleted, its slug goes to another one, and members come and go; the directory is copied
// last.
func TestRestored_ShardsOfEarlierMoments(t *testing.T) {
	t.Parallel()
	w, copied := newTestService(t), newTestService(t)
	home, gone, leaving, other := w.onboard("home"), w.onboard("gone"), w.onboard("leaving"), w.onboard("other")
	leaver, leaverToken := w.member(home, RoleMember, "write")
	for shard := storage.Shard(1); shard <= testShards; shard++ {
		copied.take(w, shard)
	}
	w.must(gone.Token.Secret, gone.Workspace.ID, DeleteWorkspace, &None{})
	w.cut = &crashPoint{step: 4, persisted: true} // the directory has decided it
	if _, err := w.ask(leaving.Token.Secret, leaving.Workspace.ID, DeleteWorkspace, &None{}); !errors.Is(err, errCut) {
		t.Fatalf("the deletion ended with %v", err)
	}
	late := decode[Onboarded](t, w.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "gone", Slug: "gone"}, "its key").Body)
	joins := other.Workspace.OwnerID
	for range 3 { // the directory knows versions that the copy has not reached
		w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(joins)})
		w.must(home.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{joins})
	}
	w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(joins)})
	w.must(home.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{leaver})
	copied.take(w, storage.DirectoryShard)
	copied.now = w.now

	if got, want := copied.restored(), (RestoreReport{Erased: 1, Forgotten: 1, Memberships: 2}); !reflect.DeepEqual(got, want) {
		t.Errorf("the report is %+v, want %+v", got, want)
	}
	copied.verify()
	if again := copied.restored(); again.Forgotten != 0 || again.Memberships != 0 {
		t.Errorf("a second run changes %+v", again)
	}
	copied.pass(time.Hour)
	copied.verify()
	for _, id := range []WorkspaceID{gone.Workspace.ID, leaving.Workspace.ID, late.Workspace.ID} {
		if n := copied.traces(id); n != 0 {
			t.Errorf("%d keys are left of %s", n, id)
		}
	}
	if !copied.sees(leaverToken, home.Workspace.ID) || copied.sees(other.Token.Secret, home.Workspace.ID) {
		t.Error("the directory does not have the members of the copy")
	}
	// The request that made the late workspace runs again under its key.
	again := decode[Onboarded](t, copied.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "gone", Slug: "gone"}, "its key").Body)
	if again.Workspace.ID == late.Workspace.ID {
		t.Error("the workspace was made under its old id")
	}
	// The directory hears of the members' next changes.
	copied.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(joins)})
	copied.must(home.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{leaver})
	if copied.sees(leaverToken, home.Workspace.ID) || !copied.sees(other.Token.Secret, home.Workspace.ID) {
		t.Error("the directory did not hear of the changes after the restore")
	}
	copied.pass(time.Hour)
	copied.verify()
}

// Of one moment nothing is changed.
func TestRestored_OneMoment(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	w.member(home, RoleMember, "write")
	if got := w.restored(); !reflect.DeepEqual(got, RestoreReport{}) {
		t.Errorf("%+v was changed", got)
	}
	w.verify()
}

// The directory that is left is older than the workspaces' shards: it has not heard of a new
// workspace, of one that took the slug of a deleted one, and of members.
func TestRecovered_KeepsWhatTheDirectoryHasNotHeardOf(t *testing.T) {
	t.Parallel()
	w, left := newTestService(t), newTestService(t)
	home, old := w.onboard("home"), w.onboard("old")
	left.take(w, storage.DirectoryShard)
	late := w.onboard("late")
	_, memberToken := w.member(late, RoleMember, "write")
	w.must(late.Token.Secret, late.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(home.Workspace.OwnerID)})
	w.must(old.Token.Secret, old.Workspace.ID, DeleteWorkspace, &None{})
	w.pass(time.Hour)
	again := w.onboard("old")
	for shard := storage.Shard(1); shard <= testShards; shard++ {
		left.take(w, shard)
	}
	left.now = w.now

	report := left.agree(Recovered)
	if report.Forgotten != 1 || report.Erased != 0 || len(report.Kept) != 2 {
		t.Errorf("the report is %+v", report)
	}
	left.verify()
	left.pass(time.Hour)
	left.verify()
	for _, token := range []string{late.Token.Secret, memberToken, home.Token.Secret} {
		if !left.sees(token, late.Workspace.ID) {
			t.Error("a member doesn't see the workspace that the directory had not heard of")
		}
	}
	if left.traces(old.Workspace.ID) != 0 || !left.sees(again.Token.Secret, again.Workspace.ID) {
		t.Error("the workspace with the slug of a deleted one is not there, or the deleted one is")
	}
}

// forbids reports whether shard 1 has the read-only mode of the service: the flows of these tests
// copy it there only.
func (w *testService) forbids() bool {
	w.Helper()
	v := w.view(storage.ServiceID(1))
	row, err := readOnlyRows.Get(&v, nil)
	if err != nil {
		w.Fatal(err)
	}
	return row != nil && row.Value.Reason != ""
}

// The directory that is left has not heard of the latest read-only mode of the service, or of its end. The
// shards get the older decision, which counts, and later ones.
func TestRecovered_ReadOnlyAsTheDirectoryHasIt(t *testing.T) {
	t.Parallel()
	begin := func(w *testService) { w.must("root", "", PutReadOnly, &ReadOnlyIn{Reason: "maintenance"}) }
	end := func(w *testService) { w.must("root", "", DeleteReadOnly, &None{}) }
	for what, c := range map[string]struct {
		before, after []func(w *testService) // the directory was left
		forbids       bool
	}{
		"a mode began":             {nil, []func(*testService){begin}, false},
		"a mode began and ended":   {nil, []func(*testService){begin, end}, false},
		"a mode ended":             {[]func(*testService){begin}, []func(*testService){end}, true},
		"a second mode began":      {[]func(*testService){begin, end}, []func(*testService){begin}, false},
		"a mode goes on":           {[]func(*testService){begin}, nil, true},
		"another mode is under it": {[]func(*testService){begin}, []func(*testService){end, begin}, true},
		"there was never a mode":   {nil, nil, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w, left := newTestService(t), newTestService(t)
			w.onboard("home")
			for _, do := range c.before {
				do(w)
			}
			left.take(w, storage.DirectoryShard)
			for _, do := range c.after {
				do(w)
			}
			for shard := storage.Shard(1); shard <= testShards; shard++ {
				left.take(w, shard)
			}
			left.now = w.now
			left.agree(Recovered)
			left.verify()
			left.pass(time.Hour)
			agrees := func(when string, forbids bool) {
				t.Helper()
				says := decode[ReadOnlyOut](t, left.must("root", "", GetReadOnly, &None{}).Body).ReadOnly != nil
				if says != forbids || left.forbids() != forbids {
					t.Errorf("%s the directory says %t, and the shard %t, not %t", when, says, left.forbids(), forbids)
				}
			}
			agrees("after the recovery", c.forbids)
			begin(left)
			agrees("after a new mode", true)
			end(left)
			agrees("after its end", false)
		})
	}
}
