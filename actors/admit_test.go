package actors

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// onboarded is a workspace with its admin's credential.
type onboarded struct {
	id         storage.ID
	user       string
	credential string
}

func (b *testEngine) onboard(slug string) onboarded {
	b.t.Helper()
	req := &tracker.Request{ID: "onboard", Deadline: time.Now().Add(10 * time.Second)}
	if err := b.engine.Admit(req, tracker.OnboardWorkspace); err != nil {
		b.t.Fatal(err)
	}
	reply, err := b.engine.Do(req, tracker.OnboardWorkspace, &tracker.NewWorkspaceIn{Name: slug, Slug: slug})
	if err != nil {
		b.t.Fatal(err)
	}
	var out tracker.Onboarded
	if err := json.Unmarshal(reply.Body, &out); err != nil {
		b.t.Fatal(err)
	}
	id, _ := storage.ParseID(out.Workspace.ID)
	return onboarded{id, string(out.Workspace.OwnerID), out.Token.Secret}
}

// token makes another token of the workspace's owner.
func (b *testEngine) token(o onboarded, permissions string) tracker.CreatedToken {
	b.t.Helper()
	req := b.admitted(o.id, o.credential, tracker.CreateToken)
	reply, err := b.engine.Do(req, tracker.CreateToken, &tracker.CreateTokenIn{Name: "another", Permissions: []byte(`"` + permissions + `"`)})
	if err != nil {
		b.t.Fatal(err)
	}
	var out tracker.CreatedToken
	if err := json.Unmarshal(reply.Body, &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *testEngine) deleteToken(o onboarded, id tracker.TokenID) {
	b.t.Helper()
	req := b.admitted(o.id, o.credential, tracker.DeleteToken)
	if _, err := b.engine.Do(req, tracker.DeleteToken, &tracker.DeleteTokenIn{ID: id}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *testEngine) admit(workspace storage.ID, credential string, op *tracker.Op) (*tracker.Request, error) {
	req := &tracker.Request{ID: "test", Workspace: workspace, Credential: credential, Deadline: time.Now().Add(10 * time.Second)}
	return req, b.engine.Admit(req, op)
}

func (b *testEngine) admitted(workspace storage.ID, credential string, op *tracker.Op) *tracker.Request {
	b.t.Helper()
	req, err := b.admit(workspace, credential, op)
	if err != nil {
		b.t.Fatalf("admit %s: %v", op.Name, err)
	}
	return req
}

// needing returns an operation of which only Needs matters.
func needing(level tracker.Level, resource string) *tracker.Op {
	return tracker.NewQuery[tracker.None, tracker.None]("Needing", "", tracker.Needs{Level: level, Resource: resource}, func(*tracker.View, *tracker.None) (tracker.Reply, error) {
		return tracker.Reply{}, nil
	})
}

const testRoot = "operators-secret"

func TestAdmit(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken, c.OpenOnboarding = testRoot, true })
	mine, other := b.onboard("mine"), b.onboard("other")
	reader := b.token(mine, "read").Secret
	issues := b.token(mine, "issues:write").Secret
	mistyped := mine.credential[:len(mine.credential)-1] + "!"
	elsewhere := strings.Replace(mine.credential, "swy_", "swo_", 1)

	for _, row := range []struct {
		name       string
		workspace  storage.ID
		credential string
		op         *tracker.Op
		want       tracker.Code
	}{
		{"public without a credential", mine.id, "", needing(tracker.Public, ""), ""},
		{"public with a wrong one", mine.id, "nonsense", needing(tracker.Public, ""), ""},
		{"none", mine.id, "", needing(tracker.Read, ""), tracker.CodeUnauthorized},
		{"nonsense", mine.id, "nonsense", needing(tracker.Read, ""), tracker.CodeUnauthorized},
		{"far too long", mine.id, strings.Repeat("x", 100_000), needing(tracker.Read, ""), tracker.CodeUnauthorized},
		{"mistyped", mine.id, mistyped, needing(tracker.Read, ""), tracker.CodeUnauthorized},
		{"of another kind", mine.id, elsewhere, needing(tracker.Read, ""), tracker.CodeUnauthorized},
		{"of nobody, nowhere named", storage.ID{}, "nonsense", needing(tracker.Identified, ""), tracker.CodeUnauthorized},
		{"admin", mine.id, mine.credential, needing(tracker.Admin, ""), ""},
		{"identified", storage.ID{}, mine.credential, needing(tracker.Identified, ""), ""},
		{"not the operator", storage.ID{}, mine.credential, needing(tracker.Operator, ""), tracker.CodeForbidden},
		{"reader reads", mine.id, reader, needing(tracker.Read, ""), ""},
		{"reader writes", mine.id, reader, needing(tracker.Write, ""), tracker.CodeForbidden},
		{"reader administers", mine.id, reader, needing(tracker.Admin, ""), tracker.CodeForbidden},
		{"issue writer writes issues", mine.id, issues, needing(tracker.Write, "issues"), ""},
		{"issue writer writes sessions", mine.id, issues, needing(tracker.Write, "sessions"), tracker.CodeForbidden},
		{"no member", other.id, mine.credential, needing(tracker.Read, ""), tracker.CodeNotFound},
		{"no workspace", workspaceNumber(1), mine.credential, needing(tracker.Read, ""), tracker.CodeNotFound},
		{"no workspace named", storage.ID{}, mine.credential, needing(tracker.Read, ""), tracker.CodeNotFound},
		{"the directory is none", storage.DirectoryID, testRoot, needing(tracker.Read, ""), tracker.CodeNotFound},
		{"the directory is none, in public", storage.DirectoryID, "", needing(tracker.Public, ""), tracker.CodeNotFound},
		{"root", mine.id, testRoot, needing(tracker.Admin, ""), ""},
		{"root as operator", storage.ID{}, testRoot, needing(tracker.Operator, ""), ""},
		{"root in no workspace", workspaceNumber(1), testRoot, needing(tracker.Read, ""), tracker.CodeNotFound},
		{"nearly root", mine.id, testRoot + "x", needing(tracker.Read, ""), tracker.CodeUnauthorized},
	} {
		for _, when := range []string{"first", "remembered"} {
			t.Run(row.name+", "+when, func(t *testing.T) {
				_, err := b.admit(row.workspace, row.credential, row.op)
				if row.want == "" {
					if err != nil {
						t.Errorf("refused: %v", err)
					}
					return
				}
				wantCode(t, err, row.want)
				if told := (*tracker.Error)(nil); !errors.As(err, &told) || !told.Unadmitted {
					t.Errorf("the refusal does not say that it is one of the caller's rights: %v", err)
				}
			})
		}
	}

	req := b.admitted(mine.id, mine.credential, needing(tracker.Read, ""))
	if c := req.Caller; c.ID != mine.user || c.Role != tracker.RoleOwner || c.Level != tracker.Admin || c.Home != mine.id {
		t.Errorf("caller %+v", c)
	}
	req = b.admitted(mine.id, mine.credential, needing(tracker.Identified, ""))
	if c := req.Caller; c.ID != mine.user || c.Role != "" {
		t.Errorf("a caller of nowhere %+v", c)
	}
	if s := b.engine.Stats(); s.CallersFound == 0 {
		t.Error("nobody was remembered")
	}
}

func TestAdmit_Onboarding(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken = testRoot })
	_, err := b.admit(storage.ID{}, "", tracker.OnboardWorkspace)
	wantCode(t, err, tracker.CodeUnauthorized)
	b.admitted(storage.ID{}, testRoot, tracker.OnboardWorkspace)
}

// Somebody without a token who would make a workspace is told of the request that makes one, where that is open.
func TestAdmit_CreationByNobody(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{true, false} {
		b := setup(t, func(c *Config) { c.RootToken, c.OpenOnboarding = testRoot, open })
		for _, credential := range []string{"", "nonsense"} {
			_, err := b.admit(storage.ID{}, credential, tracker.CreateWorkspace)
			var told *tracker.Error
			if !errors.As(err, &told) || told.Code != tracker.CodeUnauthorized || !told.Unadmitted || strings.Contains(told.Hint, "POST /workspaces/onboard") != open {
				t.Errorf("onboarding is open: %t, the credential is %q: %+v", open, credential, told)
			}
		}
	}
}

// Where everybody may onboard, the operator's token makes it the operator's act: read-only mode
// does not stop it, and the audit names the operator.
func TestAdmit_OnboardingByTheOperator(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.RootToken, c.OpenOnboarding = testRoot, true })
	if _, err := b.engine.Do(b.admitted(storage.ID{}, testRoot, tracker.PutReadOnly), tracker.PutReadOnly, &tracker.ReadOnlyIn{Reason: "Maintenance"}); err != nil {
		t.Fatal(err)
	}
	onboard := func(credential, slug string) (tracker.Reply, error) {
		return b.engine.Do(b.admitted(storage.ID{}, credential, tracker.OnboardWorkspace), tracker.OnboardWorkspace, &tracker.NewWorkspaceIn{Name: slug, Slug: slug})
	}
	_, err := onboard("", "strangers")
	wantCode(t, err, tracker.CodeUnavailable)
	reply, err := onboard(testRoot, "operators")
	var made tracker.Onboarded
	if err != nil || json.Unmarshal(reply.Body, &made) != nil {
		t.Fatalf("the operator in read-only mode: %v, %s", err, reply.Body)
	}
	id, _ := storage.ParseID(made.Workspace.ID)
	reply, err = b.engine.Do(b.admitted(id, testRoot, tracker.ListAudit), tracker.ListAudit, &tracker.ListAuditIn{})
	var page tracker.AuditPage
	if err != nil || json.Unmarshal(reply.Body, &page) != nil || len(page.Entries) != 1 || page.Entries[0].Actor.ID != "root" {
		t.Errorf("the workspace's audit: %v, %s", err, reply.Body)
	}
}

func TestAdmit_NoRootToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, credential := range []string{"", testRoot} {
		_, err := b.admit(storage.ID{}, credential, needing(tracker.Operator, ""))
		wantCode(t, err, tracker.CodeUnauthorized)
	}
}

func TestAdmit_DeletedTokenStopsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	for range 20 {
		made := b.token(mine, "write")
		for range 3 {
			b.admitted(mine.id, made.Secret, needing(tracker.Write, ""))
		}
		b.deleteToken(mine, made.ID)
		_, err := b.admit(mine.id, made.Secret, needing(tracker.Read, ""))
		wantCode(t, err, tracker.CodeUnauthorized)
		_, err = b.admit(storage.ID{}, made.Secret, needing(tracker.Identified, ""))
		wantCode(t, err, tracker.CodeUnauthorized)
	}
}

// A remembered caller has the roles that its sponsors have now.
func TestAdmit_ForgetsWithTheRoleOfASponsor(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	mint := func(credential string, in tracker.CreateTokenIn) string {
		t.Helper()
		var made tracker.CreatedToken
		in.Name, in.Permissions = "x", []byte(`"admin"`)
		b.run(mine, credential, tracker.CreateToken, &in, &made)
		return made.Secret
	}
	var bob tracker.Member
	b.run(mine, mine.credential, tracker.AddMember, &tracker.AddMemberIn{Name: tracker.Some("Bob"), Role: tracker.RoleAdmin}, &bob)
	asOwner := mint(mint(mine.credential, tracker.CreateTokenIn{UserID: bob.UserID}), tracker.CreateTokenIn{UserID: tracker.UserID(mine.user)})
	credentials := []string{asOwner, mint(asOwner, tracker.CreateTokenIn{}), mint(asOwner, tracker.CreateTokenIn{AgentID: "bot"})}
	for _, credential := range credentials {
		b.admitted(mine.id, credential, tracker.ListTokens)
	}
	b.run(mine, mine.credential, tracker.PatchMember, &tracker.PatchMemberIn{UserID: bob.UserID, Role: tracker.RoleMember}, nil)
	for _, credential := range credentials {
		_, err := b.admit(mine.id, credential, tracker.ListTokens)
		wantCode(t, err, tracker.CodeForbidden)
		b.admitted(mine.id, credential, tracker.ListIssues)
	}
	b.run(mine, mine.credential, tracker.RemoveMember, &tracker.MemberIn{UserID: bob.UserID}, nil)
	for _, credential := range credentials {
		_, err := b.admit(mine.id, credential, tracker.ListIssues)
		wantCode(t, err, tracker.CodeUnauthorized)
	}
}

// A caller resolved while its token is deleted must not stay in the cache after the
// deletion.
func TestAdmit_ResolvedDuringADeletion(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	op := needing(tracker.Write, "")
	for range 50 {
		made := b.token(mine, "write")
		var gone atomic.Bool
		quit := make(chan struct{})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for {
					select {
					case <-quit:
						return
					default:
					}
					before := gone.Load()
					_, err := b.admit(mine.id, made.Secret, op)
					if before && err == nil {
						t.Error("admitted after the deletion was confirmed")
						return
					}
				}
			})
		}
		b.deleteToken(mine, made.ID)
		gone.Store(true)
		for range 20 {
			_, err := b.admit(mine.id, made.Secret, op)
			wantCode(t, err, tracker.CodeUnauthorized)
		}
		close(quit)
		all.Wait()
	}
}

// The deletion comes between reading the token and caching the caller.
func TestAdmit_DeletedBetweenReadingAndRemembering(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	made := b.token(mine, "write")
	op := needing(tracker.Write, "")
	b.admitted(mine.id, mine.credential, tracker.DeleteToken)
	barriers := 0
	hook := func() {
		if barriers++; barriers == 2 { // the addressed workspace's, after the home was read
			b.local.onBarrier.Store(nil)
			b.deleteToken(mine, made.ID)
		}
	}
	b.local.onBarrier.Store(&hook)
	if _, err := b.admit(mine.id, made.Secret, op); err != nil {
		t.Fatalf("a request from before the deletion: %v", err)
	}
	_, err := b.admit(mine.id, made.Secret, op)
	wantCode(t, err, tracker.CodeUnauthorized)
}

func TestAdmit_ForgetsWithTheOwnership(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	op := needing(tracker.Read, "")
	b.admitted(mine.id, mine.credential, op)
	b.local.lose(b.engine, storage.ShardOf(mine.id, testShards))
	_, err := b.admit(mine.id, mine.credential, op)
	wantOutcome(t, err, "not_applied")
	b.local.gain(t, b.engine)
	resolved := b.engine.Stats().CallersResolved
	b.admitted(mine.id, mine.credential, op)
	if b.engine.Stats().CallersResolved == resolved {
		t.Error("a caller of an earlier epoch was remembered")
	}
}
