package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// stores returns the stored counters of a workspace.
func (w *testService) stores(id WorkspaceID) (all, answers uint64) {
	w.Helper()
	v := w.view(id.raw())
	all, err := v.Number(bytesTable, bytesAll[:])
	if err != nil {
		w.Fatal(err)
	}
	answers, err = v.Number(bytesTable, bytesAnswers[:])
	if err != nil {
		w.Fatal(err)
	}
	return all, answers
}

// limit sets the limits of a workspace.
func (w *testService) limit(id WorkspaceID, limits Limits) { w.bufferOf(id.raw()).Limit(&limits) }

func wantLimit(t *testing.T, err error, limit string, most uint64) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) || failure.Code != CodeConflict || failure.Details != (LimitDetails{limit, most}) {
		t.Errorf("error %+v, want a conflict with the limit %s of %d", err, limit, most)
		return
	}
	ways := "The operator sets the limit for the workspace, or with --limit-" + limit + " for all."
	if limit == "answerBytes" { // workspaces have none of their own
		ways = "The operator sets the limit with --limit-answer-bytes."
	}
	if !strings.HasSuffix(failure.Hint, ways) {
		t.Errorf("hint %q, want %q at its end", failure.Hint, ways)
	}
}

func largeIssue(title string) *CreateIssueIn {
	return &CreateIssueIn{Title: title, IssueFields: IssueFields{Description: Some(strings.Repeat("What happens. ", 10_000))}}
}

func TestBytes_LimitRefusesWhatGrowsAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	ref := &CreateIssueIn{Title: "Known", IssueFields: IssueFields{ExternalRef: Some("ref")}}
	known := w.must(user, org, CreateIssue, ref, "first")
	issue := decode[Issue](t, w.must(user, org, CreateIssue, largeIssue("Large")).Body)
	all, _ := w.stores(org)
	limits := Limits{Bytes: all + 1000}
	w.limit(org, limits)

	_, err := w.ask(user, org, CreateIssue, largeIssue("More"))
	wantLimit(t, err, "bytes", limits.Bytes)
	_, err = w.ask(user, org, PatchIssue, &PatchIssueIn{ID: string(issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{Priority: Some(PriorityHigh)}}}, "patch")
	wantLimit(t, err, "bytes", limits.Bytes)
	if again, _ := w.stores(org); again != all {
		t.Errorf("%d bytes after a refusal, %d before", again, all)
	}
	if reply := w.must(user, org, CreateIssue, ref, "first"); !reply.Replayed || !bytes.Equal(reply.Body, known.Body) {
		t.Errorf("a repeat gets %+v", reply)
	}
	for n := range 50 { // more answers than there is room for
		if reply := w.must(user, org, CreateIssue, ref, fmt.Sprint("again", n)); reply.Outcome != Done {
			t.Errorf("an existing externalRef gets %+v", reply)
		}
	}
	if n, _ := w.stores(org); n > limits.Bytes {
		t.Errorf("%d bytes are stored, the limit is %d", n, limits.Bytes)
	}
	w.must("root", org, CreateIssue, largeIssue("The operator's"))
	w.must(user, org, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)}, "delete")
	if !w.must(user, org, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)}, "delete").Replayed {
		t.Error("the deletion's answer is not kept")
	}
	w.verify()

	w.restart() // the counters are rows, so a restart does not change them
	w.limit(org, limits)
	_, err = w.ask(user, org, CreateIssue, largeIssue("More"))
	wantLimit(t, err, "bytes", limits.Bytes)
	w.pass(eventLife + time.Hour) // the sweeps continue and free space
	if n, answers := w.stores(org); n >= all || answers != 0 {
		t.Errorf("%d bytes, %d of them answers, are left after the sweeps", n, answers)
	}
	w.limit(org, Limits{Bytes: all + 400_000})
	w.must(user, org, CreateIssue, largeIssue("More"))
	w.verify()
}

func TestBytes_AnswersHaveALimit(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	limits := Limits{AnswerBytes: 3000}
	w.limit(org, limits)
	var err error
	made := 0
	for err == nil {
		_, err = w.ask(user, org, CreateTeam, &CreateTeamIn{Name: "x", Key: fmt.Sprint("T", made)}, fmt.Sprint("k", made))
		made++
	}
	wantLimit(t, err, "answerBytes", 3000)
	if made < 3 {
		t.Errorf("refused after %d answers", made)
	}
	if !w.must(user, org, CreateTeam, &CreateTeamIn{Name: "x", Key: "T0"}, "k0").Replayed {
		t.Error("an answer was forgotten")
	}
	w.must(user, org, CreateTeam, &CreateTeamIn{Name: "x", Key: "NOKEY"})
	w.pass(idempotencyLife + time.Hour)
	w.limit(org, limits)
	w.must(user, org, CreateTeam, &CreateTeamIn{Name: "x", Key: "LATER"}, "later")
	w.verify()
}

// The answer to a change of an issue is stored as a reference to the change's event.
func TestBytes_IssueAndAnswerAreKeptOnce(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	create := largeIssue("Large")
	created := w.must(user, org, CreateIssue, create, "create")
	id := string(decode[Issue](t, created.Body).ID)
	patch := &PatchIssueIn{ID: id, IssuePatch: IssuePatch{IssueFields: IssueFields{Priority: Some(PriorityHigh)}}}
	patched := w.must(user, org, PatchIssue, patch, "patch")
	if _, answers := w.stores(org); answers > 1000 {
		t.Errorf("two answers take %d bytes", answers)
	}
	w.restart()
	w.must(user, org, DeleteIssue, &DeleteIssueIn{ID: id})
	w.now = w.now.Add(idempotencyLife - time.Hour)
	for key, want := range map[string]Reply{"create": created, "patch": patched} {
		op, in := CreateIssue, any(create)
		if key == "patch" {
			op, in = PatchIssue, patch
		}
		if got := w.must(user, org, op, in, key); !got.Replayed || got.Outcome != want.Outcome || got.ETag != want.ETag || !bytes.Equal(got.Body, want.Body) {
			t.Errorf("%s: the repeat differs", key)
		}
	}
	w.verify()
}

// The rows of a workspace from before the counters are counted in steps, while
// commands change rows that are already counted and rows that are not.
func TestBytes_OldWorkspaceIsCountedBesideWrites(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	var issues []Issue
	for n := range 400 {
		issues = append(issues, decode[Issue](t, w.must(user, org, CreateIssue, &CreateIssueIn{Title: fmt.Sprint("Issue ", n)}, fmt.Sprint("k", n)).Body))
	}
	w.restart()
	for _, subject := range []storage.ID{bytesAll, bytesAnswers} {
		start, _ := storage.WorkspaceRange(storage.ShardOf(org.raw(), testShards), org.raw())
		if err := w.db.Delete(append(append(start, byte(bytesTable)), subject[:]...), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
	w.limit(org, Limits{Bytes: 1})
	w.bufferOf(org.raw()).countRows = 500
	steps := 0
	for n := range issues {
		if v := w.view(org.raw()); n > 0 {
			if next, err := v.Value(bytesTable, bytesNext[:], nil); err != nil || next == nil {
				break
			}
		}
		w.must(user, org, CreateIssue, &CreateIssueIn{Title: "While it is counted"}, fmt.Sprint("new", n))
		w.must(user, org, DeleteIssue, &DeleteIssueIn{ID: string(issues[n].ID)})
		steps++
		if _, err := w.do(ServiceRequest("test", org.raw()), countBytesOp, &TimerIn{}); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			w.restart()
			w.limit(org, Limits{Bytes: 1})
			w.bufferOf(org.raw()).countRows = 500
		}
	}
	if all, answers := w.stores(org); steps < 2 || all == 0 || answers == 0 {
		t.Errorf("%d steps, %d bytes, %d of answers", steps, all, answers)
	}
	w.verify()
	_, err := w.ask(user, org, CreateIssue, &CreateIssueIn{Title: "One more"})
	wantLimit(t, err, "bytes", 1)
}

func TestBytes_DeletedWorkspaceLeavesNoCounter(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	w.must(home.Token.Secret, home.Workspace.ID, CreateIssue, largeIssue("Large"), "k")
	w.must("root", home.Workspace.ID, DeleteWorkspace, &None{})
	if n := w.traces(home.Workspace.ID); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	w.verify()
}

// The verifier finds a counter that is wrong.
func TestBytes_VerifyProvesTheCounters(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	l := w.bufferOf(home.Workspace.ID.raw())
	wrong := NewCommand[None, None]("wrong", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{}, tx.SetCounter(bytesTable, bytesAll, 17)
	})
	if _, err := l.Run(wrong, ServiceRequest("test", home.Workspace.ID.raw()), &None{}, w.now); err != nil {
		t.Fatal(err)
	}
	commitBuffer(w, w.db, l)
	report, err := storage.Verify(t.Context(), w.db, Schema())
	if err != nil || len(report.Problems) != 1 || !strings.Contains(report.Problems[0].Text, "counted are 17 bytes") {
		t.Errorf("%+v, %v", report, err)
	}
}

// An identity provider is limited, except for changes that only take access away.
func TestBytes_SCIMIsLimited(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	org := p.home.Workspace.ID
	ann, bob := p.user("ann"), p.user("bob")
	group := p.group("Group", ann.ID, bob.ID)
	all, _ := p.stores(org)
	p.limit(org, Limits{Bytes: all})
	refused := func(op *Op, in any) {
		t.Helper()
		_, err := p.try(op, in)
		wantLimit(t, err, "bytes", all)
	}
	refused(CreateSCIMUser, &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: "carl"}})
	refused(CreateSCIMGroup, &CreateSCIMGroupIn{SCIMBase: scimHere, SCIMGroupIn: SCIMGroupIn{DisplayName: "Other"}})
	refused(PatchSCIMUser, patchUser(ann.ID, "replace", "displayName", `"Ann"`))
	p.provision(PatchSCIMGroup, patchGroup(group.ID, "remove", fmt.Sprintf("members[value eq %q]", bob.ID), ""))
	p.active(ann.ID, false)
	refused(PatchSCIMUser, patchUser(ann.ID, "replace", "active", "true"))
	p.provision(DeleteSCIMUser, &DeleteSCIMUserIn{SCIMBase: scimHere, ID: bob.ID})
	p.verify()
}

// Limits apply to the calls of providers.
func TestBytes_ProvidersAreLimited(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	o.limit(o.home.Workspace.ID, Limits{Bytes: 1})
	_, err := o.provider(ReceiveComms, o.comms("s", "one", `{"message":{"text":"x"}}`))
	wantLimit(t, err, "bytes", 1)
}
