package systemtest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestInbound_CommsMessagesBecomeTickets(t *testing.T) {
	t.Parallel()
	d := newInboundFixture(t)
	secret := d.secret(d.home, d.id, "mail", "")
	path := "/webhooks/comms/" + d.id + "/mail"
	body := recorded(t, "comms.message.json")
	signed := signComms(secret, time.Now(), body)
	first := d.send(path, jsonType, body, http.StatusAccepted, append(signed, "X-Tracker-Delivery", "one")...)
	if first.TicketID == "" || first.MessageID == "" || first.Duplicate {
		t.Fatalf("%+v", first)
	}
	// The sender tries again, signed anew, under the same id.
	later := signComms(secret, time.Now().Add(-time.Minute), body)
	if again := d.send(path, jsonType, body, http.StatusOK, append(later, "X-Tracker-Delivery", "one")...); !again.Duplicate || again.TicketID != "" {
		t.Errorf("%+v", again)
	}
	moment := time.Now().Add(-2 * time.Minute)
	second := d.send(path, jsonType, body, http.StatusAccepted, append(signComms(secret, moment, body), "X-Tracker-Delivery", "two")...)
	if second.TicketID != first.TicketID || second.MessageID == first.MessageID {
		t.Errorf("the thread went on as %+v, after %+v", second, first)
	}
	ticket := d.get("/tickets/" + first.TicketID)
	if ticket["subject"] != "Logins fail" || ticket["from"] != "Ann Miller <ann@example.com>" || ticket["messageCount"] != 2.0 || ticket["status"] != "open" {
		t.Errorf("%v", ticket)
	}
	// Without an id the same bytes at the same time are the same call.
	signed = signComms(secret, moment.Add(time.Second), body)
	unnamed := d.send(path, "", body, http.StatusAccepted, signed...)
	if again := d.send(path, jsonType, body, http.StatusOK, signed...); unnamed.TicketID != first.TicketID || !again.Duplicate {
		t.Errorf("%+v, then %+v", unnamed, again)
	}
	// Two signatures stand side by side while the sender changes its secret.
	both := signComms("the secret before", moment.Add(2*time.Second), body)
	right := signComms(secret, moment.Add(2*time.Second), body)
	d.send(path, jsonType, body, http.StatusAccepted, "X-Tracker-Timestamp", right[1], "X-Tracker-Signature", both[3]+","+right[3], "X-Tracker-Delivery", "three")
	// A call without a message is an event.
	event := []byte(`{"type": "call.ended", "seconds": 61}`)
	if a := d.send(path, jsonType, event, http.StatusAccepted, signComms(secret, time.Now(), event)...); a.EventID == "" || a.TicketID != "" {
		t.Errorf("%+v", a)
	}
	// So is one whose message is no object.
	for _, text := range []string{`{"message":"Hi"}`, `{"message": ["Hi"]}`, `{"message":3}`, `{"message":false}`, `{"message":null}`} {
		event := []byte(text)
		if a := d.send(path, jsonType, event, http.StatusAccepted, signComms(secret, time.Now(), event)...); a.EventID == "" || a.TicketID != "" {
			t.Errorf("%s: %+v", text, a)
		}
	}
	// A new secret ends the old one.
	d.secret(d.home, d.id, "mail", "another secret of it")
	event = []byte(`{"type": "call.begun"}`)
	d.send(path, jsonType, event, http.StatusUnauthorized, signComms(secret, time.Now(), event)...)
	d.send(path, jsonType, event, http.StatusAccepted, signComms("another secret of it", time.Now(), event)...)
}

func TestInbound_WhatIsNotSignedAsItMustBeStoresNothing(t *testing.T) {
	t.Parallel()
	d := newInboundFixture(t)
	secret := d.secret(d.home, d.id, "mail", "")
	d.secret(d.other, d.otherID, "mail", "of the other workspace")
	inboundFixture := d.secret(d.home, d.id, "helpdesk1", "client secret of the app")
	d.route("sms/+15550100")
	d.route("vcs1/acme/yard")
	issue := d.issue()
	now := time.Now()
	comms, created, sms, pull := recorded(t, "comms.message.json"), recorded(t, "conversation.user.created.json"), recorded(t, "sms.form"), recorded(t, "pull_request.opened.json")
	path := "/webhooks/comms/" + d.id + "/mail"
	flip := func(headers []string) []string { // the last digit of the signature
		headers = slices.Clone(headers)
		last := headers[1]
		if headers[0] == "X-Tracker-Timestamp" {
			last = headers[3]
		}
		changed := last[:len(last)-2] + map[bool]string{true: "00", false: "11"}[last[len(last)-2:] != "00"]
		headers[slices.Index(headers, last)] = changed
		return headers
	}
	tampered := func(body []byte) []byte { return bytes.Replace(body, []byte("ail"), []byte("AIL"), 1) }
	stamp := signComms(secret, now, comms)
	for _, c := range []struct {
		name, path, contentType string
		body                    []byte
		headers                 []string
	}{
		{"comms, unsigned", path, jsonType, comms, nil},
		{"comms, no time", path, jsonType, comms, stamp[2:]},
		{"comms, no signature", path, jsonType, comms, stamp[:2]},
		{"comms, wrong", path, jsonType, comms, flip(stamp)},
		{"comms, another body", path, jsonType, tampered(comms), stamp},
		{"comms, another secret", path, jsonType, comms, signComms("guess", now, comms)},
		{"comms, stale", path, jsonType, comms, signComms(secret, now.Add(-301*time.Second), comms)},
		{"comms, from the future", path, jsonType, comms, signComms(secret, now.Add(302*time.Second), comms)},
		{"comms, a time that is none", path, jsonType, comms, append([]string{"X-Tracker-Timestamp", "now"}, stamp[2:]...)},
		{"comms, unknown source", "/webhooks/comms/" + d.id + "/post", jsonType, comms, stamp},
		{"comms, another workspace", "/webhooks/comms/" + d.otherID + "/mail", jsonType, comms, stamp},
		{"comms, no workspace", "/webhooks/comms/01935000-0000-7000-8000-0000000000aa/mail", jsonType, comms, stamp},
		{"comms, no id", "/webhooks/comms/nope/mail", jsonType, comms, stamp},
		{"helpdesk1, no id", "/helpdesk1/nope", jsonType, created, signHelpdesk(inboundFixture, created)},
		{"comms, over many signatures", path, jsonType, comms, []string{"X-Tracker-Timestamp", stamp[1], "X-Tracker-Signature", strings.Repeat("00,", 10) + stamp[3]}},
		{"helpdesk1, unsigned", "/helpdesk1/" + d.id, jsonType, created, nil},
		{"helpdesk1, wrong", "/helpdesk1/" + d.id, jsonType, created, flip(signHelpdesk(inboundFixture, created))},
		{"helpdesk1, another body", "/helpdesk1/" + d.id, jsonType, tampered(created), signHelpdesk(inboundFixture, created)},
		{"helpdesk1, another workspace", "/helpdesk1/" + d.otherID, jsonType, created, signHelpdesk(inboundFixture, created)},
		{"helpdesk1, no scheme", "/helpdesk1/" + d.id, jsonType, created, []string{"X-Hub-Signature", signHelpdesk(inboundFixture, created)[1][5:]}},
		{"sms, unsigned", "/support/sms/inbound", formType, sms, nil},
		{"sms, wrong", "/support/sms/inbound", formType, sms, signSMS("guess", sms)},
		{"sms, another field", "/support/sms/inbound", formType, append(slices.Clone(sms), "&Extra=1"...), signSMS(smsSecret, sms)},
		{"sms, no base64", "/support/sms/inbound", formType, sms, []string{"X-Twilio-Signature", "???"}},
		{"vcs1, unsigned", "/vcs1", jsonType, pull, []string{"X-GitHub-Event", "pull_request", "X-GitHub-Delivery", "d"}},
		{"vcs1, wrong", "/vcs1", jsonType, pull, signVCS("guess", "pull_request", "d", pull)},
		{"vcs1, another body", "/vcs1", jsonType, append(slices.Clone(pull), ' '), signVCS(vcsSecret, "pull_request", "d", pull)},
	} {
		if status, answer, err := d.post(t.Context(), c.path, c.contentType, c.body, c.headers...); err != nil || status != http.StatusUnauthorized || !bytes.Contains(answer, []byte(`"UNAUTHORIZED"`)) {
			t.Errorf("%s: %d %s, %v", c.name, status, answer, err)
		}
	}
	// Signed, and yet not to be taken.
	huge := []byte(`{"message":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`)
	d.send(path, jsonType, huge, http.StatusRequestEntityTooLarge, signComms(secret, now, huge)...)
	for _, text := range []string{`[]`, `{`, `{"message":{}}`, `{"message":{"text":3}}`, `{"message":{"text":"a\u0000b"}}`, `{"message":{"text":"x","threadId":"` + strings.Repeat("t", 256) + `"}}`,
		`{"message":{"text":"` + strings.Repeat("x", 65537) + `"}}`, "{\"message\":{\"text\":\"\xff\"}}", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), ``} {
		d.send(path, jsonType, []byte(text), http.StatusBadRequest, signComms(secret, now, []byte(text))...)
	}
	large := []byte(`{"event":"` + strings.Repeat("x", 300<<10) + `"}`)
	d.send(path, jsonType, large, http.StatusRequestEntityTooLarge, signComms(secret, now, large)...)
	d.send(path, "text/plain", comms, http.StatusUnsupportedMediaType, stamp...)
	d.send(path, "text/plain", comms, http.StatusUnauthorized, flip(stamp)...) // nothing is told before the signature is right
	nobody := bytes.Replace(sms, []byte("To=%2B15550100"), []byte("To=%2B15550999"), 1)
	if a := d.send("/support/sms/inbound", formType, nobody, http.StatusAccepted, signSMS(smsSecret, nobody)...); a.TicketID != "" {
		t.Errorf("a number that nobody has: %+v", a)
	}
	elsewhere := bytes.ReplaceAll(pull, []byte("Acme/Yard"), []byte("Acme/Shed"))
	if a := d.send("/vcs1", jsonType, elsewhere, http.StatusAccepted, signVCS(vcsSecret, "pull_request", "d", elsewhere)...); a.EventID != "" {
		t.Errorf("a repository that nobody has: %+v", a)
	}
	d.send("/vcs1", jsonType, pull, http.StatusBadRequest, signVCS(vcsSecret, "no such!", "d", pull)...)
	d.nothing()
	if got := d.get("/issues/" + issue); got["prUrl"] != nil {
		t.Errorf("the issue shows a pull request: %v", got)
	}
	// None of it was remembered: what is right now is taken for the first time.
	d.send(path, jsonType, comms, http.StatusAccepted, append(stamp, "X-Tracker-Delivery", "d")...)
	d.send("/vcs1", jsonType, pull, http.StatusAccepted, signVCS(vcsSecret, "pull_request", "d", pull)...)
}

// issue makes YARD-1.
func (d *inboundFixture) issue() string {
	d.Helper()
	var made Issue
	if err := d.home.Decode(d.Context(), "POST", "/workspaces/"+d.id+"/issues", map[string]string{"title": "Logins fail"}, http.StatusCreated, &made); err != nil {
		d.Fatal(err)
	}
	if made.Identifier != "YARD-1" {
		d.Fatalf("the issue is %s", made.Identifier)
	}
	return made.ID
}

func TestInbound_HelpdeskConversationsAreTickets(t *testing.T) {
	t.Parallel()
	d := newInboundFixture(t)
	secret := d.secret(d.home, d.id, "helpdesk1", "client secret of the app")
	path := "/helpdesk1/" + d.id
	send := func(name string, want int) inboundAnswer {
		t.Helper()
		body := recorded(t, name)
		return d.send(path, jsonType, body, want, signHelpdesk(secret, body)...)
	}
	created := send("conversation.user.created.json", http.StatusAccepted)
	if again := send("conversation.user.created.json", http.StatusOK); !again.Duplicate {
		t.Errorf("%+v", again)
	}
	if replied := send("conversation.user.replied.json", http.StatusAccepted); replied.TicketID != created.TicketID || replied.MessageID == "" {
		t.Errorf("%+v after %+v", replied, created)
	}
	ticket := d.get("/tickets/" + created.TicketID)
	if ticket["from"] != "Ann Miller <ann@example.com>" || ticket["threadId"] != "215468710000001" || ticket["subject"] != "Hello," || ticket["status"] != "open" || ticket["messageCount"] != 2.0 {
		t.Errorf("%v", ticket)
	}
	messages := fmt.Sprint(d.get("/tickets/" + created.TicketID + "/messages"))
	if !strings.Contains(messages, "body:Hello,\nlogins fail at midnight & noon.\nWhy?") || !strings.Contains(messages, "body:It happened again.") {
		t.Errorf("%s", messages)
	}
	if closed := send("conversation.admin.closed.json", http.StatusAccepted); closed.TicketID != created.TicketID {
		t.Errorf("%+v", closed)
	}
	if got := d.get("/tickets/" + created.TicketID); got["status"] != "closed" || got["messageCount"] != 2.0 {
		t.Errorf("%v", got)
	}
	// The closing of a conversation from before, and a topic of no interest.
	for _, body := range []string{
		`{"type":"notification_event","id":"n1","topic":"conversation.admin.closed","data":{"item":{"type":"conversation","id":"1"}}}`,
		`{"type":"notification_event","id":"n2","topic":"contact.created","data":{"item":{"type":"contact","id":"1"}}}`,
	} {
		if a := d.send(path, jsonType, []byte(body), http.StatusAccepted, signHelpdesk(secret, []byte(body))...); a.TicketID != "" {
			t.Errorf("%+v", a)
		}
	}
	nameless := []byte(`{"type":"notification_event","id":"n3","topic":"conversation.user.created","data":{"item":{"type":"conversation"}}}`)
	d.send(path, jsonType, nameless, http.StatusBadRequest, signHelpdesk(secret, nameless)...)
}

func TestInbound_TextMessagesGoToTheSendersTicket(t *testing.T) {
	t.Parallel()
	d := newInboundFixture(t)
	d.route("sms/+15550100")
	body := recorded(t, "sms.form")
	const path = "/support/sms/inbound"
	first := d.send(path, formType, body, http.StatusAccepted, signSMS(smsSecret, body)...)
	if again := d.send(path, formType, body, http.StatusOK, signSMS(smsSecret, body)...); !again.Duplicate {
		t.Errorf("%+v", again)
	}
	ticket := d.get("/tickets/" + first.TicketID)
	if ticket["from"] != "+15550111" || ticket["source"] != "sms" || ticket["subject"] != "Logins fail, again ✋" {
		t.Errorf("%v", ticket)
	}
	next := func(sid string) inboundAnswer {
		t.Helper()
		b := bytes.ReplaceAll(body, []byte("SM0123456789abcdef0123456789abcdef"), []byte(sid))
		return d.send(path, formType, b, http.StatusAccepted, signSMS(smsSecret, b)...)
	}
	if a := next("SM2"); a.TicketID != first.TicketID {
		t.Errorf("the second message went to %+v", a)
	}
	if err := d.home.Decode(t.Context(), "PATCH", "/workspaces/"+d.id+"/tickets/"+first.TicketID, map[string]string{"status": "closed"}, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	if a := next("SM3"); a.TicketID == first.TicketID {
		t.Error("a message went to a closed ticket")
	}
}

func TestInbound_PullRequestsAndChecksReachTheirIssue(t *testing.T) {
	t.Parallel()
	d := newInboundFixture(t)
	d.route("vcs1/acme%2Fyard")
	issue := d.issue()
	send := func(event, delivery, name string) inboundAnswer {
		t.Helper()
		body := recorded(t, name)
		return d.send("/vcs1", jsonType, body, http.StatusAccepted, signVCS(vcsSecret, event, delivery, body)...)
	}
	wants := func(state string, checks any) {
		t.Helper()
		if got := d.get("/issues/" + issue); got["prUrl"] != "https://github.com/Acme/Yard/pull/2" || got["prState"] != state || got["prCheckState"] != checks {
			t.Errorf("%v %v %v, want %s %v", got["prUrl"], got["prState"], got["prCheckState"], state, checks)
		}
	}
	if a := send("ping", "d0", "ping.json"); a.EventID == "" || len(a.IssueIDs) > 0 {
		t.Errorf("%+v", a)
	}
	if a := send("pull_request", "d1", "pull_request.opened.json"); !slices.Equal(a.IssueIDs, []string{issue}) {
		t.Errorf("%+v", a)
	}
	wants("draft", nil)
	send("check_suite", "d2", "check_suite.requested.json")
	wants("draft", "pending")
	send("check_suite", "d3", "check_suite.completed.json")
	wants("draft", "failure")
	// As a form, which is what the host sends unless it is told otherwise.
	form := []byte("payload=" + url.QueryEscape(string(recorded(t, "pull_request.closed.json"))))
	d.send("/vcs1", formType, form, http.StatusAccepted, signVCS(vcsSecret, "pull_request", "d4", form)...)
	wants("merged", "failure")
	body := recorded(t, "pull_request.opened.json")
	if a := d.send("/vcs1", jsonType, body, http.StatusOK, signVCS(vcsSecret, "pull_request", "d1", body)...); !a.Duplicate {
		t.Errorf("%+v", a)
	}
	wants("merged", "failure")
}

// Providers try again while the first call is still on its way.
func TestInbound_OneCallManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	d := newInboundFixture(t)
	secret := d.secret(d.home, d.id, "mail", "")
	body := []byte(`{"message":{"from":"ann","text":"Hello"}}`)
	headers := append(signComms(secret, time.Now(), body), "X-Tracker-Delivery", "one", "Idempotency-Key", "ignored")
	const calls = 24
	statuses := make([]int, calls)
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			var err error
			if statuses[i], _, err = d.post(t.Context(), "/webhooks/comms/"+d.id+"/mail", jsonType, body, headers...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	slices.Sort(statuses)
	if statuses[0] != http.StatusOK || statuses[calls-2] != http.StatusOK || statuses[calls-1] != http.StatusAccepted {
		t.Errorf("statuses %v", statuses)
	}
	if list := d.get("/tickets"); len(list["tickets"].([]any)) != 1 {
		t.Errorf("%v", list)
	}
	// A key a client could add does not get an unsigned call an answer.
	d.send("/webhooks/comms/"+d.id+"/mail", jsonType, body, http.StatusUnauthorized, "Idempotency-Key", "ignored")
}
