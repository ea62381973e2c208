package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

// Figures of package delivery that the tests reckon with.
const (
	dispatchLook = time.Minute          // the longest sleep of a dispatcher
	recordLinger = 5 * time.Millisecond // a result waits so long for others
	rateBurst    = 5                    // seconds' worth of a rate
	leastBurst   = 1 << 20              // the least burst of a rate of bytes
)

// receivers stands for all receivers of webhooks. A test sets the answer for each URL.
type receivers struct {
	mu     sync.Mutex
	answer map[string]func(context.Context, *webhook.Delivery) webhook.Result
	got    []received
	// ahead is how far the owner's clock is ahead of the bubble's clock.
	ahead atomic.Int64
}

func (r *receivers) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// leap advances the owner's clock, and waits until all sleeping goroutines have seen
// it.
func (r *receivers) leap(d time.Duration) {
	r.ahead.Add(int64(d - dispatchLook))
	pass(dispatchLook)
	rest()
}

// rest waits until all goroutines are idle and the results of deliveries are recorded.
func rest() {
	for range 3 {
		synctest.Wait()
		pass(recordLinger)
	}
	synctest.Wait()
}

// received is one request.
type received struct {
	url, id, kind string
	at            time.Time
	sequence      uint64
	secrets       int
}

func (r *receivers) Send(ctx context.Context, d *webhook.Delivery) webhook.Result {
	var e tracker.Event
	if err := json.Unmarshal(d.Body, &e); err != nil || e.Type != d.Type {
		return webhook.Result{Failure: "The body is no event of this type."}
	}
	r.mu.Lock()
	r.got = append(r.got, received{d.URL, d.ID, d.Type, r.now(), e.Sequence, len(d.Secrets)})
	answer := r.answer[d.URL]
	r.mu.Unlock()
	if answer != nil {
		return answer(ctx, d)
	}
	return webhook.Result{StatusCode: 200}
}

// at returns the requests to a URL.
func (r *receivers) at(url string) (list []received) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.got {
		if g.url == url {
			list = append(list, g)
		}
	}
	return list
}

func (r *receivers) set(url string, answer func(context.Context, *webhook.Delivery) webhook.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer[url] = answer
}

func answers(status int) func(context.Context, *webhook.Delivery) webhook.Result {
	return func(context.Context, *webhook.Delivery) webhook.Result {
		if status < 300 {
			return webhook.Result{StatusCode: status}
		}
		return webhook.Result{StatusCode: status, Failure: "refused", Gone: status == 410}
	}
}

// hangs never answers.
func hangs(ctx context.Context, _ *webhook.Delivery) webhook.Result {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	<-ctx.Done()
	return webhook.Result{Failure: "There was no answer within 10 seconds."}
}

// deliveryFixture is an engine with receivers.
type deliveryFixture struct {
	*testEngine
	*receivers
}

func withReceivers(t testing.TB, adjust ...func(*Config)) *deliveryFixture {
	t.Helper()
	r := &receivers{answer: map[string]func(context.Context, *webhook.Delivery) webhook.Result{}}
	b := setup(t, append(adjust, r.attach)...)
	return &deliveryFixture{b, r}
}

func (r *receivers) attach(c *Config) {
	c.OpenOnboarding = true
	c.Clock = r.now
	c.Webhooks.Sender = r
}

// as runs an operation as the workspace's owner.
func (p *deliveryFixture) as(o onboarded, op *tracker.Op, in any) ([]byte, error) {
	req := p.admitted(o.id, o.credential, op)
	req.Deadline = time.Now().Add(10 * time.Second)
	reply, err := p.engine.Do(req, op, in)
	return bytes.Clone(reply.Body), err
}

func (p *deliveryFixture) mustAs(o onboarded, op *tracker.Op, in any, out any) {
	p.t.Helper()
	body, err := p.as(o, op, in)
	if err != nil {
		p.t.Fatalf("%s: %v", op.Name, err)
	}
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			p.t.Fatalf("%s: %v", op.Name, err)
		}
	}
}

func (p *deliveryFixture) subscribe(o onboarded, url string) tracker.WebhookID {
	p.t.Helper()
	var w tracker.WebhookWithSecret
	p.mustAs(o, tracker.CreateWebhook, &tracker.CreateWebhookIn{URL: url}, &w)
	return w.ID
}

// issues creates issues, for their events.
func (p *deliveryFixture) issues(o onboarded, n int) {
	p.t.Helper()
	for range n {
		p.mustAs(o, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "an issue"}, nil)
	}
}

func (p *deliveryFixture) hook(o onboarded, id tracker.WebhookID) (w tracker.Webhook) {
	p.t.Helper()
	p.mustAs(o, tracker.WebhookByID, &tracker.WebhookByIDIn{ID: id}, &w)
	return w
}

func (p *deliveryFixture) deliveries(o onboarded, id tracker.WebhookID) []tracker.WebhookDelivery {
	p.t.Helper()
	var list tracker.DeliveryList
	p.mustAs(o, tracker.ListDeliveries, &tracker.ListDeliveriesIn{ID: id, Limit: 100}, &list)
	return list.Deliveries
}

// verify checks the whole state.
func (p *deliveryFixture) verify() {
	p.t.Helper()
	report, err := storage.Verify(context.Background(), p.store.State(), tracker.Schema())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, problem := range report.Problems {
		if problem.Table != "" {
			p.t.Errorf("verify: %v", problem)
		}
	}
}

// bubble runs a test in a synctest bubble.
func bubble(t *testing.T, run func(t *testing.T, p *deliveryFixture, o onboarded), adjust ...func(*Config)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := withReceivers(t, adjust...)
		run(t, p, p.onboard("home"))
		p.verify()
	})
}
