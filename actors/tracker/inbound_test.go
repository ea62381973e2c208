package tracker

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// office is a town with one workspace that providers send to.
type office struct {
	*town
	home Onboarded
	n    int
}

func newOffice(t tester) *office {
	t.Helper()
	o := &office{town: newTown(t)}
	o.inbound = InboundSettings{SMSSecret: "sms", VCSSecret: "vcs", PublicURL: "https://yard.example"}
	o.home = decode[Onboarded](o, o.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "Core", Slug: "core"}).Body)
	return o
}

func (o *office) admin(op *Op, in any) Reply {
	o.Helper()
	return o.must(o.home.Token.Secret, o.home.Workspace.ID, op, in)
}

// provider makes a call without a credential.
func (o *office) provider(op *Op, in any) (InboundAnswer, error) {
	o.Helper()
	reply, err := o.ask("", o.home.Workspace.ID, op, in)
	if err != nil {
		return InboundAnswer{}, err
	}
	a := decode[InboundAnswer](o, reply.Body)
	if want := map[bool]Outcome{true: Done, false: Accepted}[a.Duplicate]; reply.Outcome != want {
		o.Errorf("outcome %d of %+v", reply.Outcome, a)
	}
	return a, nil
}

func (o *office) took(a InboundAnswer, err error) InboundAnswer {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
	return a
}

func (o *office) macOf(h func() hash.Hash, secret, text string) []byte {
	mac := hmac.New(h, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (o *office) comms(secret, delivery, body string) *ReceiveCommsIn {
	stamp := strconv.FormatInt(o.now.Unix(), 10)
	return &ReceiveCommsIn{
		Source: "mail", Timestamp: stamp, Delivery: delivery, Body: []byte(body),
		Signature: hex.EncodeToString(o.macOf(sha256.New, secret, stamp+"."+body)),
	}
}

func (o *office) vcs(event, body string) *ReceiveVCSIn {
	o.n++
	return &ReceiveVCSIn{
		Event: event, Delivery: strconv.Itoa(o.n), Body: []byte(body),
		Signature: "sha256=" + hex.EncodeToString(o.macOf(sha256.New, o.inbound.VCSSecret, body)),
	}
}

func (o *office) sms(form url.Values) *ReceiveSMSIn {
	text := o.inbound.PublicURL + smsPath
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range form {
			if !yield(name) {
				return
			}
		}
	}) {
		text += name + form.Get(name)
	}
	return &ReceiveSMSIn{Body: []byte(form.Encode()), Signature: base64.StdEncoding.EncodeToString(o.macOf(sha1.New, o.inbound.SMSSecret, text))}
}

// route takes what is sent about a key, in the form that a request's is brought into.
func (o *office) route(kind RouteKind, key string) {
	o.Helper()
	o.admin(PutInboundRoute, &InboundRouteIn{Kind: kind, Key: key})
}

func (o *office) ticket(id TicketID) Ticket {
	o.Helper()
	return decode[Ticket](o, o.admin(TicketByID, &RecordIn{ID: string(id)}).Body)
}

func (o *office) created(in CreateIssueIn) Issue {
	o.Helper()
	if in.Title == "" {
		in.Title = "An issue"
	}
	return decode[CreatedIssue](o, o.admin(CreateIssue, &in).Body).Issue
}

func (o *office) read(id IssueID) Issue {
	o.Helper()
	return decode[Issue](o, o.admin(IssueByID, &IssueByIDIn{ID: string(id)}).Body)
}

// state is everything on disk.
func (o *office) state() string {
	o.Helper()
	h := sha256.New()
	o.each(func(key, value []byte) { _, _ = fmt.Fprintf(h, "%d:%x=%d:%x;", len(key), key, len(value), value) })
	return hex.EncodeToString(h.Sum(nil))
}

// The examples that providers publish for whoever checks their signatures.
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
	o := newOffice(t)
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
	wantCode(o, err, CodeUnauthorized) // signed with an empty secret, which is none
	_, err = o.provider(ReceiveSMS, o.sms(url.Values{"From": {"+1"}, "To": {"+15550100"}}))
	wantCode(o, err, CodeUnauthorized)
	if o.state() != before {
		t.Error("something was stored")
	}
	o.verify()
}

func TestInbound_RepeatsAreRememberedForAWeek(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
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

// Past the bound the oldest is forgotten, so that there is always room for the next.
func TestTake_ForgetsTheOldestBeforeItsTime(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	must := func(run func(tx *Tx) error) {
		t.Helper()
		o.must("root", o.home.Workspace.ID, NewCommand[None, None]("take", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			return Reply{}, run(tx)
		}), &None{})
	}
	take := func(delivery string, want bool) {
		t.Helper()
		must(func(tx *Tx) error {
			first, err := tx.take(inboundCall{"s", delivery})
			if first != want {
				t.Errorf("%s is new: %t", delivery, first)
			}
			return err
		})
	}
	tally := storage.ID{15: byte(receivedTable)}
	take("a", true)
	take("b", true)
	must(func(tx *Tx) error { return tx.SetCounter(tallyTable, tally, bounds[receivedTable].most) })
	take("c", true)
	take("b", false)
	take("c", false)
	must(func(tx *Tx) error { return tx.SetCounter(tallyTable, tally, 2) }) // as it is
	take("a", true)
	o.verify()
}

func TestInbound_ThreadsGoOnWithTheirTicket(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	n := 0
	say := func(body string) TicketID {
		t.Helper()
		n++
		return o.took(o.provider(ReceiveComms, o.comms("s", strconv.Itoa(n), body))).TicketID
	}
	first := say(`{"message":{"from":"ann","subject":"S","text":"x","threadId":"t"}}`)
	if say(`{"message":{"from":"bob","text":"y","threadId":"t"}}`) != first {
		t.Error("the thread was not continued")
	}
	if say(`{"message":{"from":"ann","subject":"S","text":"x"}}`) == first || say(`{"message":{"text":"x","threadId":"T"}}`) == first {
		t.Error("another conversation went into the ticket")
	}
	o.admin(PatchTicket, &PatchTicketIn{ID: string(first), Status: Some(TicketClosed), AssigneeID: Some("bob")})
	if say(`{"message":{"text":"once more","threadId":"t"}}`) != first {
		t.Error("a closed ticket's thread was not continued")
	}
	if got := o.ticket(first); got.Status != TicketOpen || got.MessageCount != 3 || *got.AssigneeID != "bob" || got.From != "ann" {
		t.Errorf("%+v", got)
	}
	o.verify()
}

func TestInbound_ATicketBelongsToTheChannelOfItsSource(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
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
	o := newOffice(t)
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

func TestEachIdentifier(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"CORE-12": "CORE-12", "core-12-fix-login": "core-12", "feature/Core-7_x": "Core-7", "(CORE-1, WEB-2)": "CORE-1 WEB-2",
		"fixes CORE-12.": "CORE-12", "CORE-12a": "", "éCORE-12": "", "CORE-": "", "-12": "", "CORE--12": "", "a-b-3": "b-3",
		"TOOLONGAKEY-1": "", "CORE-123456789012345678901": "", "CORE-1-2": "CORE-1 1-2", "2026-11-20": "2026-11 11-20", "": "", "x": "",
	} {
		var got []string
		eachIdentifier(text, func(s string) bool { got = append(got, s); return true })
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %v, want %q", text, got, want)
		}
	}
}

func pullJSON(action, state, title, body, branch string, number int, draft, merged bool) string {
	return fmt.Sprintf(`{"action":%q,"pull_request":{"html_url":"https://github.com/acme/yard/pull/%d","state":%q,"title":%q,"body":%q,"head":{"ref":%q},"draft":%t,"merged":%t},"repository":{"full_name":"Acme/Yard","html_url":"https://github.com/acme/yard"}}`,
		action, number, state, title, body, branch, draft, merged)
}

func TestInbound_PullRequestsFindTheirIssues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		title, body, branch string
		about               string // places of the issues
	}{
		"title":              {"Fix core-1 at last", "", "x", "0"},
		"body":               {"Fix", "Closes CORE-2, see CORE-99", "x", "1"},
		"branch name":        {"Fix", "", "ann/core-2-midnight", "1"},
		"own branch":         {"Fix", "", "midnight", "2"},
		"branch elsewhere":   {"Fix", "", "dawn", ""},
		"former identifier":  {"Fix WEB-1", "", "x", "4"},
		"several":            {"CORE-1 and CORE-2", "core-1", "midnight", "0 1 2"},
		"none":               {"Fix", "", "main", ""},
		"unknown identifier": {"UTF-8 and SHA-256", "", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.route(RouteVCS, "acme/yard")
			team := decode[Team](o, o.admin(CreateTeam, &CreateTeamIn{Name: "Web", Key: "WEB"}).Body)
			made := []Issue{
				o.created(CreateIssueIn{}), o.created(CreateIssueIn{}),
				o.created(CreateIssueIn{IssueFields: IssueFields{Branch: Some("midnight"), Repo: Some("https://github.com/Acme/Yard.git")}}),
				o.created(CreateIssueIn{IssueFields: IssueFields{Branch: Some("dawn"), Repo: Some("acme/shed")}}),
				o.created(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(team.ID)}}),
			}
			o.admin(PatchIssue, &PatchIssueIn{ID: string(made[4].ID), IssuePatch: IssuePatch{IssueFields: IssueFields{TeamID: Some(o.home.Team.ID)}}})
			o.took(o.provider(ReceiveVCS, o.vcs("pull_request", pullJSON("opened", "open", c.title, c.body, c.branch, 2, false, false))))
			var about []string
			for i, issue := range made {
				if got := o.read(issue.ID); got.PRURL != nil {
					about = append(about, strconv.Itoa(i))
					if *got.PRURL != "https://github.com/acme/yard/pull/2" || *got.PRState != "open" || got.PRCheckState != nil {
						t.Errorf("%d: %v %v %v", i, *got.PRURL, *got.PRState, got.PRCheckState)
					}
				}
			}
			if strings.Join(about, " ") != c.about {
				t.Errorf("issues %v, want %s", about, c.about)
			}
			o.verify()
		})
	}
}

func TestInbound_AnIssueShowsOnePullRequest(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.route(RouteVCS, "acme/yard")
	issue := o.created(CreateIssueIn{})
	pull := func(action, state string, number int, draft, merged bool) {
		t.Helper()
		o.took(o.provider(ReceiveVCS, o.vcs("pull_request", pullJSON(action, state, "CORE-1", "", "b", number, draft, merged))))
	}
	checks := func(status, conclusion, sha string, numbers ...int) {
		t.Helper()
		var list []string
		for _, n := range numbers {
			list = append(list, fmt.Sprintf(`{"number":%d,"head":{"sha":"new"}}`, n))
		}
		o.took(o.provider(ReceiveVCS, o.vcs("check_suite", fmt.Sprintf(
			`{"action":"completed","check_suite":{"head_branch":"b","head_sha":%q,"status":%q,"conclusion":%s,"pull_requests":[%s]},"repository":{"full_name":"acme/yard","html_url":"https://github.com/acme/yard"}}`,
			sha, status, conclusion, strings.Join(list, ",")))))
	}
	want := func(number int, state, checks string) {
		t.Helper()
		got := o.read(issue.ID)
		shown := ""
		if got.PRCheckState != nil {
			shown = *got.PRCheckState
		}
		if *got.PRURL != fmt.Sprintf("https://github.com/acme/yard/pull/%d", number) || *got.PRState != state || shown != checks {
			t.Errorf("%s %s %q, want %d %s %q", *got.PRURL, *got.PRState, shown, number, state, checks)
		}
	}
	pull("opened", "open", 1, true, false)
	want(1, "draft", "")
	checks("queued", "null", "new", 1)
	want(1, "draft", "pending")
	checks("completed", `"success"`, "new", 1)
	want(1, "draft", "success")
	checks("completed", `"failure"`, "old", 1) // no longer its last commit
	want(1, "draft", "success")
	checks("completed", `"failure"`, "new", 7) // another pull request's
	want(1, "draft", "success")
	pull("ready_for_review", "open", 1, false, false)
	want(1, "open", "success")
	pull("synchronize", "open", 1, false, false)
	want(1, "open", "")
	for conclusion, shown := range map[string]string{"neutral": "neutral", "skipped": "neutral", "timed_out": "failure", "cancelled": "failure", "action_required": "failure"} { //nolint:misspell // the host's spelling
		checks("completed", strconv.Quote(conclusion), "new", 1)
		want(1, "open", shown)
	}
	pull("closed", "closed", 2, false, false) // while the first goes on
	if got := o.read(issue.ID); *got.PRURL != "https://github.com/acme/yard/pull/1" {
		t.Errorf("%s", *got.PRURL)
	}
	pull("closed", "closed", 1, false, true)
	if got := o.read(issue.ID); *got.PRState != "merged" {
		t.Errorf("%s", *got.PRState)
	}
	pull("opened", "open", 3, false, false)
	want(3, "open", "")
	o.verify()
}

func TestDeleteIssue_LeavesItsTicketsWithoutOne(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	issue := o.created(CreateIssueIn{})
	var made []TicketID
	for i := range maxPortion + 7 { // more than fit into one batch
		id := o.took(o.provider(ReceiveComms, o.comms("s", strconv.Itoa(i), `{"message":{"text":"x"}}`))).TicketID
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
	o := newOffice(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
	o.admin(CreateChannel, &CreateChannelIn{Type: ChannelAPI, Name: "c"})
	o.admin(CreateDeal, &CreateDealIn{Name: "d"})
	o.took(o.provider(ReceiveComms, o.comms("s", "d", `{"message":{"text":"x"}}`)))
	o.route(RouteSMS, "+15550100")
	o.route(RouteVCS, "acme/yard")
	o.admin(DeleteWorkspace, &None{})
	raw := o.home.Workspace.ID.raw()
	o.each(func(key, value []byte) {
		if bytes.Contains(key, raw[:]) || bytes.Contains(value, []byte(o.home.Workspace.ID)) {
			t.Errorf("left: %x = %q", key, value)
		}
	})
	_, err := o.provider(ReceiveSMS, o.sms(url.Values{"From": {"+1"}, "To": {"+15550100"}, "Body": {"x"}}))
	wantCode(o, err, CodeNotFound)
	o.verify()
}

// The verifier sees what it is there for.
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
			o := newOffice(t)
			o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("s")})
			o.admin(CreateChannel, &CreateChannelIn{Type: ChannelHelpdesk2, Name: "c", Config: map[string]string{"accessToken": "0123456789"}})
			o.admin(CreateDeal, &CreateDealIn{Name: "d"})
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
