package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// subscriptions is how many webhooks a hooked workspace has, each for all events.
const subscriptions = 3

// hooks are the webhooks of the workspace that is made for them, while something is
// measured there, and the receiver they lead to.
type hooks struct {
	world    *world
	receiver *receiver // nil if the webhooks lead nowhere
	ids      []string
}

// refusal is the error of a node that does not deliver to this process. A node that the
// run did not start may refuse; scenarios that need deliveries are left out then.
type refusal struct{ why string }

func (r *refusal) Error() string {
	return "the node does not deliver to this process (it needs --webhooks-allow-http --webhooks-allow-cidr 127.0.0.0/8, on the same machine): " + r.why
}

const (
	// reachWithin is how long the first deliveries may take, and late ones.
	reachWithin = 5 * time.Second
	// removeWithin bounds the removal of webhooks that leave deliveries undone.
	removeWithin = 10 * time.Second
	// countPoll is how often the deliveries are counted while they are waited for.
	countPoll = 5 * time.Millisecond
)

// hook subscribes a receiver to the events of the hooked workspace, and makes sure
// that deliveries reach it. arrived is the receiver's.
func hook(ctx context.Context, w *world, arrived func(path, body []byte)) (_ *hooks, err error) {
	h := &hooks{world: w}
	if h.receiver, err = startReceiver(ctx, arrived); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.remove())
		}
	}()
	d := w.dial()
	defer d.close()
	for i := range subscriptions {
		id, err := subscribe(d, w, h.receiver.url+"/"+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		h.ids = append(h.ids, id)
	}
	status, answer, err := d.do(request("POST", w.host, "/workspaces/"+w.hooked.id+"/issues", w.hooked.token, newIssueWriter(w.stream(0)).typical()))
	if err != nil {
		return nil, fmt.Errorf("bench: try the webhooks: %w", err)
	}
	if status != 201 {
		return nil, fmt.Errorf("bench: try the webhooks: status %d: %.300s", status, answer)
	}
	if came := h.await(ctx, subscriptions, reachWithin); came < subscriptions {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("bench: try the webhooks: %w", err)
		}
		return nil, &refusal{fmt.Sprintf("%d of %d deliveries to %s came within %s", came, subscriptions, h.receiver.url, reachWithin)}
	}
	return h, nil
}

func subscribe(d doer, w *world, url string) (string, error) {
	status, answer, err := d.do(request("POST", w.host, "/workspaces/"+w.hooked.id+"/webhook-subscriptions", w.hooked.token, fmt.Sprintf(`{"url":%q}`, url)))
	if err != nil {
		return "", fmt.Errorf("bench: subscribe: %w", err)
	}
	if status != 201 {
		why := fmt.Sprintf("subscribe: status %d: %.300s", status, answer)
		if status >= 400 && status < 500 {
			return "", &refusal{why}
		}
		return "", errors.New("bench: " + why)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(answer, &made); err != nil || made.ID == "" {
		return "", fmt.Errorf("bench: subscribe: an answer without an id: %.300s", answer)
	}
	return made.ID, nil
}

// await returns how many deliveries came in all, as soon as they are as many as
// wanted, or else when the time is over.
func (h *hooks) await(ctx context.Context, want int64, within time.Duration) int64 {
	for end := time.Now().Add(within); ; {
		came := h.receiver.took.Load()
		if came >= want || !time.Now().Before(end) || !sleep(ctx, countPoll) {
			return came
		}
	}
}

// remove deletes the webhooks with their pending deliveries, so that none of them runs
// during the next measurement. It also works after a run was interrupted.
func (h *hooks) remove() error {
	d := h.world.dial()
	defer d.close()
	if h.receiver != nil {
		defer h.receiver.stop()
	}
	var faults []error
	end := time.Now().Add(removeWithin)
	for _, id := range h.ids {
		for {
			status, answer, err := d.do(request("DELETE", h.world.host, "/workspaces/"+h.world.hooked.id+"/webhook-subscriptions/"+id, h.world.hooked.token, ""))
			if err == nil && (status == 204 || status == 404) {
				break
			}
			// A deletion that was cut short is finished by another.
			if err == nil && status >= 500 && time.Now().Before(end) {
				continue
			}
			if err == nil {
				err = fmt.Errorf("status %d: %.300s", status, answer)
			}
			faults = append(faults, fmt.Errorf("bench: remove a webhook: %w", err))
			break
		}
	}
	return errors.Join(faults...)
}
