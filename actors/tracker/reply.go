package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// jsonReply answers with the JSON of a value.
func jsonReply(outcome Outcome, v any) (Reply, error) {
	body, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		return Reply{}, fmt.Errorf("encode an answer: %w", err)
	}
	return Reply{Outcome: outcome, Body: body}, nil
}

// readReply reads what a step of a workflow answered.
func readReply[T any](step string, reply Reply, err error) (v T, _ error) {
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(reply.Body, &v); err != nil {
		return v, fmt.Errorf("read the answer of %s: %w", step, err)
	}
	return v, nil
}

// ask runs a query as the service and reads its answer.
func ask[T any](f Flow, workspace storage.ID, op *Op, in any) (T, error) {
	reply, err := f.Query(workspace, op, in)
	return readReply[T](op.Name, reply, err)
}
