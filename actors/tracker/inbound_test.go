package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// These are the examples that providers publish for the verification of signatures.
func TestSignatures_AreThoseOfTheProviders(t *testing.T) {
	t.Parallel()
	const hub = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if !signedByHub(sha256.New, "sha256", "It's a Secret to Everybody", hub, []byte("Hello, World!")) {
		t.Error("vcs1: the right signature is refused")
	}
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675309"}, "Digits": {"1234"}, "From": {"+14158675309"}, "To": {"+18005551212"}}
	if !signedBySMS("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", "RSOYDt4T1cUTdK1PDd93/VVr8B8=", form) {
		t.Error("sms: the right signature is refused")
	}
	for _, wrong := range []string{"", "sha256=", hub[7:], "sha1=" + hub[7:], hub + "00", hub[:len(hub)-2], "sha256=zz"} {
		if signedByHub(sha256.New, "sha256", "It's a Secret to Everybody", wrong, []byte("Hello, World!")) {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestSignedByTracker_HasATime(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_763_000_000, 0)
	for away, want := range map[time.Duration]bool{0: true, 300 * time.Second: true, -300 * time.Second: true, 301 * time.Second: false, -301 * time.Second: false} {
		stamp := strconv.FormatInt(now.Add(away).Unix(), 10)
		signature := hex.EncodeToString(sum(sha256.New, "s", []byte(stamp), []byte{'.'}, []byte("body")))
		if got := signedByTracker("s", stamp, signature, []byte("body"), now); got != want {
			t.Errorf("%s away: %t", away, got)
		}
	}
	for _, stamp := range []string{"", "-1", "1e9", "99999999999999999999", " 1763000000"} {
		signature := hex.EncodeToString(sum(sha256.New, "s", []byte(stamp), []byte{'.'}, []byte("body")))
		if signedByTracker("s", stamp, signature, []byte("body"), now) {
			t.Errorf("the time %q is taken", stamp)
		}
	}
}

func TestInbound_RefusedCallsLeaveEveryByteAsItWas(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("right")})
	o.route(RouteSMS, "+15550100")
	o.route(RouteVCS, "acme/yard")
	before := o.state()
	stale := o.comms("right", "d", `{"message":{"text":"x"}}`)
	o.now = o.now.Add(signedWithin + 2*time.Second)
	unsent := o.comms("right", "d", `{"message":{"text":"x"}}`)
	unsent.Source = "post"
	foreign := o.sms(url.Values{"From": {"+1"}, "To": {"+15550100"}, "Body": {"x"}})
	foreign.Body = append(foreign.Body, "&From=%2B2"...)
	wrongEvent := o.vcs("push", `{"repository":{"full_name":"acme/yard"}}`)
	wrongEvent.Signature = "sha1=" + wrongEvent.Signature[7:]
	for name, call := range map[string]func() error{
		"stale":          func() error { _, err := o.provider(ReceiveComms, stale); return err },
		"wrong secret":   func() error { _, err := o.provider(ReceiveComms, o.comms("wrong", "d", `{}`)); return err },
		"unknown source": func() error { _, err := o.provider(ReceiveComms, unsent); return err },
		"no helpdesk": func() error {
			_, err := o.provider(ReceiveHelpdesk1, &ReceiveHelpdesk1In{Body: []byte(`{}`)})
			return err
		},
		"another form":   func() error { _, err := o.provider(ReceiveSMS, foreign); return err },
		"another scheme": func() error { _, err := o.provider(ReceiveVCS, wrongEvent); return err },
	} {
		err := call()
		wantCode(o, err, CodeUnauthorized)
		if o.state() != before {
			t.Errorf("%s: something was stored", name)
			before = o.state()
		}
	}
	o.inbound = InboundSettings{PublicURL: o.inbound.PublicURL}
	_, err := o.provider(ReceiveVCS, o.vcs("push", `{"repository":{"full_name":"acme/yard"}}`))
	wantCode(o, err, CodeUnauthorized) // signed with an empty secret, which is not valid
	_, err = o.provider(ReceiveSMS, o.sms(url.Values{"From": {"+1"}, "To": {"+15550100"}}))
	wantCode(o, err, CodeUnauthorized)
	if o.state() != before {
		t.Error("something was stored")
	}
	o.verify()
}

func TestInbound_RepeatsAreRememberedForAWeek(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	send := func() InboundAnswer {
		t.Helper()
		return o.took(o.provider(ReceiveComms, o.comms("s", "one", `{"message":{"text":"x","threadId":"t"}}`)))
	}
	first := send()
	before := o.state()
	if again := send(); !again.Duplicate || o.state() != before {
		t.Errorf("a repeat: %+v", again)
	}
	o.verify()
	o.pass(receivedLife - time.Hour)
	o.restart()
	if again := send(); !again.Duplicate {
		t.Errorf("a repeat after days: %+v", again)
	}
	o.pass(2 * time.Hour)
	o.verify()
	if later := send(); later.Duplicate || later.TicketID != first.TicketID {
		t.Errorf("after its time: %+v", later)
	}
	o.verify()
}

// Beyond the limit the oldest call is dropped, so that there is always room for the
// next.
func TestRecordCall_ForgetsTheOldestBeforeItsTime(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	must := func(run func(tx *Tx) error) {
		t.Helper()
		o.must("root", o.home.Workspace.ID, NewCommand[None, None]("take", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			return Reply{}, run(tx)
		}), &None{})
	}
	take := func(delivery string, want bool) {
		t.Helper()
		must(func(tx *Tx) error {
			first, err := tx.recordCall(inboundCall{Source: "s", Delivery: delivery})
			if first != want {
				t.Errorf("%s is new: %t", delivery, first)
			}
			return err
		})
	}
	count := storage.ID{15: byte(receivedTable)}
	take("a", true)
	take("b", true)
	must(func(tx *Tx) error { return tx.SetCounter(recordCountTable, count, quotas[receivedTable].most) })
	take("c", true)
	take("b", false)
	take("c", false)
	must(func(tx *Tx) error { return tx.SetCounter(recordCountTable, count, 2) }) // the present value
	take("a", true)
	o.verify()
}

func TestInbound_ThreadsGoOnWithTheirTicket(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	n := 0
	report := func(body string) TicketID {
		t.Helper()
		n++
		return o.took(o.provider(ReceiveComms, o.comms("s", strconv.Itoa(n), body))).TicketID
	}
	first := report(`{"message":{"from":"ann","subject":"S","text":"x","threadId":"t"}}`)
	if report(`{"message":{"from":"bob","text":"y","threadId":"t"}}`) != first {
		t.Error("the thread was not continued")
	}
	if report(`{"message":{"from":"ann","subject":"S","text":"x"}}`) == first || report(`{"message":{"text":"x","threadId":"T"}}`) == first {
		t.Error("another conversation went into the ticket")
	}
	o.admin(PatchTicket, &PatchTicketIn{ID: string(first), Status: Some(TicketClosed), AssigneeID: Some("bob")})
	if report(`{"message":{"text":"once more","threadId":"t"}}`) != first {
		t.Error("a closed ticket's thread was not continued")
	}
	if got := o.ticket(first); got.Status != TicketOpen || got.MessageCount != 3 || *got.AssigneeID != "bob" || got.From != "ann" {
		t.Errorf("%+v", got)
	}
	o.verify()
}

func TestInbound_ATicketBelongsToTheChannelOfItsSource(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	channel := func(kind ChannelType, active bool) ChannelID {
		t.Helper()
		return decode[SupportChannel](o, o.admin(CreateChannel, &CreateChannelIn{Type: kind, Name: "c", IsActive: active}).Body).ID
	}
	channel(ChannelEmail, false)
	oldest := channel(ChannelEmail, true)
	named := channel(ChannelEmail, true)
	off := channel(ChannelAPI, false)
	for source, want := range map[string]*ChannelID{"email": &oldest, string(named): &named, string(off): nil, "chat": nil, "crm": nil} {
		o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{source}, Secret: Some("s")})
		in := o.comms("s", "of "+source, `{"message":{"text":"x"}}`)
		in.Source = source
		got := o.ticket(o.took(o.provider(ReceiveComms, in)).TicketID)
		if (got.ChannelID == nil) != (want == nil) || want != nil && *got.ChannelID != *want {
			t.Errorf("%s: channel %v", source, got.ChannelID)
		}
	}
	o.verify()
}

func TestInbound_SecretsAreKeptInOnePlaceEach(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(CreateChannel, &CreateChannelIn{Type: ChannelChatapp1, Name: "c", Config: map[string]string{"botToken": "the-bot-token", "webhookUrl": "https://the-webhook-url"}})
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("the-mail-secret")})
	o.took(o.provider(ReceiveComms, o.comms("the-mail-secret", "d", `{"x":1}`)))
	found := map[string]storage.TableID{}
	o.each(func(key, value []byte) {
		for _, secret := range []string{"the-bot-token", "the-webhook-url", "the-mail-secret"} {
			if !bytes.Contains(value, []byte(secret)) && !bytes.Contains(key, []byte(secret)) {
				continue
			}
			if _, _, table, _, err := storage.SplitKey(key); err != nil || found[secret] != 0 {
				t.Errorf("%s is in table %d and %d", secret, found[secret], table)
			} else {
				found[secret] = table
			}
		}
	})
	if found["the-bot-token"] != channelSecretTable || found["the-webhook-url"] != channelSecretTable || found["the-mail-secret"] != inboundSecretTable {
		t.Errorf("%v", found)
	}
}

func TestDeleteIssue_LeavesItsTicketsWithoutOne(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	issue := o.created(CreateIssueIn{})
	var made []TicketID
	for i := range maxBudgetRecords + 7 { // more than one batch deletes
		id := o.took(o.provider(ReceiveComms, o.comms("s", strconv.Itoa(i), fmt.Sprintf(`{"message":{"text":"x"},"n":%d}`, i)))).TicketID
		o.admin(PatchTicket, &PatchTicketIn{ID: string(id), IssueID: Some(issue.ID)})
		made = append(made, id)
	}
	o.verify()
	o.admin(DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	for _, id := range made {
		if got := o.ticket(id); got.IssueID != nil {
			t.Fatalf("ticket %s has issue %s", id, *got.IssueID)
		}
	}
	o.verify()
}

func TestDeleteWorkspace_FreesItsRoutes(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	o.admin(CreateChannel, &CreateChannelIn{Type: ChannelAPI, Name: "c"})
	o.admin(Deals.Create, &CreateDealIn{Name: "d"})
	o.took(o.provider(ReceiveComms, o.comms("s", "d", `{"message":{"text":"x"}}`)))
	o.route(RouteSMS, "+15550100")
	o.route(RouteVCS, "acme/yard")
	o.admin(PutInboundRoute, &InboundRouteIn{Kind: RouteVCS, Key: "acme/pending"})
	o.admin(DeleteWorkspace, &None{})
	if n := o.traces(o.home.Workspace.ID); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	if a := o.took(o.provider(ReceiveSMS, o.sms(url.Values{"From": {"+1"}, "To": {"+15550100"}, "Body": {"x"}}))); a.TicketID != "" {
		t.Errorf("delivered to %+v", a)
	}
	o.verify()
}

// The verifier finds each kind of damage.
func TestVerify_FindsWhatIsWrongWithTickets(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *Tx) error{
		"no issue":          func(tx *Tx) error { return dropFirst(tx, &issues) },
		"no ticket":         func(tx *Tx) error { return dropFirst(tx, &tickets) },
		"no message":        func(tx *Tx) error { return dropFirst(tx, &ticketMessages) },
		"no channel":        func(tx *Tx) error { return dropFirst(tx, &channels) },
		"no secret":         func(tx *Tx) error { return dropFirst(tx, &channelSecrets) },
		"never to be swept": func(tx *Tx) error { return dropFirst(tx, &timers) },
		"no deal":           func(tx *Tx) error { return dropFirst(tx, &deals) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newInboundFixture(t)
			o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
			o.admin(CreateChannel, &CreateChannelIn{Type: ChannelHelpdesk2, Name: "c", Config: map[string]string{"accessToken": "0123456789"}})
			o.admin(Deals.Create, &CreateDealIn{Name: "d"})
			id := o.took(o.provider(ReceiveComms, o.comms("s", "d", `{"message":{"text":"x"}}`))).TicketID
			o.admin(CreateTicketIssue, &TicketIssueIn{TicketID: string(id)})
			o.verify()
			o.must("root", o.home.Workspace.ID, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, harm(tx)
			}), &None{})
			report, err := storage.Verify(t.Context(), o.db, Schema())
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Error("nothing was found")
			}
		})
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for markup, want := range map[string]string{
		"":                                  "",
		"plain, 1 > 0":                      "plain, 1 > 0",
		"<p>a</p><p>b</p>":                  "a\nb",
		"a<br/>b<BR>c":                      "a\nb\nc",
		`<a href="https://x">link</a> &lt;`: "link <",
		"<p>open <b":                        "open <b",
		"<script>x":                         "x",
	} {
		if got := plainText(markup); got != want {
			t.Errorf("%q: %q, want %q", markup, got, want)
		}
	}
}

// Payloads are shown as they came, so they are held to what all bodies are (Decision 3).
func TestPayloadFault(t *testing.T) {
	t.Parallel()
	for body, fault := range map[string]string{
		`{"a": 1, "b": {"a": "\\u0000"}, "n": 1e308, "pair": "\ud83d\ude00"}`: "",
		` [1]`:                         "must be a JSON object",
		`{"a": 1} x`:                   "not JSON",
		"{\"a\": \"\xff\"}":            "not UTF-8",
		`{"a": 1, "a": 2}`:             "duplicate",
		`{"x": [{"a": 1, "a": 2}]}`:    "duplicate",
		`{"a": "\ud800"}`:              "surrogate",
		`{"a": ["\u0000"]}`:            "NUL",
		`{"\u0000": 1}`:                "NUL",
		`{"a": 1e999}`:                 "out of range",
		`{"a": "\ud800", "b": -1e999}`: "out of range",
	} {
		if got := payloadFault([]byte(body)); (fault == "") != (got == "") || !strings.Contains(got, fault) {
			t.Errorf("%s: %q, want %q", body, got, fault)
		}
	}
}
