package tracker

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"unicode/utf8"
)

// ReceiveCommsIn is a call of any source, signed like the service's own webhooks: the
// source may be another workspace's webhook.
type ReceiveCommsIn struct {
	Source    string `path:"source"`
	Timestamp string `header:"X-Tracker-Timestamp"`
	Signature string `header:"X-Tracker-Signature"`
	Delivery  string `header:"X-Tracker-Delivery"`
	Body      []byte `raw:"json"`
	// Refused is the error for a body of this content type. Only callers with a valid
	// signature get it.
	Refused *Error `raw:"refused"`
}

// ReceiveComms accepts a call of a source. A message object becomes a ticket or is added
// to one; any other call becomes an event in the workspace's log.
var ReceiveComms = NewWorkflow[ReceiveCommsIn, InboundAnswer]("ReceiveComms", "Receive a call from a source", Needs{}, receiveComms, WithoutKey, SignedBy(formedComms), Answers(Done, Accepted), Refuses(CodeUnauthorized, CodeConflict))

func receiveComms(f Flow, in *ReceiveCommsIn) (Reply, error) {
	workspace := f.Request().Workspace
	verify := verifyInboundIn{Source: in.Source, Scheme: schemeTracker, Timestamp: in.Timestamp, Signature: in.Signature, Body: in.Body}
	if _, err := f.Query(workspace, verifyInboundOp, &verify); err != nil {
		return Reply{}, err
	}
	if in.Refused != nil {
		return Reply{}, in.Refused
	}
	if fault := payloadFault(in.Body); fault != "" {
		return Reply{}, BadRequest(Fault{Message: fault})
	}
	call := newInboundCall(in.Source, in.Delivery, []byte(in.Timestamp), in.Body)
	message, err := commsMessage(in.Body)
	if err != nil {
		return Reply{}, err
	}
	if message == nil {
		payload, err := compact(in.Body)
		if err != nil {
			return Reply{}, err
		}
		if len(payload) > maxEventPayload {
			return Reply{}, &Error{
				Code: CodePayloadTooLarge, Message: fmt.Sprintf("The event is larger than %d bytes.", maxEventPayload),
				Hint: "Send less, or a message object for a ticket.",
			}
		}
		return f.CommandAs(permitSigned(workspace), inboundCaller(in.Source), workspace, receiveEventOp, &receiveEventIn{inboundCall: call, DeliveryID: in.Delivery, Payload: payload})
	}
	message.inboundCall = call
	return f.CommandAs(permitSigned(workspace), inboundCaller(in.Source), workspace, receiveMessageOp, message)
}

// maxEventPayload limits the payload of a call that an event stores, in bytes.
const maxEventPayload = 256 << 10

func compact(body []byte) (stdjson.RawMessage, error) {
	var b bytes.Buffer
	if err := stdjson.Compact(&b, body); err != nil {
		return nil, fmt.Errorf("compact a payload: %w", err) // payloadFault has accepted it
	}
	return b.Bytes(), nil
}

// commsMessage decodes the message of a call, or returns nil if there is none. Sources
// that know nothing of tickets may have a message that is no object.
func commsMessage(body []byte) (*receiveMessageIn, error) {
	var message stdjson.RawMessage
	err := eachProperty(body, func(name string, value []byte) error {
		if name == "message" { // and not Message, which is another property
			message = bytes.Clone(value)
		}
		return nil
	})
	if err != nil {
		return nil, BadRequest(Fault{Message: "The body can't be read."})
	}
	if len(message) == 0 || message[0] != '{' {
		return nil, nil
	}
	fields := map[string]stdjson.RawMessage{"from": nil, "subject": nil, "text": nil, "threadId": nil}
	err = eachProperty(message, func(name string, value []byte) error {
		if _, used := fields[name]; used {
			fields[name] = bytes.Clone(value)
		}
		return nil
	})
	if err != nil {
		return nil, BadRequest(Fault{Path: "message", Message: "The message can't be read."})
	}
	m := &receiveMessageIn{From: "unknown"}
	var faults Faults
	var thread string
	for _, field := range []struct {
		name string
		to   *string
		most int
	}{{"from", &m.From, maxFrom}, {"subject", &m.Subject, maxSubject}, {"text", &m.Text, maxMessageText}, {"threadId", &thread, maxThread}} {
		raw := fields[field.name]
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		path := "message." + field.name
		var text string
		switch err := stdjson.Unmarshal(raw, &text); {
		case err != nil:
			faults.Add(path, "Must be a string.")
		case !indexable(text):
			faults.Add(path, "Must not contain NUL.")
		case utf8.RuneCountInString(text) > field.most:
			faults.Add(path, fmt.Sprintf("Must be at most %d characters long.", field.most))
		case text != "":
			*field.to = text
		}
	}
	if m.Text == "" && !faults.Has("message.text") {
		faults.Add("message.text", "Is required.")
	}
	if thread != "" {
		m.ThreadID = &thread
	}
	return m, faults.Err()
}

// CommsEvent is the event of a call that is not a message.
type CommsEvent struct {
	ID             string      `json:"id"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Source         string      `json:"source"`
	// DeliveryID is the sender's id of the call; empty without one.
	DeliveryID string             `json:"deliveryId"`
	Payload    stdjson.RawMessage `json:"payload"`
	CreatedAt  Timestamp          `json:"createdAt"`
}

type receiveEventIn struct {
	inboundCall
	DeliveryID string `json:"deliveryId"`
	Payload    []byte `json:"payload"`
}

// receiveEventOp adds an event to the workspace's log.
var receiveEventOp = NewCommand[receiveEventIn, InboundAnswer]("ReceiveEvent", "Log what a source sent", Needs{}, func(tx *Tx, in *receiveEventIn) (Reply, error) {
	if first, err := tx.recordCall(in.inboundCall); err != nil || !first {
		return repeatedUnless(err)
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, err
	}
	e := CommsEvent{
		ID: id.String(), OrganizationID: WorkspaceID(tx.Workspace().String()), Source: in.Source,
		DeliveryID: shorten(in.DeliveryID, maxThread), Payload: in.Payload, CreatedAt: At(tx.now),
	}
	data, err := jsonReply(Done, &e)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.Emit(eventComms, toAll, data.Body, nil); err != nil {
		return Reply{}, err
	}
	return accepted(InboundAnswer{EventID: e.ID})
})

// repeatedUnless answers a call that was accepted before, or returns the error.
func repeatedUnless(err error) (Reply, error) {
	if err != nil {
		return Reply{}, err
	}
	return repeated()
}
