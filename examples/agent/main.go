// Agent is a small, complete worker for Switchyard's claim queue: copy it, replace
// work in work.go by what your agent does, and run as many of it as you like.
//
// It claims one session at a time, works on it under a lease that it keeps alive,
// logs what it does, asks when it has a question, and reports what came of it. The
// main goroutine claims and works; one more per session renews the lease. On SIGTERM
// or SIGINT it claims nothing more, finishes its session if that takes no longer than
// -grace, and otherwise hands it back.
//
// client.go repeats requests safely; lane.go has the requests of a session; owner.go finds
// the node of a cluster to ask. All code uses the standard library only.
// docs/agents.md is the tour.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// agent is one worker.
type agent struct {
	*client
	lease time.Duration // how long a session stays ours without a sign of life
	grace time.Duration // how long a shutdown waits for the work at hand
	step  time.Duration // how long a step of the pretended work takes
}

func main() {
	a := &agent{client: &client{http: &http.Client{Timeout: 45 * time.Second}}}
	flag.StringVar(&a.base, "url", os.Getenv("SWITCHYARD_URL"), "where Switchyard is (SWITCHYARD_URL)")
	flag.StringVar(&a.workspace, "workspace", os.Getenv("SWITCHYARD_WORKSPACE"), "id of the workspace (SWITCHYARD_WORKSPACE)")
	nodes := flag.String("nodes", os.Getenv("SWITCHYARD_NODES"), "URLs of the cluster's nodes, separated by commas, to ask the workspace's owner directly (SWITCHYARD_NODES)")
	flag.DurationVar(&a.lease, "lease", 30*time.Second, "how long a session is kept without a sign of life, 10s to 1h")
	flag.DurationVar(&a.grace, "grace", 20*time.Second, "how long a shutdown waits for the work at hand")
	flag.DurationVar(&a.step, "step", time.Second, "how long a step of the pretended work takes")
	name := flag.String("name", strconv.Itoa(os.Getpid()), "what the log calls this process")
	flag.Parse()
	// Not a flag: everybody on the machine sees those.
	a.token = os.Getenv("SWITCHYARD_TOKEN")
	var err error
	if a.nodes, err = parseNodes(*nodes); err != nil {
		log.Fatal(err)
	}
	a.base = strings.TrimSuffix(a.base, "/")
	if a.base == "" || a.workspace == "" || a.token == "" {
		log.Fatal("need -url, -workspace, and SWITCHYARD_TOKEN in the environment")
	}
	log.SetPrefix("agent " + *name + ": ")
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := a.run(ctx); err != nil {
		log.Fatal(err)
	}
	log.Print("stopped")
}

// run claims and works until ctx ends, or until asking again is pointless.
func (a *agent) run(ctx context.Context) error {
	for {
		l, err := a.claim(ctx)
		var refused *refusal
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.Status == http.StatusConflict:
			if pause(ctx, time.Second) != nil {
				return nil
			}
		case err != nil:
			return err // the token, the workspace or a flag is wrong
		case l != nil:
			a.handle(ctx, l)
		}
	}
}

// claim waits for a session to work on; nil when there was none for half a minute.
// A client that disconnects while waiting claims nothing, so a shutdown need not wait.
func (a *agent) claim(ctx context.Context) (*lane, error) {
	var answer struct {
		Sessions []claimed `json:"sessions"`
	}
	ask := map[string]any{"limit": 1, "leaseSeconds": int(a.lease.Seconds()), "wait": 30}
	if err := a.do(ctx, a.token, a.path("claim"), ask, &answer); err != nil || len(answer.Sessions) == 0 {
		return nil, err
	}
	return newLane(a.client, answer.Sessions[0], a.lease), nil
}

// errStopped is the reason if work ends early because the process has to stop.
var errStopped = errors.New("the agent was told to stop")

// handle works on a session and reports the result.
func (a *agent) handle(ctx context.Context, l *lane) {
	log.Printf("%s %q: begun", l.Issue.Identifier, l.Issue.Title)
	// The work outlives the signal to stop, by -grace at most.
	at, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		if pause(at, a.grace) == nil {
			cancel(errStopped)
		}
	})()
	go l.keep(at, cancel)

	result, err := a.work(at, l)
	if err != nil && !errors.Is(err, errWaits) && at.Err() != nil {
		err = context.Cause(at) // which says more than "canceled"
	}
	switch {
	case errors.Is(err, errWaits):
		log.Printf("%s: waits", l.Issue.Identifier)
		return
	case err == nil:
		err = l.report(at, map[string]any{"status": "completed", "result": result})
	case errors.Is(err, errStopped):
		// The next claimer goes on at once, instead of after a lease.
		short, done := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer done()
		err = errors.Join(err, l.handBack(short))
	case !errors.Is(err, errLost):
		err = errors.Join(err, l.report(at, map[string]any{"status": "failed", "result": err.Error()}))
	}
	if err != nil {
		log.Printf("%s: %v", l.Issue.Identifier, err)
		return
	}
	log.Printf("%s: completed", l.Issue.Identifier)
}
