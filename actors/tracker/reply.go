package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// jsonReply returns a reply with the JSON of v as its body.
func jsonReply(outcome Outcome, v any) (Reply, error) {
	body, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		return Reply{}, fmt.Errorf("encode an answer: %w", err)
	}
	return Reply{Outcome: outcome, Body: body}, nil
}

// readReply decodes the reply of a workflow's step.
func readReply[T any](step string, reply Reply, err error) (v T, _ error) {
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(reply.Body, &v); err != nil {
		return v, fmt.Errorf("read the answer of %s: %w", step, err)
	}
	return v, nil
}

// ask runs a query as the service and decodes its reply.
func ask[T any](f Flow, workspace storage.ID, op *Op, in any) (T, error) {
	reply, err := f.Query(workspace, op, in)
	return readReply[T](op.Name, reply, err)
}
