package tracker

import (
	"net/url"
	"strconv"
	"strings"
)

const (
	sourceSMS = "sms"
	// smsPath follows the public URL in the text that is signed.
	smsPath = "/support/sms/inbound"
	// maxFormFields limits the fields of a form, and maxMedia the attachments named in
	// a message.
	maxFormFields = 200
	maxMedia      = 10
)

// ReceiveSMSIn is a text message as the provider sends it.
type ReceiveSMSIn struct {
	Signature string `header:"X-Twilio-Signature"`
	Body      []byte `raw:"form"`
	// Refused is the error for a body of this content type. Only callers with a valid
	// signature get it.
	Refused *Error `raw:"refused"`
}

// ReceiveSMS accepts a text message. The workspace with the number adds it to the
// sender's open ticket, or to a new one.
var ReceiveSMS = NewWorkflow[ReceiveSMSIn, InboundAnswer]("ReceiveSMS", "Receive a text message", Needs{}, receiveSMS, WithoutKey, SignedBy(formedSMS), Answers(Done, Accepted), Refuses(CodeUnauthorized, CodeConflict))

func receiveSMS(f Flow, in *ReceiveSMSIn) (Reply, error) {
	settings := f.Inbound()
	if settings.SMSSecret == "" || strings.Count(string(in.Body), "&") >= maxFormFields {
		return Reply{}, Unsigned()
	}
	form, err := url.ParseQuery(string(in.Body))
	if err != nil || !signedBySMS(settings.SMSSecret, settings.PublicURL+smsPath, in.Signature, form) {
		return Reply{}, Unsigned()
	}
	if in.Refused != nil {
		return Reply{}, in.Refused
	}
	from := clean(strings.TrimSpace(form.Get("From")), maxFrom)
	to, ok := cleanRouteKey(RouteSMS, strings.TrimSpace(form.Get("To")))
	var faults Faults
	if from == "" {
		faults.Add("From", "Is required.")
	}
	if !ok {
		faults.Add("To", "Must be the number that was written to.")
	}
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	id := form.Get("MessageSid")
	if id == "" {
		id = form.Get("SmsSid")
	}
	thread := shorten(from, maxThread)
	message := receiveMessageIn{
		inboundCall: newInboundCall(sourceSMS, clean(id, maxThread), in.Body),
		From:        from, Text: smsText(form), ThreadID: &thread, Fresh: true,
	}
	return receiveRouted(f, RouteSMS, to, receiveMessageOp, &message, nil)
}

// smsText returns the text of a message, with the addresses of its attachments.
func smsText(form url.Values) string {
	lines := []string{}
	if text := strings.TrimSpace(form.Get("Body")); text != "" {
		lines = append(lines, text)
	}
	for i := range maxMedia {
		if address := form.Get("MediaUrl" + strconv.Itoa(i)); address != "" {
			lines = append(lines, address)
		}
	}
	if len(lines) == 0 {
		return "(without text)"
	}
	return clean(strings.Join(lines, "\n"), maxMessageText)
}
