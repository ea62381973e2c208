package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
)

// workspace is one made for a run.
type workspace struct{ id, team, token string }

// world is the data a run works on: workspaces of its own, so that a node that is
// in use is measured without touching what others have there.
type world struct {
	dial func() doer
	host string
	many []workspace // the load is spread over these
	hot  workspace   // takes all creates of its scenario
	// hooked takes the creates of those scenarios that give it webhooks.
	hooked workspace
	read   workspace // has Config.Issues issues, to get and list
	ids    []string  // of the read workspace, at most maxIDs
	// small has smallIssues issues: what the read workspace's size costs shows beside it.
	small workspace

	work   map[string][]string // issues that sessions are about, by workspace
	agents atomic.Int64        // how many have been named
	polled []string            // the paths of polls
	// planned is set when the read workspace has issues that depend on each other.
	planned bool
	// filling returns a function that reports a fill's progress.
	filling func() func(Progress)
	// streams counts the streams of texts that each connection has begun.
	streams struct {
		sync.Mutex
		of map[int]uint64
	}
}

// workIssues is how many issues of a workspace sessions are about.
const workIssues = 16

// smallIssues is how many issues the small workspace has.
const smallIssues = 1000

// maxIDs bounds the issues that are read; the rest lie between them.
const maxIDs = 8192

// onboard makes the workspaces.
func onboard(ctx context.Context, base, token string, many int) (*world, error) {
	dial, host, err := dialer(base)
	if err != nil {
		return nil, err
	}
	w := &world{dial: dial, host: host, filling: func() func(Progress) { return nil }}
	run := rand.Uint32() // tells this run's slugs from those of others
	d := dial()
	defer d.close()
	for i := range many + 4 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		slug := fmt.Sprintf("bench-%08x-%d", run, i)
		made, err := onboardOne(d, host, token, slug)
		if err != nil {
			return nil, fmt.Errorf("bench: onboard %s: %w", slug, err)
		}
		w.many = append(w.many, made)
	}
	w.hot, w.read, w.small, w.hooked, w.many = w.many[many], w.many[many+1], w.many[many+2], w.many[many+3], w.many[:many]
	return w, nil
}

func onboardOne(d doer, host, token, slug string) (workspace, error) {
	body := fmt.Sprintf(`{"name":%q,"slug":%q,"key":"BENCH"}`, slug, slug)
	status, answer, err := d.do(request("POST", host, "/workspaces/onboard", token, body))
	if err != nil {
		return workspace{}, err
	}
	if status != 201 {
		return workspace{}, fmt.Errorf("status %d: %.300s", status, answer)
	}
	var made struct {
		Workspace struct{ ID string }
		Team      struct{ ID string }
		Token     struct{ Token string }
	}
	if err := json.Unmarshal(answer, &made); err != nil {
		return workspace{}, fmt.Errorf("read the answer: %w", err)
	}
	if made.Workspace.ID == "" || made.Token.Token == "" {
		return workspace{}, fmt.Errorf("an answer without workspace or token: %.300s", answer)
	}
	return workspace{id: made.Workspace.ID, team: made.Team.ID, token: made.Token.Token}, nil
}

// fill creates the issues of the read workspace and of the small one.
func (w *world) fill(ctx context.Context, issues int, out io.Writer) error {
	_, _ = fmt.Fprintf(out, "filling a workspace with %d issues\n", issues)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	seen := 0
	err := w.fillOne(ctx, w.read, issues, func(id string) {
		mu.Lock()
		defer mu.Unlock()
		// Every issue is kept with the same chance, however many there are.
		if seen++; len(w.ids) < maxIDs {
			w.ids = append(w.ids, id)
		} else if i := random.IntN(seen); i < maxIDs {
			w.ids[i] = id
		}
	})
	if err != nil {
		return err
	}
	if len(w.ids) == 0 {
		return fmt.Errorf("bench: fill a workspace: no answer had an id")
	}
	return w.fillOne(ctx, w.small, smallIssues, func(string) {})
}

func (w *world) fillOne(ctx context.Context, in workspace, issues int, made func(id string)) error {
	l := load{
		dial: w.dial, connections: min(32, 1+issues/16), most: int64(issues), status: 201,
		requests: func(c int) func() []byte { return creates(w, []workspace{in}, c) },
		answered: func(_ int, body []byte) {
			if id, ok := issueID(body); ok {
				made(id)
			}
		},
	}
	l.progress = w.filling()
	if s := l.run(ctx); s.errors > 0 {
		return fmt.Errorf("bench: fill a workspace: %d errors, the first: %s", s.errors, s.fault)
	}
	return nil
}

// fillWork makes the issues that sessions are about, where there are none.
func (w *world) fillWork(ctx context.Context) error {
	if w.work != nil {
		return nil
	}
	work := map[string][]string{}
	for _, in := range append([]workspace{w.hot}, w.many...) {
		var mu sync.Mutex
		count := workIssues
		if in == w.hot {
			count *= 16 // all connections work there
		}
		err := w.fillOne(ctx, in, count, func(id string) {
			mu.Lock()
			defer mu.Unlock()
			work[in.id] = append(work[in.id], id)
		})
		if err != nil {
			return err
		}
		if len(work[in.id]) == 0 {
			return fmt.Errorf("bench: fill a workspace: no answer had an id")
		}
	}
	w.work = work
	return nil
}

// issueID finds the id in an issue's JSON, its first field of that name.
func issueID(body []byte) (string, bool) {
	_, rest, ok := strings.Cut(string(body), `"id":"`)
	if !ok || len(rest) < 36 {
		return "", false
	}
	return rest[:36], true
}
