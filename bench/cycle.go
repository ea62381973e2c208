package bench

import (
	"errors"
	"fmt"
	"strings"
)

// cycle is the usual work of a fleet: sessions are dispatched, claimed, logged to
// three times and reported completed. Each step is a request and a durable write
// of about a create's size, so the rate of creates is its limit.
var cycle = scenario{
	name: "cycle", about: "a session's six requests, in many workspaces",
	limit: createMany.name, target: 0.8, work: true,
	talks: func(w *world, connection int) talk { return cycles(w, w.many, connection) },
}

// cycleHot is the same in one workspace.
var cycleHot = scenario{
	name: "cycle-hot", about: "a session's six requests, all in one workspace",
	limit: createHot.name, target: 0.5, work: true,
	talks: func(w *world, connection int) talk { return cycles(w, []workspace{w.hot}, connection) },
}

// cycling is a connection's way through sessions. It has an agent of its own, so
// that it claims what it has dispatched.
type cycling struct {
	w     *world
	in    []workspace
	agent string
	text  sessionText
	n     int // of the session
	step  int // of the six requests
	// session and lane come from the answer to the claim.
	session, lane string
}

// cycles gives the requests of whole sessions, in one workspace after another.
func cycles(w *world, in []workspace, connection int) talk {
	// An agent's second session of one issue can't be claimed while the first goes on,
	// and one that a measurement's end cut off does: another measurement has other agents.
	c := &cycling{w: w, in: in, agent: fmt.Sprintf("crew-%d", w.agents.Add(1)), text: w.sessionText(connection), n: connection * 7}
	return talk{next: c.next, heard: c.heard}
}

const claimBody = `{"agentId":%q,"wait":%d}`

func (c *cycling) next() ([]byte, int) {
	at := c.in[c.n%len(c.in)]
	base := "/workspaces/" + at.id
	switch c.step {
	case 0:
		issues := c.w.work[at.id]
		issue := issues[c.n/len(c.in)%len(issues)]
		return request("POST", c.w.host, base+"/issues/"+issue+"/dispatch", at.token, c.text.dispatch(c.agent)), 201
	case 1:
		return request("POST", c.w.host, base+"/agent/sessions/claim", at.token, fmt.Sprintf(claimBody, c.agent, 0)), 200
	case 5:
		return request("POST", c.w.host, base+"/agent/sessions/"+c.session+"/report", c.lane, c.text.report()), 200
	default:
		return request("POST", c.w.host, base+"/agent/sessions/"+c.session+"/log", c.lane, c.text.log()), 201
	}
}

func (c *cycling) heard(body []byte) (err error) {
	if c.step == 1 {
		if c.session, c.lane, err = claimed(body); err != nil {
			return err
		}
	}
	if c.step++; c.step == 6 {
		c.step = 0
		c.n++
	}
	return nil
}

// claimed finds the session and its lane token in the answer to a claim.
func claimed(body []byte) (session, lane string, err error) {
	session, ok := issueID(body) // the first id in it
	_, rest, found := strings.Cut(string(body), `"laneToken":"`)
	lane, _, whole := strings.Cut(rest, `"`)
	if !ok || !found || !whole {
		return "", "", errors.New("nothing was claimed: " + string(body[:min(len(body), 300)]))
	}
	return session, lane, nil
}
