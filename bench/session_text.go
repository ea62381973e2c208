package bench

import "fmt"

// sessionText writes the texts of sessions: what agents are told, what they log and what they
// report. Owned by one goroutine.
type sessionText struct{ *prose }

// sessionText begins a connection's next stream of texts.
func (w *world) sessionText(connection int) sessionText {
	return sessionText{newProse(w.stream(connection))}
}

// some returns between from and to words. They need no escapes in JSON.
func (t sessionText) some(from, to int) []byte {
	return t.appendWords(nil, from+t.random.IntN(to-from+1))
}

// dispatch returns the body of a request that dispatches a session to an agent.
func (t sessionText) dispatch(agent string) string {
	return fmt.Sprintf(`{"agentId":%q,"provider":"bench","repo":"yard/hump","instructions":%q}`, agent, t.some(6, 16))
}

// log returns the body of a request that adds an entry to a session's log.
func (t sessionText) log() string {
	return fmt.Sprintf(`{"type":"action","message":%q}`, t.some(8, 20))
}

// report returns the body of a request that ends a session.
func (t sessionText) report() string {
	return fmt.Sprintf(`{"status":"completed","result":%q}`, t.some(4, 12))
}
