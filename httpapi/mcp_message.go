package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"switchyard/actors/tracker"
)

// Codes of JSON-RPC errors.
const (
	rpcParse    = -32700
	rpcInvalid  = -32600
	rpcNoMethod = -32601
	rpcParams   = -32602
	rpcInternal = -32603
)

// served are the methods that the SDK gets. There are only tools, and nothing that
// outlives its message: the SDK knows more methods, and one of them would hold the
// request until its deadline.
var served = map[string]bool{
	"initialize":      true,
	"server/discover": true,
	"ping":            true,
	"tools/list":      true,
	methodCall:        true,
}

// methodCall calls a tool.
const methodCall = "tools/call"

// firstSessionless is the protocol's version from which a method that is not there is
// also an HTTP 404.
const firstSessionless = "2026-07-28"

// message has the parts of a message that the service itself checks before the SDK reads
// it. Names are compared exactly and may occur only once, so that the two can't understand
// a message differently.
type message struct {
	id        jsontext.Value // a string or an integer; nil for none
	method    string         // empty for an answer
	tool      string         // of tools/call
	arguments []byte
	// traceparent is the trace that _meta names, by the conventions of the protocol; nil for none.
	traceparent []byte
	// params are those that the SDK gets, and forSDK is its message.
	params jsontext.Value
	forSDK []byte
}

const (
	// maxForSDK bounds a message without the tool's arguments, in bytes, and maxValuesForSDK its values.
	// The SDK copies what it gets of it many times. The bytes in flight count it twice.
	maxForSDK       = 64 << 10
	maxValuesForSDK = 1000
)

// callParams are the params of tools/call.
type callParams struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments,omitzero"`
	Others    jsontext.Value `json:",embed"`
}

// parseMessage reads a message.
func parseMessage(body []byte) (*message, *rpcRefusal) {
	if at := tracker.TooDeep(body, maxDepth); at >= 0 {
		return nil, refuseRPC(rpcParse, fmt.Sprintf("The body is nested more than %d levels deep at byte %d.", maxDepth, at))
	}
	var wire struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  *string        `json:"method"`
		Params  jsontext.Value `json:"params"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	if err := jsonv2.Unmarshal(body, &wire); err != nil {
		return nil, unreadable(body, err)
	}
	m := &message{}
	if wire.ID != nil {
		if !isMessageID(wire.ID) {
			return nil, refuseRPC(rpcInvalid, "id must be a string or an integer.")
		}
		m.id = wire.ID
	}
	switch {
	case wire.Version != "2.0":
		return nil, m.refuse(http.StatusBadRequest, rpcInvalid, `jsonrpc must be "2.0".`)
	case wire.Method == nil && wire.Result == nil && wire.Error == nil:
		return nil, m.refuse(http.StatusBadRequest, rpcInvalid, "The message has no method.")
	case wire.Method == nil:
		m.id = nil // of a request that the service did not send
		return m, nil
	}
	m.method = *wire.Method
	switch notification := strings.HasPrefix(m.method, "notifications/"); {
	case notification && m.id != nil:
		return nil, m.refuse(http.StatusBadRequest, rpcInvalid, "A notification has no id.")
	case !notification && m.id == nil:
		return nil, m.refuse(http.StatusBadRequest, rpcInvalid, "The request has no id.")
	}
	m.traceparent = metaTrace(wire.Params)
	if m.method == methodCall {
		var params callParams
		if jsonv2.Unmarshal(wire.Params, &params) == nil { // else the SDK reports the fault
			m.tool, m.arguments = params.Name, params.Arguments
			if params.Arguments != nil {
				params.Arguments = nil
				var err error
				if wire.Params, err = jsonv2.Marshal(&params); err != nil { // it was read without one
					return nil, m.refuse(http.StatusBadRequest, rpcInvalid, "The params can't be read.")
				}
			}
		}
	}
	if m.asks() {
		if refused := m.prepareForSDK(wire.Params); refused != nil {
			return nil, refused
		}
	}
	return m, nil
}

// metaTrace returns the trace that the params of a message name.
func metaTrace(params jsontext.Value) []byte {
	if !bytes.Contains(params, []byte("traceparent")) { // most don't
		return nil
	}
	var named struct {
		Meta struct {
			Traceparent string `json:"traceparent"`
		} `json:"_meta"`
	}
	if jsonv2.Unmarshal(params, &named) != nil { // the SDK reports the fault, if it is one to it
		return nil
	}
	return []byte(named.Meta.Traceparent)
}

// prepareForSDK makes the message for the SDK of the parts that it needs. Params of tools/call are
// without the arguments, which the tool gets from here.
func (m *message) prepareForSDK(params jsontext.Value) *rpcRefusal {
	if len(m.id)+len(m.method)+len(params) > maxForSDK || tracker.TooMany(params, maxValuesForSDK) {
		return m.refuse(http.StatusBadRequest, rpcInvalid, fmt.Sprintf("Without the arguments of a tool, a message may have at most %d KiB and %d JSON values.", maxForSDK>>10, maxValuesForSDK))
	}
	m.params = paramsForSDK(m.method, params)
	whole, err := jsonv2.Marshal(&struct {
		Version string         `json:"jsonrpc"`
		ID      jsontext.Value `json:"id,omitzero"`
		Method  string         `json:"method"`
		Params  jsontext.Value `json:"params,omitzero"`
	}{"2.0", m.id, m.method, m.params})
	if err != nil {
		return m.refuse(http.StatusBadRequest, rpcInvalid, "The message can't be read.")
	}
	m.forSDK = whole
	return nil
}

// unreadable returns the refusal of a body that is not a message.
func unreadable(body []byte, err error) *rpcRefusal {
	syntax := new(jsontext.SyntacticError)
	switch {
	case errors.As(err, &syntax) || len(bytes.TrimSpace(body)) == 0:
		return refuseRPC(rpcParse, describeSyntax(err))
	case !jsontext.Value(body).IsValid(): // after the other faults
		return refuseRPC(rpcParse, "The body is not valid JSON.")
	case bytes.TrimSpace(body)[0] == '[':
		return refuseRPC(rpcInvalid, "Batches are not supported: send one message at a time.")
	}
	return refuseRPC(rpcInvalid, "The body is not a JSON-RPC message.")
}

// isMessageID reports whether an id is one that can be repeated exactly.
func isMessageID(id jsontext.Value) bool {
	switch id.Kind() {
	case '"':
		return true
	case '0':
		_, wrong := parseInteger(string(id))
		return wrong == "" && isDigits(string(id))
	}
	return false
}

// asks reports whether the message is a request, which is answered.
func (m *message) asks() bool { return m.id != nil }

// wait is how long the message asks its answer to wait.
func (m *message) wait() time.Duration {
	if m.tool == "" {
		return 0
	}
	var asked struct {
		Wait float64 `json:"wait"`
	}
	if json.Unmarshal(m.arguments, &asked) != nil {
		return 0
	}
	return min(time.Duration(max(0, min(asked.Wait, tracker.MaxWait.Seconds())))*time.Second, tracker.MaxWait)
}

// rpcRefusal is a message that says why another one is not answered.
type rpcRefusal struct {
	status  int
	id      jsontext.Value
	code    int
	message string
}

// ToolAnswer is the answer to a message to the tools: its result or its error.
type ToolAnswer struct {
	Version string          `json:"jsonrpc" enum:"2.0"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *ToolError      `json:"error,omitempty"`
}

// ToolError is an error of the protocol.
type ToolError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func refuseRPC(code int, message string) *rpcRefusal {
	return &rpcRefusal{status: http.StatusBadRequest, code: code, message: message}
}

func (m *message) refuse(status, code int, message string) *rpcRefusal {
	return &rpcRefusal{status: status, id: m.id, code: code, message: message}
}

// unknownMethod refuses a method there is not.
func (m *message) unknownMethod(protocol string) *rpcRefusal {
	status := http.StatusOK
	if protocol >= firstSessionless {
		status = http.StatusNotFound
	}
	return m.refuse(status, rpcNoMethod, "There is no method "+shorten([]byte(m.method))+" here: a session has tools only.")
}

// refused returns our error for a message that the SDK refused in its own words.
func (m *message) refused(status int, text string) *rpcRefusal {
	code := rpcInvalid
	if status >= http.StatusInternalServerError {
		code = rpcInternal
	}
	return m.refuse(status, code, text)
}

// wrongParams returns our error for params that the SDK could not read, which its answer says,
// or nil. The SDK names its Go types, and has the code 0 for the params of initialize.
func (m *message) wrongParams(status int, answer []byte) *rpcRefusal {
	if !bytes.Contains(answer, []byte(`"error":{`)) {
		return nil
	}
	var told struct{ Error *ToolError }
	if json.Unmarshal(answer, &told) != nil || told.Error == nil || !strings.HasPrefix(told.Error.Message, "handling '"+m.method+"': ") {
		return nil
	}
	return m.refuse(status, rpcParams, "The params do not fit the protocol's schema of "+m.method+".")
}

// refuseMessage answers with a refusal.
func (x *exchange) refuseMessage(r *rpcRefusal) error {
	id := r.id
	if id == nil {
		id = jsontext.Value("null")
	}
	body, err := encode(&ToolAnswer{Version: "2.0", ID: json.RawMessage(id), Error: &ToolError{Code: r.code, Message: r.message}})
	if err != nil {
		return err
	}
	x.respondMessage(r.status, body)
	return nil
}
