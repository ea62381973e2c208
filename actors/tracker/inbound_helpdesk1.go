package tracker

import (
	"bytes"
	stdjson "encoding/json"
	"html"
	"strings"
)

// sourceHelpdesk1 is the source whose secret signs the calls of helpdesk1.
const sourceHelpdesk1 = "helpdesk1"

// The topics that have an effect; others are accepted and ignored.
const (
	topicCreated = "conversation.user.created"
	topicReplied = "conversation.user.replied"
	topicClosed  = "conversation.admin.closed"
)

// maxParts limits the messages of one call.
const maxParts = 50

// ReceiveHelpdesk1In is a notification of helpdesk1.
type ReceiveHelpdesk1In struct {
	Signature string `header:"X-Hub-Signature"`
	Body      []byte `raw:"json"`
	// Refused is the error for a body of this content type. Only callers with a valid
	// signature get it.
	Refused *Error `raw:"refused"`
}

// ReceiveHelpdesk1 accepts a notification of helpdesk1, whose conversations become
// tickets.
var ReceiveHelpdesk1 = NewWorkflow[ReceiveHelpdesk1In, InboundAnswer]("ReceiveHelpdesk1", "Receive a notification from helpdesk1", Needs{}, receiveHelpdesk1, WithoutKey, SignedBy(formedHelpdesk1), Answers(Done, Accepted), Refuses(CodeUnauthorized, CodeConflict))

func receiveHelpdesk1(f Flow, in *ReceiveHelpdesk1In) (Reply, error) {
	workspace := f.Request().Workspace
	verify := verifyInboundIn{Source: sourceHelpdesk1, Scheme: schemeHub1, Signature: in.Signature, Body: in.Body}
	if _, err := f.Query(workspace, verifyInboundOp, &verify); err != nil {
		return Reply{}, err
	}
	if in.Refused != nil {
		return Reply{}, in.Refused
	}
	if fault := payloadFault(in.Body); fault != "" {
		return Reply{}, BadRequest(Fault{Message: fault})
	}
	var n helpdeskNotification
	if err := stdjson.Unmarshal(in.Body, &n); err != nil {
		return Reply{}, BadRequest(Fault{Message: "The body is not a notification: " + shapeOf(err)})
	}
	step := &receiveHelpdeskIn{Topic: n.Topic}
	switch n.Topic {
	case topicCreated, topicReplied, topicClosed:
		var c helpdeskConversation
		if err := stdjson.Unmarshal(n.Data.Item, &c); err != nil {
			return Reply{}, BadRequest(Fault{Path: "data.item", Message: "Not a valid conversation: " + shapeOf(err)})
		}
		if step = c.step(n.Topic); step.Thread == "" {
			return Reply{}, BadRequest(Fault{Path: "data.item.id", Message: "Is required: it names the conversation."})
		}
	}
	step.inboundCall = newInboundCall(sourceHelpdesk1, n.ID, in.Body)
	return f.CommandAs(permitSigned(workspace), inboundCaller(sourceHelpdesk1), workspace, receiveHelpdeskOp, step)
}

// shapeOf describes a decoding error.
func shapeOf(err error) string {
	e, ok := err.(*stdjson.UnmarshalTypeError) //nolint:errorlint // Unmarshal does not wrap it
	switch {
	case !ok:
		return "it can't be read."
	case e.Field == "": // the value as a whole
		return "it has the wrong type."
	}
	return e.Field + " has the wrong type."
}

// helpdeskNotification is the part of a notification that is used.
type helpdeskNotification struct {
	ID    string `json:"id"`
	Topic string `json:"topic"`
	Data  struct {
		Item stdjson.RawMessage `json:"item"`
	} `json:"data"`
}

// helpdeskConversation is the part of a conversation that is used.
type helpdeskConversation struct {
	ID     helpdeskID    `json:"id"`
	Title  string        `json:"title"`
	Source *helpdeskPart `json:"source"`
	// ConversationMessage is the name of Source in older versions.
	ConversationMessage *helpdeskPart `json:"conversation_message"`
	Parts               struct {
		List helpdeskParts `json:"conversation_parts"`
	} `json:"conversation_parts"`
}

// helpdeskParts are the parts of a conversation that its ticket gets. Of the others, of which there may
// be any number, none is kept.
type helpdeskParts []helpdeskPart

// UnmarshalJSON decodes the parts one after another.
func (l *helpdeskParts) UnmarshalJSON(b []byte) error {
	dec := stdjson.NewDecoder(bytes.NewReader(b))
	if begin, err := dec.Token(); err != nil || begin != stdjson.Delim('[') {
		var none []helpdeskPart
		return stdjson.Unmarshal(b, &none) // the error, or null
	}
	for dec.More() {
		var p helpdeskPart
		if err := dec.Decode(&p); err != nil {
			return err
		}
		if p.outside() && len(*l) < maxParts && p.text() != "" {
			*l = append(*l, p)
		}
	}
	return nil
}

// helpdeskID is an id, which some versions encode as a number.
type helpdeskID string

// UnmarshalJSON accepts a string or a number.
func (id *helpdeskID) UnmarshalJSON(b []byte) error {
	var s string
	if len(b) > 0 && b[0] == '"' {
		if err := stdjson.Unmarshal(b, &s); err != nil {
			return err
		}
		*id = helpdeskID(s)
		return nil
	}
	var n stdjson.Number
	if err := stdjson.Unmarshal(b, &n); err != nil {
		return err
	}
	*id = helpdeskID(n)
	return nil
}

type helpdeskPart struct {
	Subject string `json:"subject"`
	Body    string `json:"body"`
	Author  struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		Email string `json:"email"`
	} `json:"author"`
}

// from returns the author of a part.
func (p *helpdeskPart) from() string {
	name, email := clean(p.Author.Name, 200), clean(p.Author.Email, 200)
	switch {
	case name == "" && email == "":
		return "unknown"
	case name == "":
		return email
	case email == "":
		return name
	}
	return name + " <" + email + ">"
}

// text returns the text of a part; "" if it has none.
func (p *helpdeskPart) text() string { return clean(plainText(p.Body), maxMessageText) }

// outside reports whether the author of a part is not one of the workspace's own.
func (p *helpdeskPart) outside() bool {
	return p.Author.Type != "admin" && p.Author.Type != "bot" && p.Author.Type != "team"
}

// receiveHelpdeskIn is a notification as the input of the step.
type receiveHelpdeskIn struct {
	inboundCall
	Topic    string            `json:"topic"`
	Thread   string            `json:"thread"`
	Subject  string            `json:"subject"`
	Messages []helpdeskMessage `json:"messages"`
}

type helpdeskMessage struct {
	From string `json:"from"`
	Text string `json:"text"`
}

// step returns the new content of a conversation.
func (c *helpdeskConversation) step(topic string) *receiveHelpdeskIn {
	in := &receiveHelpdeskIn{Topic: topic, Thread: clean(string(c.ID), maxThread), Subject: clean(c.Title, maxSubject)}
	opening := c.Source
	if opening == nil {
		opening = c.ConversationMessage
	}
	if opening != nil && in.Subject == "" {
		in.Subject = clean(plainText(opening.Subject), maxSubject)
	}
	if opening != nil && topic == topicCreated {
		in.add(opening)
	}
	if topic != topicClosed {
		for i := range c.Parts.List {
			if len(in.Messages) < maxParts {
				in.add(&c.Parts.List[i])
			}
		}
	}
	return in
}

func (in *receiveHelpdeskIn) add(p *helpdeskPart) {
	if text := p.text(); text != "" {
		in.Messages = append(in.Messages, helpdeskMessage{p.from(), text})
	}
}

// receiveHelpdeskOp applies a notification to the conversation's ticket.
var receiveHelpdeskOp = NewCommand[receiveHelpdeskIn, InboundAnswer]("ReceiveHelpdesk", "Carry a notification over to its ticket", Needs{}, func(tx *Tx, in *receiveHelpdeskIn) (Reply, error) {
	if first, err := tx.recordCall(in.inboundCall); err != nil || !first {
		return repeatedUnless(err)
	}
	switch in.Topic {
	case topicCreated, topicReplied:
		return tx.helpdeskSaid(in)
	case topicClosed:
		row, err := tx.ticketOf(in.Source, in.Thread, false)
		if err != nil {
			return Reply{}, err
		}
		if row == nil {
			return accepted(InboundAnswer{}) // the conversation is older than the connection
		}
		t := row.Value
		if t.Status = TicketClosed; t.Status != row.Value.Status {
			if err := tx.updateTicket(row, &t); err != nil {
				return Reply{}, err
			}
		}
		return accepted(InboundAnswer{TicketID: t.ID})
	}
	return accepted(InboundAnswer{})
})

// helpdeskSaid adds messages to the conversation's ticket, which it creates if
// necessary.
func (tx *Tx) helpdeskSaid(in *receiveHelpdeskIn) (Reply, error) {
	from, text := "unknown", ""
	if len(in.Messages) > 0 {
		from, text = in.Messages[0].From, in.Messages[0].Text
	}
	row, err := tx.conversation(&receiveMessageIn{inboundCall: in.inboundCall, From: from, Subject: in.Subject, Text: text, ThreadID: &in.Thread})
	if err != nil {
		return Reply{}, err
	}
	answer := InboundAnswer{TicketID: row.Value.ID}
	for _, said := range in.Messages {
		m := TicketMessage{Direction: Inbound, From: &said.From, Body: said.Text}
		if row, _, err = tx.addMessage(row, &m, TicketOpen); err != nil {
			return Reply{}, err
		}
		answer.MessageID = m.ID
	}
	return accepted(answer)
}

// plainText returns the text of HTML without tags, with a line for each paragraph.
func plainText(markup string) string {
	if !strings.ContainsAny(markup, "<&") {
		return strings.TrimSpace(markup)
	}
	var b strings.Builder
	for rest := markup; rest != ""; {
		open := strings.IndexByte(rest, '<')
		if open < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:open])
		end := strings.IndexByte(rest[open:], '>')
		if end < 0 { // not a tag
			b.WriteString(rest[open:])
			break
		}
		name := strings.ToLower(strings.Trim(rest[open+1:open+end], "/ "))
		if name, _, _ = strings.Cut(name, " "); name == "br" || name == "p" || name == "div" || name == "li" || name == "tr" {
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
		}
		rest = rest[open+end+1:]
	}
	var lines []string
	for line := range strings.Lines(html.UnescapeString(b.String())) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
