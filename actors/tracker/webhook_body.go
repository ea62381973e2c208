package tracker

import (
	"fmt"
	"strconv"

	json "github.com/goccy/go-json"
)

// DefaultDeliveryPart is the most bytes that data and changes may each have in the body
// of a delivery where the operator has not set it (--webhooks-max-data): a small change
// of a large issue must not become large requests to every subscriber.
const DefaultDeliveryPart = 256 << 10

// DeliveryOmission replaces a part of an event that is too large for a delivery.
type DeliveryOmission struct {
	// Bytes is the length of the omitted part.
	Bytes int `json:"bytes"`
	// URL is the address of the whole event, for a token that may read events.
	URL string `json:"url"`
}

// deliveryBody is the body of a delivery: an event's fields, in the same order.
type deliveryBody struct {
	ID             json.RawMessage   `json:"id"`
	Type           json.RawMessage   `json:"type"`
	OrganizationID WorkspaceID       `json:"organizationId"`
	Sequence       uint64            `json:"sequence"`
	CreatedAt      json.RawMessage   `json:"createdAt"`
	Actor          json.RawMessage   `json:"actor"`
	Data           json.RawMessage   `json:"data"`
	DataOmitted    *DeliveryOmission `json:"dataOmitted,omitempty"`
	Changes        json.RawMessage   `json:"changes,omitempty"`
	ChangesOmitted *DeliveryOmission `json:"changesOmitted,omitempty"`
}

// DeliveredEvent is the body of a delivery as clients read it, for the API description.
type DeliveredEvent struct {
	Event
	DataOmitted DeliveryOmission `json:"dataOmitted,omitzero"`
	// Changes is null if ChangesOmitted is set.
	Changes        *map[string]FromTo `json:"changes,omitempty"`
	ChangesOmitted DeliveryOmission   `json:"changesOmitted,omitzero"`
}

// BriefDelivery returns the body of a delivery: the event or, if its data or changes
// have more than most bytes, the event with null in their place and the address to read
// it at. base is the service's URL, without a slash at its end.
func BriefDelivery(event []byte, base string, most int) ([]byte, error) {
	if len(event) <= most {
		return event, nil
	}
	var b deliveryBody
	if err := json.Unmarshal(event, &b); err != nil {
		return nil, fmt.Errorf("read an event to deliver: %w", err)
	}
	if len(b.Data) <= most && len(b.Changes) <= most {
		return event, nil
	}
	address := base + "/workspaces/" + string(b.OrganizationID) + "/events?after=" + strconv.FormatUint(b.Sequence-1, 10) + "&limit=1"
	for _, part := range []struct {
		value   *json.RawMessage
		omitted **DeliveryOmission
	}{{&b.Data, &b.DataOmitted}, {&b.Changes, &b.ChangesOmitted}} {
		if n := len(*part.value); n > most {
			*part.value, *part.omitted = json.RawMessage("null"), &DeliveryOmission{Bytes: n, URL: address}
		}
	}
	body, err := json.MarshalWithOption(&b, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode a delivery: %w", err)
	}
	return body, nil
}
