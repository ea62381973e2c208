package tracker

import (
	"strings"
	"testing"
)

func TestReadOnly_RefusesChangesButTheOperators(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	create := &CreateIssueIn{Title: "x"}
	w.must(user, org, CreateIssue, create, "before")
	w.bufferOf(org.raw()).Forbid(errReadOnly("workspace", "It moves."))
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
	w.must("root", org, PutWorkspaceReadOnly, &ReadOnlyIn{Reason: "It moves."})
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
