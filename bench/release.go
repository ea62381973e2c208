package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	releaseName = "release"
	// releasedIssues depend on one blocker, which may have 200 relations, and have
	// releasedSessions that wait for it.
	releasedIssues, releasedSessions = 200, 1000
	// batchItems is the number of sessions in one request of a dispatch batch.
	batchItems = 50
	// releaseRounds is the least number of times that it is measured.
	releaseRounds = 3
	// lookPause is the time between two looks for sessions that are not released yet. Looks without a pause
	// would take the processor from the request that is measured beside them.
	lookPause = 2 * time.Millisecond
)

// release closes an issue that blocks others, for which whenReady sessions wait, and
// measures the time until all of them can be claimed. Another connection works in the same
// workspace meanwhile, one request after the other.
var release = scenario{
	name: releaseName, about: "close a blocker of 1,000 sessions",
	alone: func(ctx context.Context, r *run) (figures []Figure, err error) {
		in, err := r.ownWorkspace("release")
		if err != nil {
			return nil, err
		}
		m := &releasing{w: r.world, in: in, closer: r.world.dial(), other: r.world.dial(), issues: newIssueWriter(r.world.stream(0))}
		defer m.closer.close()
		defer m.other.close()
		defer func() { err = errors.Join(err, r.dropWorkspace(in)) }()
		for end := time.Now().Add(r.Duration); len(m.took) < releaseRounds || time.Now().Before(end); {
			if err := m.round(ctx); err != nil {
				return []Figure{{Scenario: releaseName, About: "close a blocker", Fault: err.Error()}}, nil
			}
		}
		took, longest, usual := middle(m.took), middle(m.longest), middle(m.usual)
		return []Figure{{
			Scenario: releaseName, Value: took, Unit: "ms", Target: 200,
			About: fmt.Sprintf("from closing a blocker until its %d sessions can be claimed, the middle of %d times", releasedSessions, len(m.took)),
		}, {
			Scenario: releaseName, Value: longest, Unit: "ms", Target: 5,
			About: fmt.Sprintf("the longest other request in the workspace meanwhile, the middle of %d times (before it, as long: %.2f ms)", len(m.took), usual),
		}}, nil
	},
}

// releasing is a measurement under way.
type releasing struct {
	w             *world
	in            workspace
	closer, other doer
	issues        *issueWriter
	// In milliseconds, of each round: the time of the release, and the longest other
	// request during it and during the same time before it.
	took, longest, usual []float64
}

func (m *releasing) path(rest string) string { return "/workspaces/" + m.in.id + rest }

// round makes the sessions, closes their blocker, and deletes nothing: the sessions of
// another round are of another agent.
func (m *releasing) round(ctx context.Context) error {
	body := m.issues.appendItems(nil, 1+releasedIssues, func(item int) string {
		more := fmt.Sprintf(`,"status":"todo","ref":%q`, itemRef(item))
		if item > 0 {
			more += fmt.Sprintf(`,"relations":[{"type":"blocked_by","ref":%q}]`, itemRef(0))
		}
		return more
	})
	answer, err := ask(m.closer, request("POST", m.w.host, m.path("/issues/bulk"), m.in.token, string(body)), 201)
	if err != nil {
		return err
	}
	ids := allIDs(answer, "issues")
	if len(ids) != 1+releasedIssues {
		return fmt.Errorf("bench: %d issues were created, want %d", len(ids), 1+releasedIssues)
	}
	agent := fmt.Sprintf("crew-%d", m.w.agents.Add(1))
	for from := 0; from < releasedSessions; from += batchItems {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.w.dispatchBatch(m.closer, m.in, batchItems, func(i int) string {
			return fmt.Sprintf(`{"issueId":%q,"agentId":%q,"whenReady":true}`, ids[1+(from+i)%releasedIssues], agent)
		}); err != nil {
			return err
		}
	}
	if n, err := m.blocked(); err != nil || n != releasedSessions {
		return errors.Join(err, fmt.Errorf("bench: %d sessions wait for the blocker, want %d", n, releasedSessions))
	}
	usual := m.beside(ctx)
	sleep(ctx, settle/4)
	m.usual = append(m.usual, usual())

	longest := m.beside(ctx)
	began := time.Now()
	_, err = ask(m.closer, request("PATCH", m.w.host, m.path("/issues/"+ids[0]), m.in.token, `{"status":"done"}`), 200)
	left := 1
	for err == nil && left > 0 && ctx.Err() == nil {
		if left, err = m.blocked(); left > 0 {
			sleep(ctx, lookPause)
		}
	}
	took := time.Since(began)
	m.longest = append(m.longest, longest())
	m.took = append(m.took, millisOf(took))
	return errors.Join(err, ctx.Err())
}

// blocked counts the sessions that wait for a blocker.
func (m *releasing) blocked() (int, error) {
	body, err := ask(m.closer, request("GET", m.w.host, m.path("/agent/queue"), m.in.token, ""), 200)
	if err != nil {
		return 0, err
	}
	var queue struct{ WaitingFor map[string]int }
	if err := json.Unmarshal(body, &queue); err != nil {
		return 0, fmt.Errorf("bench: read the counts of the queue: %w", err)
	}
	return queue.WaitingFor["blocked"], nil
}

// beside creates issues in the workspace, one after the other, until the returned function
// is called. That returns how long the longest request took, in milliseconds.
func (m *releasing) beside(ctx context.Context) (longest func() float64) {
	stop, most := make(chan struct{}), make(chan float64, 1)
	go func() { // ends when the returned function has closed stop
		var worst time.Duration
		var body []byte
		for {
			select {
			case <-stop:
				most <- millisOf(worst)
				return
			case <-ctx.Done():
				most <- math.NaN()
				return
			default:
			}
			body = m.issues.appendIssue(body[:0])
			began := time.Now()
			_, err := ask(m.other, request("POST", m.w.host, m.path("/issues"), m.in.token, string(bytes.Clone(body))), 201)
			if worst = max(worst, time.Since(began)); err != nil {
				worst = answerWithin
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-most
	}
}

func millisOf(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// middle returns the median.
func middle(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}
