package tracker

import (
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
)

// inboundFixture is a testService with one workspace that providers call.
type inboundFixture struct {
	*testService
	home Onboarded
	n    int
}

func newInboundFixture(t tester) *inboundFixture {
	t.Helper()
	o := &inboundFixture{testService: newTestService(t)}
	o.inbound = InboundSettings{SMSSecret: "sms", VCSSecret: "vcs", PublicURL: "https://yard.example"}
	o.home = decode[Onboarded](o, o.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "Core", Slug: "core"}).Body)
	return o
}

func (o *inboundFixture) admin(op *Op, in any) Reply {
	o.Helper()
	return o.must(o.home.Token.Secret, o.home.Workspace.ID, op, in)
}

// provider makes a call without a credential.
func (o *inboundFixture) provider(op *Op, in any) (InboundAnswer, error) {
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

func (o *inboundFixture) took(a InboundAnswer, err error) InboundAnswer {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
	return a
}

func (o *inboundFixture) macOf(h func() hash.Hash, secret, text string) []byte {
	mac := hmac.New(h, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func (o *inboundFixture) comms(secret, delivery, body string) *ReceiveCommsIn {
	stamp := strconv.FormatInt(o.now.Unix(), 10)
	return &ReceiveCommsIn{
		Source: "mail", Timestamp: stamp, Delivery: delivery, Body: []byte(body),
		Signature: hex.EncodeToString(o.macOf(sha256.New, secret, stamp+"."+body)),
	}
}

func (o *inboundFixture) vcs(event, body string) *ReceiveVCSIn {
	o.n++
	return &ReceiveVCSIn{
		Event: event, Delivery: strconv.Itoa(o.n), Body: []byte(body),
		Signature: "sha256=" + hex.EncodeToString(o.macOf(sha256.New, o.inbound.VCSSecret, body)),
	}
}

func (o *inboundFixture) sms(form url.Values) *ReceiveSMSIn {
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

// route makes a route active as the operator does. The key is in its normalized form.
func (o *inboundFixture) route(kind RouteKind, key string) {
	o.Helper()
	o.must("root", o.home.Workspace.ID, PutInboundRoute, &InboundRouteIn{Kind: kind, Key: key})
}

func (o *inboundFixture) ticket(id TicketID) Ticket {
	o.Helper()
	return decode[Ticket](o, o.admin(TicketByID, &RecordIn{ID: string(id)}).Body)
}

func (o *inboundFixture) created(in CreateIssueIn) Issue {
	o.Helper()
	if in.Title == "" {
		in.Title = "An issue"
	}
	return decode[CreatedIssue](o, o.admin(CreateIssue, &in).Body).Issue
}

func (o *inboundFixture) read(id IssueID) Issue {
	o.Helper()
	return decode[Issue](o, o.admin(IssueByID, &IssueByIDIn{ID: string(id)}).Body)
}

// state returns everything on disk.
func (o *inboundFixture) state() string {
	o.Helper()
	h := sha256.New()
	o.each(func(key, value []byte) { _, _ = fmt.Fprintf(h, "%d:%x=%d:%x;", len(key), key, len(value), value) })
	return hex.EncodeToString(h.Sum(nil))
}
