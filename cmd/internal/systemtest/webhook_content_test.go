package systemtest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cmd/internal/node"
	"switchyard/internal/testkit"
)

// bodyLog keeps the bodies of deliveries, by the event's sequence.
type bodyLog struct {
	mu     sync.Mutex
	events map[uint64]toldEvent
	texts  []string
}

type toldEvent struct {
	ID, Type       string
	OrganizationID string
	Sequence       uint64
	Actor          map[string]string
	Data           object
	Changes        map[string]map[string]any
}

func (l *bodyLog) take(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var e toldEvent
	if err == nil {
		err = json.Unmarshal(body, &e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.texts = append(l.texts, "unreadable: "+err.Error())
		return
	}
	l.events[e.Sequence] = e
	l.texts = append(l.texts, string(body))
}

// Deliveries are the events of Decision 44, each once where nothing fails, with the
// resource as an admin reads it and nothing else of it.
func TestWebhooks_TellOfIssuesWhatAdminsSee(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) {
		c.WebhooksAllowHTTP, c.WebhooksAllowPrivate = true, true
		c.VCSSecret, c.PublicURL = vcsSecret, publicURL
	})
	base := "http://" + n.HTTPAddr()
	home, err := NewClient(base, "", 4).Onboard(t.Context(), "Told", "told")
	if err != nil {
		t.Fatal(err)
	}
	f := &filled{T: t, c: NewClient(base, home.Token.Token, 4), id: home.Workspace.ID}
	told := &bodyLog{events: map[uint64]toldEvent{}}
	receiver := httptest.NewServer(http.HandlerFunc(told.take))
	t.Cleanup(receiver.Close)
	hook := f.do("POST", "/webhook-subscriptions", object{"url": receiver.URL}, http.StatusCreated)

	// An issue that few may see, and all that hangs on it.
	private := f.make("/teams", object{"name": "Private", "key": "PRIV", "isPublic": false})
	parent := f.make("/issues", object{"title": "Parent", "teamId": private})
	capture := captureBody(picture(100))
	capture["teamId"] = private
	issue := f.make("/capture", capture)
	f.do("PATCH", "/issues/"+issue, object{"parentId": parent, "assigneeId": "ann", "estimate": 3}, http.StatusOK)
	f.do("PUT", "/issues/"+issue+"/permissions", object{"actorId": "a-grantee-of-the-issue"}, http.StatusOK)
	share := f.do("POST", "/issues/"+issue+"/share", nil, http.StatusCreated)["token"].(string)
	comment := f.make("/issues/"+issue+"/comments", object{"body": "First"})
	f.do("PATCH", "/comments/"+comment, object{"body": "Second"}, http.StatusOK)
	shown := map[string]object{comment: f.do("GET", "/comments/"+comment, nil, http.StatusOK)}
	f.do("DELETE", "/comments/"+comment, nil, http.StatusNoContent)
	f.do("PATCH", "/issues/"+issue, object{"title": "In one", "status": "done", "labelIds": []string{"x"}, "repo": "Acme/Yard", "branch": "midnight"}, http.StatusOK)
	f.do("POST", "/issues/batch", object{"ids": []string{issue, parent}, "patch": object{"priority": "high"}}, http.StatusOK)
	f.do("PATCH", "/issues/"+issue, object{"priority": "high"}, http.StatusOK) // no change, no event
	f.do("DELETE", "/issues/"+f.make("/issues", object{"title": "Gone"}), nil, http.StatusNoContent)

	// Calls of providers.
	f.make("/support-channels", object{"type": "chatapp1", "name": "Chat", "config": object{"channelId": "C01", "botToken": "xoxb-of-the-channel"}})
	secret := f.do("PUT", "/inbound-secrets/mail", object{}, http.StatusOK)["secret"].(string)
	call := func(d *inboundFixture, body, delivery string) inboundAnswer {
		return d.send("/webhooks/comms/"+f.id+"/mail", jsonType, []byte(body), http.StatusAccepted, append(signComms(secret, time.Now(), []byte(body)), "X-Tracker-Delivery", delivery)...)
	}
	d := &inboundFixture{T: t, base: base, id: f.id}
	ticket := call(d, `{"message":{"from":"Ann","subject":"Help","text":"It fails."}}`, "one").TicketID
	f.do("PATCH", "/tickets/"+ticket, object{"issueId": issue}, http.StatusOK)
	shown[ticket] = f.do("GET", "/tickets/"+ticket, nil, http.StatusOK)
	call(d, `{"type":"call.ended"}`, "two")
	d.route("vcs1/Acme/Yard")
	pull := recorded(t, "pull_request.opened.json")
	d.send("/vcs1", jsonType, pull, http.StatusAccepted, signVCS(vcsSecret, "pull_request", "three", pull)...)
	shown[issue], shown[parent] = f.do("GET", "/issues/"+issue, nil, http.StatusOK), f.do("GET", "/issues/"+parent, nil, http.StatusOK)
	if shown[issue]["prUrl"] == nil {
		t.Error("the pull request did not reach its issue")
	}
	deal := f.make("/deals", object{"name": "Deal"})
	f.do("PATCH", "/deals/"+deal, object{"stage": "won"}, http.StatusOK)
	shown[deal] = f.do("GET", "/deals/"+deal, nil, http.StatusOK)
	f.do("DELETE", "/deals/"+deal, nil, http.StatusNoContent)

	testkit.Await(t.Context(), t, "the last event", func() bool {
		told.mu.Lock()
		defer told.mu.Unlock()
		e := told.events[uint64(len(told.events))]
		return e.Type == "deal.deleted"
	})
	told.mu.Lock()
	defer told.mu.Unlock()
	told.check(t, f.id, shown, issue)
	all := strings.Join(told.texts, "\n")
	for name, word := range map[string]string{
		"grants": "a-grantee-of-the-issue", "shares": share, "channels' secrets": "xoxb-of-the-channel", "inbound secrets": secret, "its own secret": hook["secret"].(string), "tokens": home.Token.Token,
	} {
		if strings.Contains(all, word) {
			t.Errorf("deliveries tell of %s", name)
		}
	}
}

// check holds what was told against what can be read.
func (l *bodyLog) check(t *testing.T, workspace string, shown map[string]object, restricted string) {
	t.Helper()
	if len(l.texts) != len(l.events) {
		t.Errorf("%d deliveries of %d events", len(l.texts), len(l.events))
	}
	types, last := map[string]bool{}, map[string]toldEvent{}
	for sequence := range uint64(len(l.events)) {
		e, there := l.events[sequence+1]
		if !there || e.OrganizationID != workspace || e.ID == "" || len(e.Actor) != 2 || e.Actor["id"] == "" {
			t.Errorf("event %d is %+v", sequence+1, e)
		}
		if !slices.Contains(tracker.EventTypes(), e.Type) {
			t.Errorf("%s is no type of event", e.Type)
		}
		types[e.Type] = true
		id, _ := e.Data["id"].(string)
		if shape := shown[id]; shape != nil {
			if told, read := slices.Sorted(maps.Keys(e.Data)), slices.Sorted(maps.Keys(shape)); !slices.Equal(told, read) {
				t.Errorf("%s has the fields\n%v, and is read with\n%v", e.Type, told, read)
			}
			if !strings.HasSuffix(e.Type, ".deleted") {
				last[id] = e
			}
		}
		for field := range e.Changes {
			if _, there := e.Data[field]; !there {
				t.Errorf("%s tells of a change of %s, which it does not have", e.Type, field)
			}
		}
		if text, _ := json.Marshal(e.Data); (e.Type == "vcs.event" || e.Type == "comms.event") && strings.Contains(string(text), restricted) {
			t.Errorf("%s names an issue that not everybody sees", e.Type)
		}
	}
	for id, e := range last {
		if !reflect.DeepEqual(e.Data, shown[id]) {
			t.Errorf("%s told last of\n%v, which reads\n%v", e.Type, e.Data, shown[id])
		}
	}
	for _, text := range l.texts {
		var whole map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &whole); err != nil {
			t.Error(err)
		}
		delete(whole, "changes")
		if got := slices.Sorted(maps.Keys(whole)); !slices.Equal(got, []string{"actor", "createdAt", "data", "id", "organizationId", "sequence", "type"}) {
			t.Errorf("an event has the fields %v", got)
		}
	}
	for _, want := range []string{
		"issue.created", "issue.updated", "issue.deleted", "comment.created", "comment.updated", "comment.deleted",
		"ticket.created", "ticket.updated", "ticket.message", "deal.created", "deal.updated", "deal.deleted", "vcs.event", "comms.event",
	} {
		if !types[want] {
			t.Errorf("no %s was told of", want)
		}
	}
}
