package delivery

import (
	"errors"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

// hook is a webhook.
type hook struct {
	space *workspaceHooks
	id    storage.ID
	// config is read by running queues. gone is set by them to the configuration with which
	// a try was answered 410: nothing more is sent with it.
	config, gone atomic.Pointer[tracker.WebhookTarget]

	// Owned by the dispatcher's loop.
	first, again queue
	healthy      bool // the last answer was a quick success, or a success before it was loaded
	removed      bool
}

// queue makes deliveries of a webhook one after another.
type queue struct {
	hook *hook

	// Owned by the dispatcher's loop.
	queued, running bool
	unhealthy       bool // counted as unhealthy when it started
	more            bool // there may be something to deliver
	// mark is the number of results that must be recorded before a retry queue may run:
	// it must see the rows as its last run has left them.
	mark uint64
	// due is the time at which the queue becomes ready: the next retry's due time, or
	// the end of a wait for a rate; zero for none.
	due   time.Time
	held  bool // it waits for a rate until due, and must not run before
	place int  // index in the heap, while due is set
	// body is the size of the next delivery's body if the last run had no room for that. 0: small.
	body int
	// slot is that of the run while the queue is running.
	slot *slot

	// Owned by the run. cursor is the last first attempt that was made, and reserved is
	// the delivery that waits for a rate.
	cursor   storage.ID
	reserved reservation
}

// queueRun is the result of a run.
type queueRun struct {
	queue *queue
	more  bool // it stopped before the end of its list
	next  time.Time
	// held is the time when the next delivery may be sent; zero: now.
	held time.Time
	// body is the size of the body for which there was no room; 0: none.
	body int
	mark uint64
	// tried is set if requests were sent, healthy if the last answer was a quick
	// success, and failed if some failed.
	tried, healthy, failed bool
}

const (
	// runBatch and runTime limit a run, so that queues take turns.
	runBatch = 64
	runTime  = 100 * time.Millisecond
	// heldBatch replaces runBatch for queues that have waited for a rate: they send
	// little before they wait again.
	heldBatch = 4
	// While callers wait for answers, a queue pauses after every wayEvery deliveries, for
	// twice the time that those took and at most wayMost. Callers have priority over
	// deliveries; a remote receiver doesn't notice the pause.
	wayEvery = 8
	wayMost  = wayEvery * 500 * time.Microsecond
	// quick is the time within which a healthy webhook answers.
	quick = 2 * time.Second
)

func newHook(s *workspaceHooks, id storage.ID) *hook {
	t := &hook{space: s, id: id}
	t.first.hook, t.again.hook = t, t
	return t
}

// renew sets a webhook's configuration, and makes both queues look for deliveries. It forgets a
// 410, also if nothing has changed: the webhook may have been disabled and activated since.
func (t *hook) renew(c *tracker.WebhookTarget) {
	t.config.Store(c)
	t.first.more, t.again.more = true, true
}

// class returns the class of the webhook's queues.
func (t *hook) class() class {
	if t.healthy {
		return healthyClass
	}
	return unhealthyClass
}

func (l *queue) retry() bool { return l == &l.hook.again }

func (l *queue) busy() bool { return l.queued || l.running || l.more }

func (l *queue) runnable() bool {
	written, full := l.hook.space.recorder.state()
	return l.more && !l.held && !full && !l.hook.removed && written >= l.mark && !l.hook.space.readOnly()
}

// run makes deliveries of a queue until its turn is over.
func (d *Dispatcher) run(l *queue) queueRun {
	t := l.hook
	end := queueRun{queue: l}
	v := storage.NewView(d.of.cfg.State, d.shard, t.space.id)
	list, err := d.list(&v, l, &end)
	if err != nil {
		return d.failedRun(end, err)
	}
	began := time.Now()
	since := began
	for i, p := range list {
		if i%wayEvery == wayEvery-1 {
			d.yieldToRequests(time.Since(since))
			since = time.Now()
		}
		if d.ctx.Err() != nil {
			return end
		}
		if t.space.readOnly() {
			end.more = true
			break
		}
		o, err := d.try(&v, l, p, &end)
		if errors.Is(err, errNoRoom) {
			break // the queue runs again when there is room
		}
		if err != nil && d.ctx.Err() != nil {
			return end
		}
		if err != nil {
			return d.failedRun(end, err)
		}
		if !end.held.IsZero() {
			end.more = true
			break
		}
		if d.ctx.Err() != nil && o.Error != "" {
			return end // it was canceled: the next dispatcher makes it again
		}
		if !l.retry() {
			l.cursor = p.ID
		}
		added, full := t.space.recorder.add(o)
		end.mark = added
		if (full || time.Since(began) > runTime) && i+1 < len(list) {
			end.more = true
			break
		}
	}
	if l.retry() && len(list) > 0 { // failed retries have a new due time once they are recorded
		end.more, end.next = true, time.Time{}
	}
	return end
}

// yieldToRequests pauses for a moment if callers wait.
func (d *Dispatcher) yieldToRequests(took time.Duration) {
	if !d.of.cfg.Busy() {
		return
	}
	timer := time.NewTimer(min(2*took, wayMost))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.ctx.Done():
	}
}

// list returns the deliveries of a run.
func (d *Dispatcher) list(v *storage.View, l *queue, end *queueRun) (list []tracker.PendingDelivery, err error) {
	most := runBatch
	if l.reserved != (reservation{}) {
		most = heldBatch
	}
	if l.retry() {
		list, end.next, err = tracker.ListRetries(v, l.hook.id, d.of.cfg.Clock(), most)
		return list, err
	}
	list, err = tracker.ListOutbox(v, l.hook.id, l.cursor, most)
	end.more = len(list) == most
	return list, err
}

// failedRun ends a run whose read failed, and makes the dispatcher try again later.
func (d *Dispatcher) failedRun(end queueRun, err error) queueRun {
	t := end.queue.hook
	d.broken(t.space.id, err)
	end.more, end.next = false, time.Time{}
	time.AfterFunc(readAgain, func() { d.notify(t.space.id, dirtyWebhooks) })
	return end
}

// try makes one attempt of a delivery. If it must wait for a rate instead, try sets
// end.held. If there is no room for its body, try sets end.body and returns errNoRoom.
func (d *Dispatcher) try(v *storage.View, l *queue, p tracker.PendingDelivery, end *queueRun) (tracker.DeliveryOutcome, error) {
	cfg, t := &d.of.cfg, l.hook
	o := tracker.DeliveryOutcome{Webhook: t.id, Delivery: p.ID, Sequence: p.Sequence, Retry: l.retry(), Due: p.Due, At: cfg.Clock()}
	event, err := d.read(v, l, p, end)
	if err != nil {
		return o, err
	}
	o.EventID, o.EventType = event.ID, event.Type
	c := t.config.Load()
	o.URL = c.URL
	switch {
	case !c.Active || t.gone.Load() == c:
		// It is among the retries once this is recorded, if the webhook is active then.
		o.Final, o.Disabled, o.Error = true, true, "The subscription was disabled before the event was delivered."
	case event.Body == nil:
		o.Final, o.Error = true, "The event is no longer kept."
	default:
		if end.held = d.hold(l, p, c.Host, len(event.Body)); !end.held.IsZero() {
			d.of.counters.held.Add(1)
			return o, nil
		}
		d.send(t, c, &event, &o, end)
	}
	if o.Error != "" && !o.Tried {
		d.of.counters.outcomes[dropped].Add(1)
	}
	return o, nil
}

func (d *Dispatcher) send(t *hook, c *tracker.WebhookTarget, event *tracker.DeliveryEvent, o *tracker.DeliveryOutcome, end *queueRun) {
	delivery := webhook.Delivery{URL: c.URL, ID: o.Delivery.String(), Type: event.Type, Body: event.Body, Secrets: []string{c.Secret}, At: o.At}
	if c.Previous != "" && o.At.Before(c.Until) {
		delivery.Secrets = append(delivery.Secrets, c.Previous)
	}
	d.of.inFlight.Add(1)
	began := time.Now()
	result := d.of.cfg.Sender.Send(d.ctx, &delivery)
	took := time.Since(began)
	d.of.inFlight.Add(-1)
	o.Tried, o.StatusCode, o.Error, o.Gone = true, result.StatusCode, result.Failure, result.Gone
	end.tried, end.healthy = true, result.Failure == "" && took < quick
	if result.Failure == "" {
		d.of.counters.outcomes[succeeded].Add(1)
		return
	}
	end.failed = true
	d.of.counters.outcomes[failed].Add(1)
	if result.Gone {
		t.gone.Store(c)
	}
}
