package tracker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// keptAnswers returns the keys of the answers that the directory keeps.
func (w *testService) keptAnswers() (keys [][]byte) {
	w.Helper()
	w.each(func(key, _ []byte) {
		_, workspace, table, fields, err := storage.SplitKey(key)
		if err == nil && workspace == storage.DirectoryID && table == idempotencyTable {
			keys = append(keys, bytes.Clone(fields))
		}
	})
	return keys
}

// dropAnswers removes every answer from the directory.
func (w *testService) dropAnswers() {
	w.Helper()
	keys := w.keptAnswers()
	drop := NewCommand[None, None]("drop", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for _, key := range keys {
			if err := tx.dropAnswer(fmt.Sprintf("%x", key)); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	}, InDirectory)
	if _, err := w.command(ServiceRequest("", storage.DirectoryID), drop, &None{}); err != nil {
		w.Fatal(err)
	}
}

// loss is a way in which a kept answer is lost.
type loss struct {
	name string
	lose func(*testService)
}

var losses = []loss{
	{"expires", func(w *testService) { w.now = w.now.Add(idempotencyLife) }},
	{"is dropped", func(w *testService) { w.dropAnswers() }},
}

// A stranger can't delete a workspace with a key that has an answer, even if the answer
// is lost while the request runs.
func TestDeleteWorkspace_StrangersAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, l := range losses {
		for step := 1; step <= 7; step++ {
			t.Run(fmt.Sprintf("%s before step %d", l.name, step), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				victim, stranger := w.onboard("victim"), w.onboard("stranger")
				// The keys have an answer of another request, and one of a deletion of
				// the stranger's own workspace.
				w.must(stranger.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "own"}, "k")
				own := decode[Workspace](w, w.must(stranger.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "own-2"}).Body)
				w.must(stranger.Token.Secret, own.ID, DeleteWorkspace, &None{}, "k2")
				for _, key := range []string{"k", "k2"} {
					w.between = func(n int) {
						if n == step {
							l.lose(w)
						}
					}
					_, err := w.ask(stranger.Token.Secret, victim.Workspace.ID, DeleteWorkspace, &None{}, key)
					w.between = nil
					var refusal *Error
					if !errors.As(err, &refusal) || refusal.Code != CodeNotFound && refusal.Code != CodeIdempotencyKeyReused {
						t.Errorf("key %s: answered %v", key, err)
					}
				}
				w.must(victim.Token.Secret, victim.Workspace.ID, WorkspaceByID, &None{})
				w.pass(time.Hour)
				w.must(victim.Token.Secret, victim.Workspace.ID, WorkspaceByID, &None{})
				w.verify()
			})
		}
	}
}

// A repeated request whose answer is lost while it runs takes effect at most once and
// reports that; nothing is left unfinished.
func TestWorkspaces_RepeatedWhileTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, l := range losses {
		for step := 1; step <= 7; step++ {
			t.Run(fmt.Sprintf("%s before step %d", l.name, step), func(t *testing.T) {
				t.Parallel()
				w := newTestService(t)
				home := w.onboard("home")
				lost := func(op *Op, workspace WorkspaceID, in any, key string) error {
					w.between = func(n int) {
						if n == step {
							l.lose(w)
						}
					}
					_, err := w.ask(home.Token.Secret, workspace, op, in, key)
					w.between = nil
					var refusal *Error
					if err != nil && (!errors.As(err, &refusal) || refusal.Code == CodeInternal) {
						t.Errorf("%s answered %v", op.Name, err)
					}
					return err
				}
				for i, op := range []*Op{CreateWorkspace, OnboardWorkspace} {
					in := &NewWorkspaceIn{Name: "x", Slug: fmt.Sprintf("made-%d", i)}
					key := fmt.Sprintf("make-%d", i)
					w.must(home.Token.Secret, "", op, in, key)
					_ = lost(op, "", in, key)
					w.verify()
				}
				gone := decode[Workspace](w, w.must(home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "gone"}).Body)
				_ = lost(DeleteWorkspace, gone.ID, &None{}, "delete")
				_ = lost(DeleteWorkspace, gone.ID, &None{}, "delete")
				w.pass(time.Hour)
				w.verify()
				_, err := w.ask("root", gone.ID, WorkspaceByID, &None{})
				wantCode(t, err, CodeNotFound)
				if n := w.traces(gone.ID); n != 0 {
					t.Errorf("%d keys are left of the deleted workspace", n)
				}
			})
		}
	}
}

// No command of a step or a timer runs for a request without a permit, with one to
// look, or with one for another workspace. Nothing is written, and no kept answer is
// returned.
func TestCommands_NeedAPermit(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, other := w.onboard("home"), w.onboard("other")
	before := w.fingerprint()
	all := map[string]*Op{}
	for name, op := range StepOps {
		all[name] = op
	}
	for _, op := range TimerOps {
		all[op.Name] = op
	}
	tried := 0
	for name, op := range all {
		if op.Kind != Command {
			continue
		}
		tried++
		for _, permit := range []Permit{{}, {basis: basisLook}, permitDeletion(other.Workspace.ID.raw()), permitCreation(other.Workspace.ID.raw()), {basis: basisAdmission, about: other.Workspace.ID.raw()}} {
			req := &Request{Workspace: home.Workspace.ID.raw(), Caller: System, permit: permit, Idempotency: &Idempotency{Key: "k"}}
			in := op.New()
			_, aimed := in.(aboutWorkspace)
			if op.Directory && !aimed && permit.about != (storage.ID{}) {
				continue // it concerns no workspace
			}
			_, err := w.do(req, op, in)
			var refusal *Error
			if err == nil || errors.As(err, &refusal) {
				t.Errorf("%s with permit %q: %v, want the fault of a missing permit", name, permit.basis, err)
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d commands were tried", tried)
	}
	if after := w.fingerprint(); after != before {
		t.Error("something was written")
	}
}

// fingerprint returns the whole state as text.
func (w *testService) fingerprint() string {
	var b bytes.Buffer
	w.each(func(key, value []byte) { fmt.Fprintf(&b, "%x=%x\n", key, value) })
	return b.String()
}

// An admission is valid for its own operation only.
func TestRequest_AdmitIsForOneOperation(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	req := &Request{Workspace: home.Workspace.ID.raw(), Credential: home.Token.Secret}
	if err := w.admit(req, ListTeams); err != nil {
		t.Fatal(err)
	}
	if err := req.Admitted(ListTeams); err != nil {
		t.Error(err)
	}
	if req.Admitted(CreateTeam) == nil {
		t.Error("admitted to another operation")
	}
	if _, err := w.do(req, CreateTeam, &CreateTeamIn{Name: "x", Key: "X"}); err == nil {
		t.Error("another operation was carried out")
	}
	_, reader := w.member(home, RoleMember, "read")
	req = &Request{Workspace: home.Workspace.ID.raw(), Credential: reader}
	if err := w.admit(req, CreateTeam); err == nil || req.Admitted(CreateTeam) == nil {
		t.Errorf("admitted after %v", err)
	}
	// The admission of a workflow that any credential may call gives no permit.
	req = &Request{Workspace: home.Workspace.ID.raw(), Credential: reader}
	if err := w.admit(req, DeleteWorkspace); err != nil {
		t.Fatal(err)
	}
	if p, err := permitOf(&testFlow{testService: w, req: req}); err == nil || p != (Permit{}) {
		t.Errorf("permit %+v, %v", p, err)
	}
}

// A step does not change members by rights that have ended since the request was admitted.
func TestMembers_RightsEndBeforeTheStep(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		end  func(w *testService, home Onboarded, admin UserID, token TokenID)
		want Code
	}{
		{"the token is deleted", func(w *testService, home Onboarded, _ UserID, token TokenID) {
			w.must(home.Token.Secret, home.Workspace.ID, DeleteToken, &DeleteTokenIn{token})
		}, CodeUnauthorized},
		{"the admin is removed", func(w *testService, home Onboarded, admin UserID, _ TokenID) {
			w.must(home.Token.Secret, home.Workspace.ID, RemoveMember, &MemberIn{admin})
		}, CodeNotFound},
		{"the admin becomes a member", func(w *testService, home Onboarded, admin UserID, _ TokenID) {
			w.must(home.Token.Secret, home.Workspace.ID, PatchMember, &PatchMemberIn{admin, RoleMember})
		}, CodeForbidden},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newTestService(t)
			home := w.onboard("home")
			in := &AddMemberIn{Name: Some("somebody"), Role: RoleAdmin}
			admin := decode[Member](w, w.must(home.Token.Secret, home.Workspace.ID, AddMember, in).Body).UserID
			token := w.mintAs(home.Token.Secret, home, CreateTokenIn{UserID: admin, Permissions: words("admin")})
			w.between = func(int) {
				w.between = nil
				row.end(w, home, admin, token.ID)
			}
			_, err := w.ask(token.Secret, home.Workspace.ID, AddMember, in)
			wantCode(t, err, row.want)
			w.verify()
		})
	}
}

// Nor does it provision a user for a connection that has ended.
func TestSCIMUser_ConnectionEndsBeforeTheStep(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	connection, err := ParseCredential(p.token)
	if err != nil {
		t.Fatal(err)
	}
	p.between = func(int) {
		p.between = nil
		p.must(p.home.Token.Secret, p.home.Workspace.ID, DeleteSCIMConnection, &RecordIn{ID: connection.ID.String()})
	}
	_, err = p.try(CreateSCIMUser, &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: "ann"}})
	wantCode(t, err, CodeUnauthorized)
	if n := p.rows(scimUserTable); n != 0 {
		t.Errorf("%d users were provisioned", n)
	}
	p.verify()
}

func TestPermit_JSON(t *testing.T) {
	t.Parallel()
	want := permitDeletion(storage.ID{1, 2})
	want.exempt, want.elsewhere = true, true
	body, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Permit
	if err := json.Unmarshal(body, &got); err != nil || got != want {
		t.Errorf("%s reads as %+v, %v", body, got, err)
	}
	for _, bad := range []string{`{}`, `{"basis":""}`, `{"basis":"x"}`, `3`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
