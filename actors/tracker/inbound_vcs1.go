package tracker

import (
	"crypto/sha256"
	stdjson "encoding/json"
	"net/url"
	"strings"
)

const (
	sourceVCS = "vcs1"
	// keptVCSPayload limits the payload that an event stores, in bytes.
	keptVCSPayload = 64 << 10
)

// ReceiveVCSIn is an event of a repository from its host, as JSON or as a form with the
// JSON in its field payload.
type ReceiveVCSIn struct {
	Signature string `header:"X-Hub-Signature-256"`
	Event     string `header:"X-GitHub-Event"`
	Delivery  string `header:"X-GitHub-Delivery"`
	Body      []byte `raw:"json,form"`
	// Refused is the error for a body of this content type. Only callers with a valid
	// signature get it.
	Refused *Error `raw:"refused"`
}

// ReceiveVCS accepts an event of a repository. It is logged in the workspace of the
// repository's route; events of pull requests and checks also change the issues that
// they concern.
var ReceiveVCS = NewWorkflow[ReceiveVCSIn, InboundAnswer]("ReceiveVCS", "Receive an event of a repository", Needs{}, receiveVCS, WithoutKey, SignedBy(formedVCS), Answers(Done, Accepted), Refuses(CodeUnauthorized, CodeConflict))

func receiveVCS(f Flow, in *ReceiveVCSIn) (Reply, error) {
	secret := f.Inbound().VCSSecret
	if secret == "" || !signedByHub(sha256.New, "sha256", secret, in.Signature, in.Body) {
		return Reply{}, Unsigned()
	}
	if in.Refused != nil {
		return Reply{}, in.Refused
	}
	if !isEventName(in.Event) {
		return Reply{}, BadRequest(Fault{Path: "header.X-GitHub-Event", Message: "Must be the event's name."})
	}
	body := in.Body
	if text, ok := strings.CutPrefix(string(body), "payload="); ok {
		text, _, _ = strings.Cut(text, "&")
		text, err := url.QueryUnescape(text)
		if err != nil {
			return Reply{}, BadRequest(Fault{Message: "The form can't be read."})
		}
		body = []byte(text)
	}
	if fault := payloadFault(body); fault != "" {
		return Reply{}, BadRequest(Fault{Message: fault})
	}
	var p vcsPayload
	if err := stdjson.Unmarshal(body, &p); err != nil {
		return Reply{}, BadRequest(Fault{Message: "The body is not an event: " + shapeOf(err)})
	}
	key, ok := cleanRouteKey(RouteVCS, p.Repository.FullName)
	if !ok {
		return accepted(InboundAnswer{}) // not about a repository, but an account, for example
	}
	step := receiveVCSIn{
		inboundCall: newInboundCall(sourceVCS, in.Delivery, in.Body),
		Event:       in.Event, DeliveryID: in.Delivery, Action: clean(p.Action, 100), Repository: p.Repository.FullName,
	}
	var err error
	if step.Payload, err = compact(body); err != nil {
		return Reply{}, err
	}
	if len(step.Payload) > keptVCSPayload {
		step.Payload = nil
	}
	var unfit error
	switch in.Event {
	case "pull_request":
		var pull vcsPullRequest
		if err := stdjson.Unmarshal(p.PullRequest, &pull); err != nil {
			unfit = BadRequest(Fault{Path: "pull_request", Message: "Not a valid pull request: " + shapeOf(err)})
		}
		step.Pull = pull.pull(p.Action)
	case "check_suite":
		var suite vcsCheckSuite
		if err := stdjson.Unmarshal(p.CheckSuite, &suite); err != nil {
			unfit = BadRequest(Fault{Path: "check_suite", Message: "Not a valid check suite: " + shapeOf(err)})
		}
		step.Checks = suite.checks(p.Repository.HTMLURL)
	}
	return receiveRouted(f, RouteVCS, key, receiveVCSOp, &step, unfit)
}

func isEventName(s string) bool {
	return len(s) > 0 && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// VCSEvent is the stored event of a repository.
type VCSEvent struct {
	ID             string      `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Source         string      `json:"source"`
	Event          string      `json:"event"`
	Action         string      `json:"action"`
	Repository     string      `json:"repository"`
	DeliveryID     string      `json:"deliveryId"`
	// Payload is null if it was too large.
	Payload   stdjson.RawMessage `json:"payload"`
	CreatedAt Timestamp          `json:"createdAt"`
}

// receiveVCSIn is an event as the input of the step.
type receiveVCSIn struct {
	inboundCall
	Event      string     `json:"event"`
	Action     string     `json:"action"`
	Repository string     `json:"repository"`
	DeliveryID string     `json:"deliveryId"`
	Payload    []byte     `json:"payload"`
	Pull       *vcsPull   `json:"pull,omitempty"`
	Checks     *vcsChecks `json:"checks,omitempty"`
}

// receiveVCSOp logs an event, and changes the issues that it concerns. The event does
// not name these issues: callers who may not see them can read it.
var receiveVCSOp = NewCommand[receiveVCSIn, InboundAnswer]("ReceiveVCSEvent", "Receive an event of a repository", Needs{}, func(tx *Tx, in *receiveVCSIn) (Reply, error) {
	if first, err := tx.recordCall(in.inboundCall); err != nil || !first {
		return repeatedUnless(err)
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, err
	}
	e := VCSEvent{
		ID: id.String(), OrganizationID: WorkspaceID(tx.Workspace().String()), Source: in.Source, Event: in.Event, Action: in.Action,
		Repository: in.Repository, DeliveryID: shorten(in.DeliveryID, maxThread), Payload: in.Payload, CreatedAt: At(tx.now),
	}
	if len(e.Payload) == 0 {
		e.Payload = stdjson.RawMessage("null")
	}
	data, err := jsonReply(Done, &e)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.Emit(eventVCS, toAll, data.Body, nil); err != nil {
		return Reply{}, err
	}
	var about []IssueID
	switch {
	case in.Pull != nil:
		about, err = tx.tellPull(in.Pull, in.Repository)
	case in.Checks != nil:
		about, err = tx.tellChecks(in.Checks, in.Repository)
	}
	if err != nil {
		return Reply{}, err
	}
	return accepted(InboundAnswer{EventID: e.ID, IssueIDs: about})
})
