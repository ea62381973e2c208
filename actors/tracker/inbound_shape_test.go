package tracker

import (
	stdjson "encoding/json"
	"testing"
)

func TestShapeOf_HasASubject(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`5`: "it has the wrong type.", `{"id": {}}`: "id has the wrong type.", `{`: "it can't be read.",
	} {
		var notification struct {
			ID string `json:"id"`
		}
		err := stdjson.Unmarshal([]byte(body), &notification)
		if err == nil {
			t.Fatalf("%s was taken", body)
		}
		if got := shapeOf(err); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

// Names of properties are exact: a call is a message by its property message alone.
func TestReceiveComms_ExactName(t *testing.T) {
	t.Parallel()
	o := newInboundFixture(t)
	o.admin(PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{Source: "mail"}, Secret: Some("a good secret")})
	for body, ticket := range map[string]bool{
		`{"message":{"text":"x"},"Message":"y"}`: true,
		`{"MESSAGE":"y","message":{"text":"x"}}`: true,
		`{"Message":{"text":"x"}}`:               false,
		`{"message":"y","Message":{"text":"x"}}`: false,
	} {
		got := o.took(o.provider(ReceiveComms, o.comms("a good secret", body, body)))
		if (got.TicketID != "") != ticket || (got.EventID == "") != ticket {
			t.Errorf("%s: %+v", body, got)
		}
	}
	o.verify()
}
