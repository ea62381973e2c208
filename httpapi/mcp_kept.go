package httpapi

import (
	"net/http"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Every caller sees the same tools, which never change. So the answers to the messages that
// call no tool depend on the message alone, without its id, and are made once.

const (
	// mostKept bounds the answers that are kept. There are about three for each version of the protocol.
	mostKept = 64
	// maxKeptKey bounds the key of an answer that is kept, in bytes.
	maxKeptKey = 512
)

// keptAnswers has results of messages that call no tool, by all that the SDK gets of the message but its id.
type keptAnswers struct {
	mu      sync.RWMutex // nothing waits while it is held
	results map[string]jsontext.Value
}

// keptKey returns the key of the answer to a message; empty if none is kept.
func (x *exchange) keptKey(m *message) string {
	if m.method == methodCall || len(m.params) > maxKeptKey/2 {
		return ""
	}
	// A header with another method is refused by newer versions of the protocol.
	named := "other"
	if string(x.ctx.Request.Header.Peek("Mcp-Method")) == m.method {
		named = "same"
	}
	key := m.method + "\n" + x.protocol() + "\n" + named + "\n" + string(m.params)
	if len(key) > maxKeptKey {
		return ""
	}
	return key
}

// find returns the result with a key; nil for none.
func (k *keptAnswers) find(key string) jsontext.Value {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.results[key]
}

// keep keeps the result of an answer of the SDK. If there is no room, another result goes.
func (k *keptAnswers) keep(key string, status int, answer []byte) {
	if key == "" || status != http.StatusOK {
		return
	}
	var told struct {
		Result jsontext.Value `json:"result"`
	}
	if jsonv2.Unmarshal(answer, &told) != nil || told.Result == nil {
		return // an error
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.results == nil {
		k.results = make(map[string]jsontext.Value, mostKept)
	}
	if len(k.results) >= mostKept {
		for other := range k.results {
			delete(k.results, other)
			break
		}
	}
	k.results[key] = told.Result.Clone()
}

// respondKept answers a message with a result that was kept.
func (s *Server) respondKept(x *exchange, m *message, result jsontext.Value) error {
	const head, middle = `{"jsonrpc":"2.0","id":`, `,"result":`
	body := make([]byte, 0, len(head)+len(m.id)+len(middle)+len(result)+1)
	body = append(append(append(append(append(body, head...), m.id...), middle...), result...), '}')
	if err := s.chargeMessage(x, body, false); err != nil {
		return err
	}
	x.respondMessage(http.StatusOK, body)
	return nil
}
