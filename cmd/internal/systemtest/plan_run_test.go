package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

const (
	// planLife is the number of steps that a workspace lives; then another one begins.
	planLife = 250
	// planWorkers is the number of workspaces that live at a time.
	planWorkers = 8
	// planSteps is the number of random operations of TestPlans, and planStepsShort that of
	// the tests of every change.
	planSteps, planStepsShort = 1_000_000, 10_000
	// planMoves is the number of random operations of TestPlans_FailOver.
	planMoves = 20_000
	// planStrike and planFailOver are the numbers of operations between two strikes.
	planStrike, planFailOver = 5000, 2000
	// planLapses is the number of workspaces of which one sees leases run out. That takes
	// 10 s, in which the other workspaces go on, so it is one of the first half.
	planLapses = 5
)

// planNodes are the nodes under test.
type planNodes interface {
	// urls returns the addresses of the nodes.
	urls() []string
	// strike kills a node, and returns when the service is whole again.
	strike(ctx context.Context, rng *rand.Rand) error
}

// TestPlans does at random what can be done to issues that depend on each other and to their
// sessions: relations, dispatches, claims, reports, releases, holds, limits, retries. Each
// answer, the counts of the queue after each step, and every few steps all sessions and
// lists, must be those of a plain model. The node is killed between.
func TestPlans(t *testing.T) {
	t.Parallel()
	steps, most := planSteps, 80*time.Minute
	if testing.Short() {
		steps, most = planStepsShort, 4*time.Minute
	}
	if given, err := strconv.Atoi(os.Getenv("SWITCHYARD_PLAN_STEPS")); err == nil {
		steps, most = given, 80*time.Minute
	}
	ctx, cancel := limited(t, most)
	defer cancel()
	alone := &planNode{t: t, data: t.TempDir()}
	if err := alone.start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { alone.node.Kill() })
	runPlans(ctx, t, alone, steps, min(steps/2, planStrike))
	if t.Failed() {
		return
	}
	if err := alone.node.Terminate(ctx); err != nil {
		t.Error(err)
	}
	if err := Verify(ctx, binary(t), alone.data); err != nil {
		t.Error(err)
	}
}

// TestPlans_FailOver is TestPlans on three nodes, of which one after another is killed.
func TestPlans_FailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	t.Parallel()
	ctx, cancel := limited(t, 20*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	runPlans(ctx, t, &planFleet{f}, planMoves, planFailOver)
}

// planNode is a node alone.
type planNode struct {
	t    *testing.T
	data string
	node *Process
	url  atomic.Pointer[string]
}

func (n *planNode) start(ctx context.Context) (err error) {
	if n.node, err = Launch(ctx, binary(n.t), n.data, nil, "--shards", "4"); err == nil {
		n.url.Store(&n.node.URL)
	}
	return err
}

func (n *planNode) urls() []string { return []string{*n.url.Load()} }

func (n *planNode) strike(ctx context.Context, _ *rand.Rand) error {
	n.node.Kill()
	return n.start(ctx)
}

// planFleet is a cluster.
type planFleet struct{ *Fleet }

func (f *planFleet) urls() (urls []string) {
	for _, m := range f.members {
		urls = append(urls, m.URL)
	}
	return urls
}

func (f *planFleet) strike(ctx context.Context, rng *rand.Rand) error {
	m := f.members[rng.IntN(len(f.members))]
	m.Kill()
	if !pause(ctx, time.Duration(rng.IntN(4000))*time.Millisecond) {
		return ctx.Err()
	}
	if err := m.Start(); err != nil {
		return err
	}
	return f.stand(ctx, 3)
}

// runPlans has workspaces live one after another until all steps are done, and strikes the
// nodes after each so many steps. SWITCHYARD_PLAN_LIFE repeats one of the lives alone.
func runPlans(ctx context.Context, t *testing.T, nodes planNodes, steps, each int) {
	t.Helper()
	s := testkit.Seed(t)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lives := make(chan int, (steps+planLife-1)/planLife)
	for life := range cap(lives) {
		if only, err := strconv.Atoi(os.Getenv("SWITCHYARD_PLAN_LIFE")); err != nil || only == life {
			lives <- life
		}
	}
	close(lives)
	var done atomic.Int64
	strikes := make(chan struct{}, 1)
	began := time.Now()
	var workers, striker sync.WaitGroup
	striker.Go(func() {
		rng := rand.New(rand.NewPCG(s, 1<<63))
		for range strikes {
			if err := nodes.strike(ctx, rng); err != nil {
				t.Error(err)
				cancel()
				return
			}
		}
	})
	var struck atomic.Int64
	var once sync.Once
	for range planWorkers {
		workers.Go(func() {
			for life := range lives {
				run := newPlanRun(ctx, t, nodes, life, rand.New(rand.NewPCG(s, uint64(life))))
				run.lapses = life%planLapses == 2 && life < cap(lives)/2
				err := run.live(func() {
					if done.Add(1)%int64(each) == 0 {
						select {
						case strikes <- struct{}{}:
							struck.Add(1)
						default:
						}
					}
				})
				if err != nil {
					once.Do(func() { run.tell(err) }) // the others end with it
					cancel()
				}
				if ctx.Err() != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	close(strikes)
	striker.Wait()
	if err := ctx.Err(); err != nil && !t.Failed() {
		t.Error(err)
	}
	t.Logf("%d steps in %d workspaces, %d strikes, %s", done.Load(), cap(lives), struck.Load(), time.Since(began).Round(time.Millisecond))
}

// planRun drives a workspace and its plan side by side. It belongs to one goroutine.
type planRun struct {
	*rand.Rand
	t     *testing.T
	ctx   context.Context //nolint:containedctx // that of the test
	nodes planNodes
	life  int
	m     *plan
	c     *Client
	path  string   // of the workspace
	log   []string // what was done last
	asked int      // requests, for their keys
	dice  int      // says what the next step is
	last  int      // number of the URL that answered last
	// lapses is set if leases are still to run out in this life.
	lapses bool
}

// planFault is a difference between the service and the plan.
type planFault struct{ text string }

func (f planFault) Error() string { return f.text }

func newPlanRun(ctx context.Context, t *testing.T, nodes planNodes, life int, r *rand.Rand) *planRun {
	return &planRun{Rand: r, t: t, ctx: ctx, nodes: nodes, life: life, m: newPlan(), c: NewClient("", fleetRoot, 2)}
}

// live does the steps of one workspace.
func (run *planRun) live(step func()) (err error) {
	defer run.c.HTTP.CloseIdleConnections()
	defer func() {
		if fault, is := recover().(planFault); is {
			err = fault
		}
	}()
	run.onboard()
	for i := range planLife {
		if run.lapses && i > planLife/3 && (i > planLife-25 || run.some(func(s *planSession) bool { return s.leased && s.lapsesForGood() }) != nil) {
			run.lapse()
		} else {
			run.step()
		}
		run.compareCounts()
		if i%25 == 24 {
			run.compareAll()
		}
		step()
	}
	run.compareAll()
	run.compareEnds()
	// A repeat may find the workspace, and its token with it, deleted by the first try.
	if a, again := run.do("DELETE", "", nil); a.Status != http.StatusOK && (!again || a.Status != http.StatusUnauthorized) {
		run.fail("the workspace's deletion: status %d: %s", a.Status, a.Body)
	}
	return nil
}

// tell ends the test with the last steps of the workspace, and keeps all of them in a file.
func (run *planRun) tell(err error) {
	kept := filepath.Join(os.TempDir(), fmt.Sprintf("switchyard-plan-%d-%d.log", run.life, os.Getpid()))
	all := strings.Join(run.log, "\n") + "\n" + err.Error() + "\n"
	if wrong := os.WriteFile(kept, []byte(all), 0o600); wrong != nil {
		run.t.Log(wrong)
	}
	var shortened []string
	for _, line := range run.log[max(0, len(run.log)-40):] {
		shortened = append(shortened, fmt.Sprintf("%.300s", line))
	}
	run.t.Errorf("workspace %d: %v\nafter:\n%s\nall steps are in %s", run.life, err, strings.Join(shortened, "\n"), kept)
}

func (run *planRun) fail(format string, args ...any) { panic(planFault{fmt.Sprintf(format, args...)}) }

// agents of a workspace. The last is not registered.
var planAgents = []string{"alpha", "beta", "gamma"}

func (run *planRun) onboard() {
	slug := fmt.Sprintf("plan-%d", run.life)
	answer, _ := run.ask(run.c.Token, "POST", "/workspaces/onboard", object{"name": "Plan", "slug": slug})
	var o Onboarded
	run.read(answer, http.StatusCreated, &o)
	run.c.Token, run.path = o.Token.Token, "/workspaces/"+o.Workspace.ID
	run.want("POST", "/tokens", object{"name": "alpha", "permissions": "write", "agentId": "alpha", "actorType": "agent"}, http.StatusCreated)
	run.want("POST", "/tokens", object{"name": "beta", "permissions": "write", "agentId": "beta", "actorType": "agent"}, http.StatusCreated)
	run.want("PATCH", "/agents/beta", object{"maxConcurrentSessions": 2}, http.StatusOK)
	run.m.room["beta"] = 2
	for _, name := range []string{"One", "Two"} {
		var project struct{ ID string }
		run.read(run.want("POST", "/projects", object{"name": name}, http.StatusCreated), http.StatusCreated, &project)
		run.m.projects = append(run.m.projects, project.ID)
	}
}

// ask sends a request until a node answers it: repeats have the same key. again is set if
// an earlier try may have had its effect.
func (run *planRun) ask(token, method, path string, body any) (a Answer, again bool) {
	run.asked++
	key := fmt.Sprintf("%d-%d", run.life, run.asked)
	for {
		urls := run.nodes.urls()
		c := Client{URL: urls[run.last%len(urls)], Token: token, HTTP: run.c.HTTP}
		answer, err := c.Do(run.ctx, method, path, body, "Idempotency-Key", key)
		if err == nil && answer.Status != http.StatusServiceUnavailable && answer.Status != http.StatusGatewayTimeout {
			return answer, again
		}
		again = true
		run.last++
		if !pause(run.ctx, 10*time.Millisecond) {
			run.fail("%s %s: %v, %v", method, path, run.ctx.Err(), err)
		}
	}
}

// do sends a request of the workspace's owner, and notes it.
func (run *planRun) do(method, path string, body any) (Answer, bool) {
	return run.as(run.c.Token, method, path, body)
}

func (run *planRun) as(token, method, path string, body any) (Answer, bool) {
	text, _ := json.Marshal(body)
	run.log = append(run.log, fmt.Sprintf("%s %s %.20000s", method, path, text))
	a, again := run.ask(token, method, run.path+path, body)
	run.log = append(run.log, fmt.Sprintf("  -> %d %.20000s", a.Status, a.Body))
	return a, again
}

// want sends a request and wants a status.
func (run *planRun) want(method, path string, body any, status int) Answer {
	a, again := run.do(method, path, body)
	if a.Status == http.StatusNotFound && again && method == http.MethodDelete && status == http.StatusNoContent {
		a.Status = status // it was done by the first try
	}
	if a.Status != status {
		run.fail("%s %s: status %d, want %d: %s", method, path, a.Status, status, a.Body)
	}
	return a
}

func (run *planRun) read(a Answer, status int, out any) {
	if a.Status != status {
		run.fail("status %d, want %d: %s", a.Status, status, a.Body)
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		run.fail("%v in %s", err, a.Body)
	}
}

// get reads something, which is not noted.
func (run *planRun) get(path string, out any) {
	a, _ := run.ask(run.c.Token, "GET", run.path+path, nil)
	run.read(a, http.StatusOK, out)
}
