package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// traces counts the keys of a workspace: in its own range, its timers in the shard's,
// and its rows in the directory, but for the directory's answers and the audit of the
// cluster, which has its deletion.
func (w *testService) traces(id WorkspaceID) (n int) {
	w.Helper()
	raw := id.raw()
	inverted := storage.Key(nil).DescID(raw)
	w.each(func(key, value []byte) {
		_, workspace, table, fields, err := storage.SplitKey(key)
		kept := workspace == storage.DirectoryID && (table == idempotencyTable || table == auditTable)
		if err != nil || workspace == raw || !kept && (bytes.Contains(fields, raw[:]) || bytes.Contains(fields, inverted) || bytes.Contains(value, []byte(id))) {
			n++
		}
	})
	return n
}

func TestDeleteWorkspace_LeavesNothing(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	gone, stays := w.onboard("gone"), w.onboard("stays")
	w.member(gone, RoleMember, "write")
	w.must(stays.Token.Secret, stays.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(gone.Workspace.OwnerID)})
	w.must(gone.Token.Secret, gone.Workspace.ID, CreateTeam, &CreateTeamIn{Name: "x", Key: "X"}, "a key, for the timers")
	issue := w.issue(gone.Token.Secret, gone.Workspace.ID, gone.Team.ID)
	w.must(gone.Token.Secret, gone.Workspace.ID, DispatchIssue, &DispatchIssueIn{
		ID: string(issue.ID), Instructions: Some("go"), SessionOptions: SessionOptions{MaxDuration: Some(int64(5))},
	})
	lane := decode[ClaimedSessions](t, w.must(gone.Token.Secret, gone.Workspace.ID, ClaimSessions, &ClaimSessionsIn{}).Body).Sessions[0].LaneToken
	reply := w.must(gone.Token.Secret, gone.Workspace.ID, DeleteWorkspace, &None{})
	_, err := w.ask(lane, gone.Workspace.ID, IssueByID, &IssueByIDIn{ID: string(issue.ID)})
	wantCode(t, err, CodeUnauthorized)
	if string(reply.Body) != `{"deleted":true,"r2Objects":0}` {
		t.Errorf("answer %s", reply.Body)
	}
	if n := w.traces(gone.Workspace.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	_, err = w.ask(gone.Token.Secret, stays.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeUnauthorized) // Decision 13
	_, err = w.ask("root", gone.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeNotFound)
	w.onboard("gone") // the slug is free
	w.must(stays.Token.Secret, stays.Workspace.ID, WorkspaceByID, &None{})
	w.verify()
}

// The answer has the number of the workspace's attachments, also when it is repeated.
func TestDeleteWorkspace_CountsAttachments(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	var last Issue
	for range 3 {
		in := &CaptureIssueIn{URL: "https://example.com", Screenshot: shotOf(image(attachmentChunkLen+1), MediaPNG)}
		var faults Faults
		in.Validate(&faults)
		last = decode[Issue](w, w.must(home.Token.Secret, home.Workspace.ID, CaptureIssue, in).Body)
	}
	w.must(home.Token.Secret, home.Workspace.ID, DeleteIssue, &DeleteIssueIn{ID: string(last.ID)})
	for range 2 {
		if reply := w.must("root", home.Workspace.ID, DeleteWorkspace, &None{}, "k"); string(reply.Body) != `{"deleted":true,"r2Objects":2}` {
			t.Errorf("answer %s", reply.Body)
		}
	}
	if n := w.traces(home.Workspace.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	w.verify()
}

func TestDeleteWorkspace_Callers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, other := w.onboard("home"), w.onboard("other")
	_, member := w.member(home, RoleMember, "admin")
	for _, c := range []struct {
		credential string
		code       Code
	}{
		{member, CodeForbidden},
		{w.token(home, &CreateTokenIn{Permissions: words("write")}), CodeForbidden},
		{other.Token.Secret, CodeNotFound},
		{w.token(other, &CreateTokenIn{ActorType: ActorAgent, Permissions: words("admin")}), CodeNotFound},
	} {
		_, err := w.ask(c.credential, home.Workspace.ID, DeleteWorkspace, &None{}, "k")
		wantCode(t, err, c.code)
	}
	w.must(home.Token.Secret, home.Workspace.ID, WorkspaceByID, &None{})
	w.verify()
}

// A decided deletion that crashes at any step is completed by its timer, and a repeat
// has one answer.
func TestDeleteWorkspace_CutAtEveryStep(t *testing.T) {
	t.Parallel()
	for step := 1; step <= 6; step++ {
		for _, persisted := range []bool{false, true} {
			for _, repeat := range []bool{false, true} {
				t.Run(fmt.Sprintf("step %d/persisted %t/repeated %t", step, persisted, repeat), func(t *testing.T) {
					t.Parallel()
					cutDeletion(t, crashPoint{step: step, persisted: persisted}, repeat)
				})
			}
		}
	}
}

func cutDeletion(t *testing.T, at crashPoint, repeat bool) {
	w := newTestService(t)
	home := w.onboard("home")
	gone := decode[Workspace](w, w.must(home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "gone"}).Body)
	w.cut = &at
	if _, err := w.ask(home.Token.Secret, gone.ID, DeleteWorkspace, &None{}, "k"); !errors.Is(err, errCut) {
		t.Fatalf("cut: %v", err)
	}
	w.restart()
	w.verify()
	decided := at.step > 3 || at.step == 3 && at.persisted
	if repeat {
		reply := w.must(home.Token.Secret, gone.ID, DeleteWorkspace, &None{}, "k")
		if reply.Replayed != decided || string(reply.Body) != `{"deleted":true,"r2Objects":0}` {
			t.Errorf("repeat answered %s, replayed %t", reply.Body, reply.Replayed)
		}
		decided = true
	}
	w.pass(2 * time.Minute)
	w.verify()
	_, err := w.ask(home.Token.Secret, gone.ID, WorkspaceByID, &None{})
	if !decided {
		if err != nil {
			t.Errorf("not decided, and gone: %v", err)
		}
		return
	}
	wantCode(t, err, CodeNotFound)
	if n := w.traces(gone.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	// The answer is also repeated after the end of the deletion, to the same caller
	// only.
	if reply := w.must(home.Token.Secret, gone.ID, DeleteWorkspace, &None{}, "k"); !reply.Replayed {
		t.Error("not replayed")
	}
	_, err = w.ask("root", gone.ID, DeleteWorkspace, &None{}, "k")
	wantCode(t, err, CodeNotFound)
}

// More timers and members than fit into one batch are removed in several.
func TestDeleteWorkspace_InSeveralBatches(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	many := NewCommand[None, None]("many", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for i := range 2*eraseBatch + 1 {
			if err := tx.SetTimer("kind", fmt.Sprint(i), tx.now.Add(1000*time.Hour)); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	})
	w.must("root", home.Workspace.ID, many, &None{})
	step := putMembershipsIn{directoryStep: directoryStep{home.Workspace.ID}}
	for i := range 2*eraseBatch + 1 {
		step.Changes = append(step.Changes, memberChanged{User: UserID(fmt.Sprint(i)), Present: true, Version: 2})
	}
	w.must("root", "", putMembershipsOp, &step)
	w.must(home.Token.Secret, home.Workspace.ID, DeleteWorkspace, &None{})
	if n := w.traces(home.Workspace.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	w.verify()
}

// A command that was admitted before the workspace's deletion and runs after it changes
// nothing, not even a counter.
func TestDeleteWorkspace_LateCommand(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	req := &Request{Workspace: home.Workspace.ID.raw(), Credential: home.Token.Secret, Idempotency: &Idempotency{Key: "k"}}
	if err := w.admit(req, CreateTeam); err != nil {
		t.Fatal(err)
	}
	w.must(home.Token.Secret, home.Workspace.ID, DeleteWorkspace, &None{})
	_, err := w.do(req, CreateTeam, &CreateTeamIn{Name: "x", Key: "X"})
	wantCode(t, err, CodeNotFound)
	w.restart()
	_, err = w.do(req, CreateTeam, &CreateTeamIn{Name: "x", Key: "X"})
	wantCode(t, err, CodeNotFound)
	if n := w.traces(home.Workspace.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	w.verify()
}

// Counters of earlier commands in the same batch are not written after the erasure.
func TestDeleteWorkspace_InABatchWithOthers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	l := w.bufferOf(home.Workspace.ID.raw())
	owner := &Request{permit: Permit{basis: basisService}, Caller: Caller{Principal: Principal{Type: ActorUser, ID: string(home.Workspace.OwnerID)}, Role: RoleOwner, Level: Admin}}
	for i, step := range []struct {
		op *Op
		in any
	}{
		{CreateTeam, &CreateTeamIn{Name: "x", Key: "X"}},
		{eraseWorkspaceOp, &None{}},
		{CreateTeam, &CreateTeamIn{Name: "y", Key: "Y"}},
	} {
		_, err := l.Run(step.op, owner, step.in, w.now)
		if i < 2 && err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			wantCode(t, err, CodeNotFound)
		}
	}
	commitBuffer(w, w.db, l)
	n := 0
	w.each(func(key, _ []byte) {
		if _, workspace, _, _, err := storage.SplitKey(key); err != nil || workspace == home.Workspace.ID.raw() {
			n++
		}
	})
	if n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// TestDeleteWorkspace_RepeatedAtOnce has a request repeated while it runs, between any two
// of its steps: both have one answer. A token of the workspace itself is no credential any
// more once the workspace's rows are gone.
func TestDeleteWorkspace_RepeatedAtOnce(t *testing.T) {
	t.Parallel()
	for step := 1; step <= 8; step++ {
		w := newTestService(t)
		home := w.onboard("home")
		other := decode[Workspace](t, w.must(home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "other"}).Body)
		for _, id := range []WorkspaceID{other.ID, home.Workspace.ID} {
			var second *Reply
			key := string(id)
			w.between = func(n int) {
				if n == step {
					w.between = nil
					reply, err := w.ask(home.Token.Secret, id, DeleteWorkspace, &None{}, key)
					var refusal *Error
					switch {
					case err == nil:
						second = &reply
					case id != home.Workspace.ID || !errors.As(err, &refusal) || refusal.Code != CodeUnauthorized:
						t.Errorf("before step %d: %v", step, err)
					}
				}
			}
			first, err := w.ask(home.Token.Secret, id, DeleteWorkspace, &None{}, key)
			w.between = nil
			if err != nil {
				t.Errorf("step %d: %v", step, err)
			} else if second != nil && string(first.Body) != string(second.Body) {
				t.Errorf("step %d: answered %s and %s", step, first.Body, second.Body)
			}
		}
		w.verify()
	}
}
