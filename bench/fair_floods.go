package bench

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// flood is what a tenant sends too much of.
type flood struct {
	name   string
	status int
	rate   float64 // requests a second; 0: as many as its connections carry
	// begin makes what the flood needs. It returns a connection's source of requests, and a function that
	// ends and removes what was made; nil: nothing was.
	begin func(ctx context.Context, r *run) (requests func(connection int) func() []byte, end func() error, err error)
}

var floods = []flood{
	{name: "gets", status: 200, begin: sent(get.requests)},
	{name: "creates", status: 201, begin: sent(func(w *world, c int) func() []byte { return creates(w, []workspace{w.hot}, c) })},
	{name: "lists by combined filters", status: 200, begin: sent(func(w *world, c int) func() []byte { return filterLists(w.read, w.host, c) })},
	{name: "searches for two words", status: 200, begin: sent(func(w *world, c int) func() []byte { return searches(w, c, 2) })},
	{name: "similar issues", status: 200, begin: sent(similar.requests)},
	{name: "creates with 3 webhooks to a dead receiver", status: 201, begin: beginDeadHooks},
	{name: "creates with 1,000 streams of events", status: 201, begin: beginStreams},
	{name: "entries of a log for which 1,000 polls wait", status: 201, rate: wakesPerSecond, begin: beginPolls},
	{name: "holds with a timer each, which ends them after 0.2 s", status: 200, begin: beginTimers},
	{name: "captures with a screenshot of 1 MiB", status: 201, begin: beginCaptures},
}

// sent is the begin of a flood that needs nothing but its requests.
func sent(requests func(w *world, connection int) func() []byte) func(context.Context, *run) (func(int) func() []byte, func() error, error) {
	return func(_ context.Context, r *run) (func(int) func() []byte, func() error, error) {
		return func(c int) func() []byte { return requests(r.world, c) }, nil, nil
	}
}

// beginDeadHooks subscribes an address at which nobody listens to the events of the hooked workspace.
func beginDeadHooks(_ context.Context, r *run) (func(int) func() []byte, func() error, error) {
	w := r.world
	dead, err := freeAddrs(1)
	if err != nil {
		return nil, nil, err
	}
	h := &hooks{world: w}
	d := w.dial()
	defer d.close()
	for range subscriptions {
		id, err := subscribe(d, w, "http://"+dead[0])
		if err != nil {
			return nil, nil, errors.Join(err, h.remove())
		}
		h.ids = append(h.ids, id)
	}
	return func(c int) func() []byte { return creates(w, []workspace{w.hooked}, c) }, h.remove, nil
}

// beginStreams opens streams of the events of the workspace that gets the issues.
func beginStreams(ctx context.Context, r *run) (func(int) func() []byte, func() error, error) {
	w := r.world
	stop, err := follow(ctx, w.host, w.hot, followers)
	if err != nil {
		return nil, nil, err
	}
	end := func() error {
		_, _ = fmt.Fprintf(r.out, "  %s\n", stop())
		return nil
	}
	return func(c int) func() []byte { return creates(w, []workspace{w.hot}, c) }, end, nil
}

const (
	// wakesPerSecond is how often all polls of a flood are woken.
	wakesPerSecond = 20
	// wokenPollWait is how long each of them waits at most, in seconds: they end as late after the flood.
	wokenPollWait = 1
)

// beginPolls has polls wait for entries of a session's log, and poll again when they are woken.
func beginPolls(ctx context.Context, r *run) (func(int) func() []byte, func() error, error) {
	w, in := r.world, r.world.hot
	d := w.dial()
	defer d.close()
	body, err := ask(d, request("POST", w.host, "/workspaces/"+in.id+"/issues", in.token, newIssueWriter(w.stream(0)).typical()), 201)
	if err != nil {
		return nil, nil, err
	}
	issue, _ := issueID(body)
	text := w.sessionText(0)
	path, err := w.dispatch(d, in, issue, "watched", text)
	if err != nil {
		return nil, nil, err
	}
	if body, err = ask(d, request("POST", w.host, path+"/log", in.token, text.log()), 201); err != nil {
		return nil, nil, err
	}
	first, ok := issueID(body)
	if !ok {
		return nil, nil, fmt.Errorf("bench: a log entry without an id: %.300s", body)
	}
	polling, stop := context.WithCancel(ctx)
	polls := load{dial: w.dial, connections: followers, talks: func(int) talk { return pollAgain(w.host, in.token, path, first) }}
	ended := make(chan *sample, 1)
	began := time.Now()
	go func() { ended <- polls.run(polling) }()
	end := func() error {
		stop()
		s := <-ended
		_, _ = fmt.Fprintf(r.out, "  %d polls had %.0f answers a second\n", followers, float64(polls.answers.Load())/time.Since(began).Seconds())
		if polls.answers.Load() == 0 {
			return fmt.Errorf("bench: no poll was answered: %s", s.fault)
		}
		return nil
	}
	requests := func(connection int) func() []byte {
		text := w.sessionText(connection)
		return func() []byte { return request("POST", w.host, path+"/log", in.token, text.log()) }
	}
	return requests, end, nil
}

// pollAgain polls a session for the entries behind those that it has, first behind the one named.
func pollAgain(host, token, path, last string) talk {
	return talk{
		next: func() ([]byte, int) {
			return request("POST", host, fmt.Sprintf("%s/poll?since=%s&wait=%d", path, last, wokenPollWait), token, ""), 200
		},
		heard: func(body []byte) error {
			if ids := allIDs(body, "activities"); len(ids) > 0 {
				last = ids[len(ids)-1]
			}
			return nil
		},
	}
}

const (
	// holdFor is the time after which a hold of the flood of timers ends.
	holdFor = 200 * time.Millisecond
	// floodHolds is how many holds the flood has at once at most; a workspace may have 1,000.
	floodHolds = 960
)

// beginTimers makes a workspace for holds. Each sets a timer, whose operation is a change of its own.
func beginTimers(_ context.Context, r *run) (func(int) func() []byte, func() error, error) {
	w := r.world
	in, err := r.ownWorkspace("timers")
	if err != nil {
		return nil, nil, err
	}
	requests := func(c int) func() []byte {
		n, most := 0, max(1, floodHolds/slices.Max(r.Connections))
		return func() []byte {
			n++
			body := fmt.Sprintf(`{"reason":"Rests for a moment.","until":%q}`, time.Now().Add(holdFor).UTC().Format(time.RFC3339Nano))
			return request("PUT", w.host, fmt.Sprintf("/workspaces/%s/holds/agent:flood-%d-%d", in.id, c, n%most), in.token, body)
		}
	}
	return requests, func() error { return r.dropWorkspace(in) }, nil
}

// screenshotBytes is the size of the screenshots of the flood of captures.
const screenshotBytes = 1 << 20

// beginCaptures makes a workspace for issues with large attachments.
func beginCaptures(_ context.Context, r *run) (func(int) func() []byte, func() error, error) {
	w := r.world
	in, err := r.ownWorkspace("captures")
	if err != nil {
		return nil, nil, err
	}
	image := make([]byte, screenshotBytes)
	for i, random := 0, rand.NewPCG(textSeed, 0); i < len(image); i++ { // so that it can't be compressed
		image[i] = byte(random.Uint64())
	}
	copy(image, "\x89PNG\r\n\x1a\n")
	body := `{"url":"https://example.com/hump","title":"` + string(w.sessionText(0).some(4, 12)) + `","screenshot":{"contentBase64":"` + base64.StdEncoding.EncodeToString(image) + `"}}`
	capture := request("POST", w.host, "/workspaces/"+in.id+"/capture", in.token, body)
	return func(int) func() []byte { return func() []byte { return capture } }, func() error { return r.dropWorkspace(in) }, nil
}
