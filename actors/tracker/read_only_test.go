package tracker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

func TestReadOnly_RefusesChangesButTheOperators(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	create := &CreateIssueIn{Title: "x"}
	w.must(user, org, CreateIssue, create, "before")
	w.bufferOf(org.raw()).Forbid(errReadOnly(workspaceReadOnly, "It moves."))
	_, err := w.ask(user, org, CreateIssue, create, "meanwhile")
	wantCode(t, err, CodeUnavailable)
	if err != nil && !strings.Contains(err.Error(), "It moves.") {
		t.Error(err)
	}
	if !w.must(user, org, CreateIssue, create, "before").Replayed {
		t.Error("a repeat makes an issue")
	}
	w.must("root", org, CreateIssue, create)
	w.bufferOf(org.raw()).Forbid(nil)
	if w.must(user, org, CreateIssue, create, "meanwhile").Replayed {
		t.Error("an answer was kept for a refused change")
	}
	route := &InboundRouteIn{Kind: "sms", Key: "+15550199"}
	w.must(user, org, PutInboundRoute, route, "routed")
	w.must(user, org, DeleteInboundRoute, route, "dropped")
	w.must("root", org, PutWorkspaceReadOnly, &BeginReadOnlyIn{ReadOnlyIn: ReadOnlyIn{Reason: "It moves."}})
	if again := w.must(user, org, PutInboundRoute, route, "routed"); !again.Replayed || again.Outcome != Done || !strings.Contains(string(again.Body), "+15550199") {
		t.Errorf("the repeat of a route's PUT is %+v %s", again, again.Body)
	}
	if again := w.must(user, org, DeleteInboundRoute, route, "dropped"); !again.Replayed || again.Outcome != NoContent {
		t.Errorf("the repeat of a route's DELETE is %+v", again)
	}
	_, err = w.ask(user, org, PutInboundRoute, route, "other")
	wantCode(t, err, CodeUnavailable)
	_, err = w.ask(user, org, DeleteWorkspace, &None{})
	wantCode(t, err, CodeUnavailable)
	_, err = w.ask(user, org, PutInboundRoute, &InboundRouteIn{Kind: "sms", Key: "+15550100"})
	wantCode(t, err, CodeUnavailable)
	w.verify()
}

// An end of the mode that names an ETag ends that mode alone.
func TestReadOnly_EndsByTag(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	org := w.onboard("home").Workspace.ID
	if got := w.must("root", org, GetWorkspaceReadOnly, &None{}); got.ETag != "" {
		t.Errorf("without a mode the ETag is %s", got.ETag)
	}
	_, err := w.ask("root", org, DeleteWorkspaceReadOnly, &EndReadOnlyIn{IfMatch: "*"})
	wantCode(t, err, CodePreconditionFailed)
	first := w.must("root", org, PutWorkspaceReadOnly, &BeginReadOnlyIn{ReadOnlyIn: ReadOnlyIn{Reason: "It moves."}}).ETag
	w.pass(time.Second)
	second := w.must("root", org, PutWorkspaceReadOnly, &BeginReadOnlyIn{ReadOnlyIn: ReadOnlyIn{Reason: "It moves."}}).ETag
	if got := w.must("root", org, GetWorkspaceReadOnly, &None{}).ETag; first == second || got != second {
		t.Errorf("the modes' ETags are %s and %s, and the present one %s", first, second, got)
	}
	_, err = w.ask("root", org, DeleteWorkspaceReadOnly, &EndReadOnlyIn{IfMatch: first})
	wantCode(t, err, CodePreconditionFailed)
	w.must("root", org, DeleteWorkspaceReadOnly, &EndReadOnlyIn{IfMatch: second})
	if got := decode[ReadOnlyOut](t, w.must("root", org, GetWorkspaceReadOnly, &None{}).Body).ReadOnly; got != nil {
		t.Errorf("the mode is %+v", got)
	}
}

// A mode that is begun on a condition replaces no other one than the condition says.
func TestReadOnly_BeginsByTag(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	org := w.onboard("home").Workspace.ID
	begin := func(ifMatch, ifNoneMatch string) (tag string, ok bool) {
		w.pass(time.Second)
		reply, err := w.ask("root", org, PutWorkspaceReadOnly, &BeginReadOnlyIn{IfMatch: ifMatch, IfNoneMatch: ifNoneMatch, ReadOnlyIn: ReadOnlyIn{Reason: "It moves."}})
		if err != nil {
			wantCode(t, err, CodePreconditionFailed)
		}
		return reply.ETag, err == nil
	}
	if _, ok := begin("*", ""); ok {
		t.Error("a mode that is not there was replaced")
	}
	first, ok := begin("", "*")
	if !ok {
		t.Error("the first mode was refused")
	}
	if _, ok := begin("", "*"); ok {
		t.Error("another mode was replaced")
	}
	second, ok := begin(first, "")
	if !ok {
		t.Error("the mode with the ETag was not replaced")
	}
	if _, ok := begin(first, ""); ok {
		t.Error("the mode behind the ETag was replaced")
	}
	if _, ok := begin("", second); ok {
		t.Error("the mode with an excluded ETag was replaced")
	}
	if got := w.must("root", org, GetWorkspaceReadOnly, &None{}).ETag; got != second {
		t.Errorf("the mode is %s, want %s", got, second)
	}
	if _, ok := begin("", first); !ok {
		t.Error("a mode without an excluded ETag was not replaced")
	}
}

// The newest decision about the service wins in each shard, whatever the order of the copies.
func TestReadOnly_CopiesAreOrdered(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	w.must("root", "", PutReadOnly, &ReadOnlyIn{Reason: "First"})
	w.must("root", "", PutReadOnly, &ReadOnlyIn{Reason: "Second"})
	if got := decode[ReadOnlyOut](t, w.must("root", "", GetReadOnly, &None{}).Body).ReadOnly; got == nil || got.Reason != "Second" {
		t.Errorf("the service's mode is %+v", got)
	}
	w.must("root", "", DeleteReadOnly, &None{})
	if got := decode[ReadOnlyOut](t, w.must("root", "", GetReadOnly, &None{}).Body).ReadOnly; got != nil {
		t.Errorf("the service's mode is %+v", got)
	}
	if w.timers() != 0 {
		t.Error("a timer is left")
	}
}

// wantReadOnly checks that a read-only mode has refused a request.
func wantReadOnly(t *testing.T, err error, mode string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.ReadOnly != mode {
		t.Errorf("error %v, want a refusal by the read-only mode of the %s", err, mode)
	}
}

// A timer that was started before the mode began changes nothing, whatever its kind, except for
// the one that copies the mode.
func TestReadOnly_RefusesTimers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	org := home.Workspace.ID
	w.must(home.Token.Secret, org, CreateIssue, &CreateIssueIn{Title: "To be indexed"})
	for _, mode := range []string{serviceReadOnly, workspaceReadOnly} {
		w.bufferOf(org.raw()).Forbid(errReadOnly(mode, "It moves."))
		w.bufferOf(storage.DirectoryID).Forbid(errReadOnly(mode, "It moves."))
		before := w.fingerprint()
		for kind, op := range TimerOps {
			if kind == timerErase { // see TestReadOnly_OfAWorkspaceThatIsDeleted
				continue
			}
			workspace := org.raw()
			if kind == timerResolve || kind == timerCopyReadOnly {
				workspace = storage.DirectoryID
			}
			_, err := w.do(TimerRequest(kind, workspace), op, &TimerIn{Kind: kind, Subject: string(org)})
			if !RunsReadOnly(kind) {
				wantReadOnly(t, err, mode)
			} else if err != nil {
				t.Errorf("%s: %v", kind, err)
			}
			if w.fingerprint() != before && !RunsReadOnly(kind) {
				t.Fatalf("%s has changed something", kind)
			}
			before = w.fingerprint()
		}
		token, _ := ParseCredential(home.Token.Secret)
		uses := &TokenUses{Uses: []TokenUse{{ID: token.ID, At: At(w.now)}}}
		_, err := w.do(DeferrableRequest("", org.raw()), NoteTokenUses, uses)
		wantReadOnly(t, err, mode)
		if _, err := w.do(ServiceRequest("", org.raw()), SendAudit, &TimerIn{}); err != nil {
			t.Errorf("the copy of the operator's acts: %v", err)
		}
	}
}

// A deletion that is decided is finished although the workspace is read-only, unless the whole
// service is.
func TestReadOnly_OfAWorkspaceThatIsDeleted(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	org := home.Workspace.ID
	w.must("root", org, PutWorkspaceReadOnly, &BeginReadOnlyIn{ReadOnlyIn: ReadOnlyIn{Reason: "It goes."}})
	decided := &markDeletingIn{directoryStep: directoryStep{org}}
	if _, err := w.do(ServiceRequest("", storage.DirectoryID), markDeletingOp, decided); err != nil {
		t.Fatal(err)
	}
	finish := func() error {
		_, err := w.do(TimerRequest(timerErase, storage.DirectoryID), eraseOp, &TimerIn{Kind: timerErase, Subject: string(org)})
		return err
	}
	before := w.fingerprint()
	w.bufferOf(org.raw()).Forbid(errReadOnly(serviceReadOnly, "Maintenance"))
	wantReadOnly(t, finish(), serviceReadOnly)
	if w.fingerprint() != before {
		t.Error("something was erased while the service was read-only")
	}
	w.bufferOf(org.raw()).Forbid(errReadOnly(workspaceReadOnly, "It goes."))
	if err := finish(); err != nil {
		t.Error(err)
	}
	if n := w.traces(org); n != 0 {
		t.Errorf("%d keys are left of the deleted workspace", n)
	}
	w.verify()
}
