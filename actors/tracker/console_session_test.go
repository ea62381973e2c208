package tracker

import (
	"fmt"
	"testing"
	"time"

	"switchyard/storage"
)

// opened opens a console session with a token, for an hour.
func (f *agentFixture) opened(token string) OpenedConsole {
	f.Helper()
	return decode[OpenedConsole](f, f.run("", OpenConsole, &OpenConsoleIn{Token: token, Life: time.Hour}).Body)
}

// described returns the description of a session.
func (f *agentFixture) described(secret string) ConsoleSession {
	f.Helper()
	return decode[ConsoleSession](f, f.run(secret, DescribeConsole, &None{}).Body)
}

// An agent's session acts for the agent, and ends with the agent's token.
func TestOpenConsole_OfAnAgent(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	token := f.mint(CreateTokenIn{Name: "Robo", AgentID: "claude"})
	s := f.opened(token.Secret)
	if d := f.described(s.Secret); d.Kind != "member" || *d.ActorType != "agent" || d.ActorID != "claude" || *d.Name != "Robo" || len(d.Workspaces) != 1 {
		t.Errorf("%+v", d)
	}
	f.verify()
	f.run(f.admin, DeleteToken, &DeleteTokenIn{ID: token.ID})
	_, err := f.try(s.Secret, DescribeConsole, &None{})
	wantCode(t, err, CodeUnauthorized)
	f.verify()
}

// A session ends with its token where that ends earlier, and its row goes with its timer.
func TestOpenConsole_Ends(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	soon := f.now.Add(10 * time.Minute).Format(time.RFC3339)
	short, long := f.mint(CreateTokenIn{Name: "short", ExpiresAt: Some(soon)}), f.mint(CreateTokenIn{Name: "long"})
	a, b := f.opened(short.Secret), f.opened(long.Secret)
	if a.ExpiresAt.Time().Format(time.RFC3339) != soon || b.ExpiresAt.Time().Sub(f.now).Round(time.Minute) != time.Hour {
		t.Errorf("they end at %s and %s", a.ExpiresAt, b.ExpiresAt)
	}
	tokens := func() int {
		return len(decode[TokenList](t, f.run(f.admin, ListTokens, &PageIn{Limit: 100}).Body).Tokens)
	}
	before := tokens()
	f.now = f.now.Add(time.Hour)
	f.run("root", NewCommand[None, None]("due", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		keys, err := tx.consolesBy(consoleOf(ActorUser), tx.ownerOf())
		if err != nil || len(keys) != 2 {
			t.Errorf("%d sessions, %v", len(keys), err)
		}
		for _, key := range keys {
			var id storage.ID
			for i := range id {
				id[i] = ^key[i]
			}
			if _, err := consoleEndOp.command(tx, &TimerIn{Kind: timerConsole, Subject: id.String()}); err != nil {
				return Reply{}, err
			}
		}
		return Reply{Outcome: NoContent}, nil
	}), &None{})
	if n := tokens(); n != before-2 {
		t.Errorf("%d tokens, there were %d", n, before)
	}
	f.verify()
}

// ownerOf returns the workspace's owner.
func (tx *Tx) ownerOf() string {
	row, err := tx.workspace()
	if err != nil {
		return ""
	}
	return string(row.Value.OwnerID)
}

// The end of all sessions reaches those in each workspace of the user, also if one can't end them now.
// Those in a workspace that the user leaves end with the membership.
func TestEndConsole_Everywhere(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	first := w.onboard("first")
	uma, token := w.member(first, RoleMember, "write")
	open := func(token string) string {
		t.Helper()
		return decode[OpenedConsole](t, w.must("", "", OpenConsole, &OpenConsoleIn{Token: token, Life: time.Hour}).Body).Secret
	}
	found := func(slug string) WorkspaceID {
		t.Helper()
		return decode[Workspace](t, w.must(token, "", CreateWorkspace, &NewWorkspaceIn{Name: slug, Slug: slug}).Body).ID
	}
	opened := func(workspace WorkspaceID) string {
		t.Helper()
		return open(decode[CreatedToken](t, w.must("root", workspace, CreateToken, &CreateTokenIn{Name: "x", UserID: uma}).Body).Secret)
	}
	own := found("own")
	left, here := open(token), opened(own)
	w.must(first.Token.Secret, first.Workspace.ID, RemoveMember, &MemberIn{uma})
	if w.good(left, own) {
		t.Error("a session in a workspace that the user has left is good for others")
	}
	if !w.good(here, own) {
		t.Fatal("a session in another workspace has ended, too")
	}
	token = here
	var secrets []string
	for i := range maxConsoleWorkspaces + 5 {
		secrets = append(secrets, opened(found(fmt.Sprint("more", i))))
	}
	credential, _ := ParseCredential(secrets[3])
	w.bufferOf(credential.Home).Forbid(errReadOnly(workspaceReadOnly, "An inquiry."))
	_, err := w.ask(here, "", EndConsole, &EndConsoleIn{Everywhere: true})
	wantCode(t, err, CodeUnavailable)
	if w.good(here, own) {
		t.Error("the session itself has not ended")
	}
	for i, secret := range secrets {
		if w.good(secret, own) != (i == 3) {
			t.Errorf("session %d is good: %t", i, i != 3)
		}
	}
	w.verify()
}

// The verifier finds a session that nothing would end.
func TestCheckConsoles_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.opened(f.admin)
	f.verify()
	f.run("root", NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{}, dropFirst(tx, &timers)
	}), &None{})
	report, err := storage.Verify(t.Context(), f.db, Schema())
	if err != nil {
		t.Fatal(err)
	}
	if report.Clean() {
		t.Error("nothing was found")
	}
}

// Letters that only look alike make another address.
func TestSameAddress(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"ada@acme.example", "ADA@Acme.Example", true}, {"ada@acme.example", "ada@acme.example.", false}, {"", "", true},
		{"kay@acme.example", "\u212aay@acme.example", false}, {"ÄDA@acme.example", "äda@acme.example", false}, {"äda@acme.example", "äda@acme.example", true},
	} {
		if got := sameAddress(row.a, row.b); got != row.same {
			t.Errorf("%q and %q: %t", row.a, row.b, got)
		}
	}
}
