package delivery

import (
	"errors"
	"fmt"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// This file reads the bodies of deliveries within the node's memory for them.

var (
	// errNoRoom is returned for an event that is not read, since there is no memory for its body.
	errNoRoom = errors.New("no room for the body of a delivery")
	// errLong is returned for an event that is not read, since it must be shortened.
	errLong = errors.New("an event is too long for a delivery")
)

// headBytes is more than what a delivery's body has besides data and changes, in bytes.
const headBytes = 4 << 10

// read returns the event of a delivery with the body to send. The slot of the queue has room for that
// body.
func (d *Dispatcher) read(v *storage.View, l *queue, p tracker.PendingDelivery, end *queueRun) (tracker.DeliveryEvent, error) {
	event, err := tracker.ReadDeliveryEvent(v, l.hook.id, p, func(size int) error {
		if size > d.of.cfg.MaxData {
			return errLong
		}
		return l.grow(size, end)
	})
	if errors.Is(err, errLong) {
		event, err = d.readLong(v, l, p, end)
	}
	if err == nil {
		l.slot.shrink(len(event.Body))
	}
	return event, err
}

// readLong is read for an event that may have to be shortened. That takes several times the memory of the
// event, which may be many times that of the body, so a node shortens few at a time.
func (d *Dispatcher) readLong(v *storage.View, l *queue, p tracker.PendingDelivery, end *queueRun) (event tracker.DeliveryEvent, err error) {
	select {
	case d.of.shortening <- struct{}{}:
		defer func() { <-d.of.shortening }()
	case <-d.ctx.Done():
		return event, fmt.Errorf("shorten an event: %w", d.ctx.Err())
	}
	cfg := &d.of.cfg
	event, err = tracker.ReadDeliveryEvent(v, l.hook.id, p, func(size int) error {
		return l.grow(min(size, 2*cfg.MaxData+headBytes), end)
	})
	if err == nil && event.Body != nil {
		event.Body, err = tracker.BriefDelivery(event.Body, cfg.PublicURL, cfg.MaxData)
	}
	return event, err
}

// grow makes the slot of a running queue large enough for a body.
func (l *queue) grow(body int, end *queueRun) error {
	if !l.slot.grow(body) {
		end.body = body
		return errNoRoom
	}
	return nil
}
