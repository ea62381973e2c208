package tracker

import (
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// sees reports whether a credential has a workspace in its list.
func (w *testService) sees(credential string, id WorkspaceID) bool {
	w.Helper()
	page := decode[WorkspaceList](w, w.must(credential, "", ListWorkspaces, &ListWorkspacesIn{Limit: 100}).Body)
	for _, ws := range page.Workspaces {
		if ws.ID == id {
			return true
		}
	}
	return false
}

func TestMembers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, other := w.onboard("home"), w.onboard("other")
	guest := other.Workspace.OwnerID
	add := &AddMemberIn{UserID: Some(guest), Role: RoleGuest}
	w.must(home.Token.Secret, home.Workspace.ID, AddMember, add)
	_, err := w.ask(home.Token.Secret, home.Workspace.ID, AddMember, add)
	wantCode(t, err, CodeConflict)
	if !w.sees(other.Token.Secret, home.Workspace.ID) {
		t.Error("the new member does not see the workspace in the list")
	}
	m := decode[Member](w, w.must(home.Token.Secret, home.Workspace.ID, PatchMember, &PatchMemberIn{guest, RoleAdmin}).Body)
	if m.Role != RoleAdmin {
		t.Errorf("role %s", m.Role)
	}
	w.must(other.Token.Secret, home.Workspace.ID, ListTokens, &PageIn{}) // as an admin
	w.must(other.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{guest})
	_, err = w.ask(other.Token.Secret, home.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeNotFound)
	if w.sees(other.Token.Secret, home.Workspace.ID) {
		t.Error("who was removed still sees the workspace in the list")
	}
	w.verify()
	w.pass(2 * time.Hour)
	w.verify()
}

func TestMembers_OwnerIsFixed(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	owner := home.Workspace.OwnerID
	for _, try := range []struct {
		op *Op
		in any
	}{{PatchMember, &PatchMemberIn{owner, RoleMember}}, {RemoveMember, &MemberIn{owner}}} {
		for _, credential := range []string{home.Token.Secret, "root"} {
			_, err := w.ask(credential, home.Workspace.ID, try.op, try.in)
			wantCode(t, err, CodeConflict)
		}
	}
	for _, op := range []*Op{PatchMember, RemoveMember} {
		for _, id := range []UserID{"nobody", "with\x00nul", ""} {
			in := any(&MemberIn{id})
			if op == PatchMember {
				in = &PatchMemberIn{id, RoleGuest}
			}
			_, err := w.ask(home.Token.Secret, home.Workspace.ID, op, in)
			wantCode(t, err, CodeNotFound)
		}
	}
	w.verify()
}

// A change of a member without a role changes nothing, as any PATCH without a field.
func TestPatchMember_WithoutRole(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	for id, role := range map[UserID]Role{home.Workspace.OwnerID: RoleOwner, w.onboard("other").Workspace.OwnerID: RoleGuest} {
		if role != RoleOwner {
			w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(id), Role: role})
		}
		m := decode[Member](w, w.must(home.Token.Secret, home.Workspace.ID, PatchMember, &PatchMemberIn{UserID: id}).Body)
		if m.UserID != id || m.Role != role || m.UpdatedAt != m.CreatedAt {
			t.Errorf("%s became %+v", role, m)
		}
	}
	w.verify()
}

func TestAddMemberIn_Validate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    AddMemberIn
		wants bool
	}{
		{AddMemberIn{}, true},
		{AddMemberIn{Name: Opt[string]{Set: true, Null: true}}, true},
		{AddMemberIn{Email: Some("a@b")}, false},
		{AddMemberIn{Name: Some("A")}, false},
		{AddMemberIn{UserID: Some(UserID("a"))}, false},
	} {
		var faults Faults
		c.in.Validate(&faults)
		if faults.Empty() == c.wants {
			t.Errorf("%+v: %v", c.in, faults.Err())
		}
	}
}

func TestListMembers_PagesNewestFirst(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	for i := range 5 {
		w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(UserID(fmt.Sprintf("u%d", 9-i)))})
	}
	var got []UserID
	for in := (&PageIn{Limit: 2}); ; {
		page := decode[MemberList](w, w.must(home.Token.Secret, home.Workspace.ID, ListMembers, in).Body)
		for _, m := range page.Members {
			got = append(got, m.UserID)
		}
		if in.Cursor = page.NextCursor; in.Cursor == "" {
			break
		}
	}
	if want := []UserID{"u5", "u6", "u7", "u8", "u9", home.Workspace.OwnerID}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("members %v, want %v", got, want)
	}
	all := decode[MemberList](w, w.must(home.Token.Secret, home.Workspace.ID, ListMembers, &PageIn{}).Body)
	if len(all.Members) != 6 || all.NextCursor != "" {
		t.Errorf("without a limit %d members come", len(all.Members))
	}
}

// The directory gets a change of a member, whatever step the change crashes at.
func TestMembers_CutAtEveryStep(t *testing.T) {
	t.Parallel()
	for step := 1; step <= 4; step++ {
		for _, persisted := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d/persisted %t", step, persisted), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				home, other := w.onboard("home"), w.onboard("other")
				changed := step > 1 || persisted
				for _, present := range []bool{true, false} {
					op, in := AddMember, any(&AddMemberIn{UserID: Some(other.Workspace.OwnerID)})
					if !present {
						op, in = RemoveMember, &MemberIn{other.Workspace.OwnerID}
						if !changed { // so that there is a member to remove
							w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(other.Workspace.OwnerID)})
						}
					}
					w.cut = &crashPoint{step: step, persisted: persisted}
					_, err := w.ask(home.Token.Secret, home.Workspace.ID, op, in)
					if (err != nil) != (step == 1) {
						t.Errorf("%s: %v", op.Name, err)
					}
					w.restart()
					w.verify()
					w.pass(time.Minute)
					w.verify()
					want := present == changed
					if w.sees(other.Token.Secret, home.Workspace.ID) != want {
						t.Errorf("after %s the list has the workspace: %t", op.Name, !want)
					}
				}
			})
		}
	}
}

// A user's id may have any character except NUL, so also one that keys escape.
func TestMembers_AnyID(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	const user = UserID("a\x01b")
	w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(user)})
	token := w.mintAs("root", home, CreateTokenIn{UserID: user})
	if !w.sees(token.Secret, home.Workspace.ID) {
		t.Error("the new member does not see the workspace in the list")
	}
	if n := w.rows(pendingTable); n != 0 {
		t.Errorf("%d changes are left to be passed on", n)
	}
	w.pass(time.Minute)
	w.verify()
	w.must(home.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{user})
	if w.sees(token.Secret, home.Workspace.ID) {
		t.Error("a removed member sees the workspace in the list")
	}
	w.verify()
}

// A step with an older version does not undo a later change.
func TestMembers_OvertakenStep(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, other := w.onboard("home"), w.onboard("other")
	user := other.Workspace.OwnerID
	w.cut = &crashPoint{step: 3} // it passes nothing on
	w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(user)})
	v := w.view(home.Workspace.ID.raw())
	pending, err := NewView(v, &System, w.now, nil).pendingMembers(10)
	if err != nil || len(pending) != 1 {
		t.Fatalf("pending %v, %v", pending, err)
	}
	w.must(home.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{user})
	late := &putMembershipsIn{directoryStep{home.Workspace.ID}, pending}
	w.must("root", "", putMembershipsOp, late)
	w.verify()
	if w.sees(other.Token.Secret, home.Workspace.ID) {
		t.Error("an overtaken step brought a member back")
	}
	if _, err := w.do(ServiceRequest("", home.Workspace.ID.raw()), clearPendingOp, &memberChanges{pending}); err != nil {
		t.Fatal(err)
	}
	w.verify()
	w.pass(2 * time.Hour) // the removed membership is dropped
	n := 0
	w.each(func(key, _ []byte) {
		if _, _, table, _, err := storage.SplitKey(key); err == nil && table == membershipByRemoval {
			n++
		}
	})
	if n != 0 {
		t.Errorf("%d removed memberships are remembered", n)
	}
}

// A step after the workspace's deletion has no effect.
func TestMembers_StepAfterDeletion(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	w.must(home.Token.Secret, home.Workspace.ID, DeleteWorkspace, &None{})
	w.must("root", "", putMembershipsOp, &putMembershipsIn{directoryStep{home.Workspace.ID}, []memberChanged{{"u", true, 9}}})
	if n := w.traces(home.Workspace.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
