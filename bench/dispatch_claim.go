package bench

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

const (
	dispatchClaimName  = "dispatch-claim"
	dispatchClaimAbout = "a dispatch until a waiting claim is answered"
)

// dispatchClaim measures the time from sending a dispatch until a waiting claim is
// answered, in turns with dispatches that no claim waits for. There is no other load.
var dispatchClaim = scenario{
	name: dispatchClaimName, about: dispatchClaimAbout, work: true,
	alone: func(ctx context.Context, r *run) (figures []Figure, _ error) {
		d := &dispatching{w: r.world, in: r.world.hot, sender: r.world.dial(), claimer: r.world.dial(), text: r.world.sessionText(0)}
		defer d.sender.close()
		defer d.claimer.close()
		reached, plain := newHistogram(), newHistogram()
		measured := time.Now().Add(r.Warmup)
		for end := measured.Add(r.Duration); time.Now().Before(end); d.n++ {
			claim, dispatch, err := d.turn(ctx)
			if err != nil {
				return []Figure{{Scenario: dispatchClaimName, About: dispatchClaimAbout, Fault: err.Error()}}, nil
			}
			if plain.TotalCount() == 0 || !time.Now().Before(measured) {
				_ = reached.RecordValue(min(max(claim.Microseconds(), lowestLatency), highestLatency))
				_ = plain.RecordValue(min(max(dispatch.Microseconds(), lowestLatency), highestLatency))
			}
		}
		at := func(q float64) (to, alone float64) {
			return float64(reached.ValueAtQuantile(q)) / 1000, float64(plain.ValueAtQuantile(q)) / 1000
		}
		for _, q := range []float64{50, 99} {
			to, alone := at(q)
			f := Figure{
				Scenario: dispatchClaimName, Value: to - alone, Unit: "ms",
				About: fmt.Sprintf("a waiting claim is answered %.2f ms after the dispatch is sent, one nobody waits for after %.2f ms (p%.0f); difference", to, alone, q),
			}
			if q == 50 {
				f.Target = 1
			}
			figures = append(figures, f)
		}
		to, _ := at(50)
		return append(figures, Figure{Scenario: dispatchClaimName, About: dispatchClaimAbout + ", p50", Value: to, Unit: "ms", Target: 0.8}), nil
	},
}

// dispatching takes turns with and without a waiting claim.
type dispatching struct {
	w               *world
	in              workspace
	sender, claimer doer
	text            sessionText
	n               int
}

// waitsSoon is how long a claim is given until it waits; one that comes late is
// answered at once and makes the figure worse.
const waitsSoon = 3 * time.Millisecond

// turn dispatches to a claim that waits, then to nobody, and ends both sessions.
func (d *dispatching) turn(ctx context.Context) (claim, dispatch time.Duration, err error) {
	type answer struct {
		body []byte
		at   time.Time
		err  error
	}
	answers := make(chan answer, 1)
	go func() { // ends with the answer, which the wait or the connection's deadline bounds
		body, err := ask(d.claimer, request("POST", d.w.host, "/workspaces/"+d.in.id+"/agent/sessions/claim", d.in.token, fmt.Sprintf(claimBody, "ready", 10)), 200)
		at := time.Now()
		answers <- answer{bytes.Clone(body), at, err}
	}()
	sleep(ctx, waitsSoon)
	issues := d.w.work[d.in.id]
	issue := issues[d.n%len(issues)]
	sent := time.Now()
	_, err = d.w.dispatch(d.sender, d.in, issue, "ready", d.text)
	a := <-answers
	if err == nil {
		err = a.err
	}
	if err != nil {
		return 0, 0, err
	}
	claim = a.at.Sub(sent)
	session, lane, err := claimed(a.body)
	if err != nil {
		return 0, 0, err
	}
	if _, err := ask(d.sender, request("POST", d.w.host, "/workspaces/"+d.in.id+"/agent/sessions/"+session+"/report", lane, d.text.report()), 200); err != nil {
		return 0, 0, err
	}
	sleep(ctx, waitsSoon) // as before the other one
	sent = time.Now()
	path, err := d.w.dispatch(d.sender, d.in, issue, "nobody", d.text)
	if err != nil {
		return 0, 0, err
	}
	dispatch = time.Since(sent)
	_, err = ask(d.sender, request("POST", d.w.host, path+"/cancel", d.in.token, "{}"), 200)
	return claim, dispatch, err
}
