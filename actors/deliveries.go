package actors

import (
	"cmp"
	"errors"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
	"switchyard/actors/webhook"
	"switchyard/storage"
)

// This file joins the engine and the dispatchers of webhook deliveries.

// busyCommands is the number of unanswered commands beyond which deliveries pause now and
// then.
const busyCommands = 4

// newDispatchers makes the dispatchers of the engine's shards.
func (e *Engine) newDispatchers() *delivery.Dispatchers {
	w := &e.cfg.Webhooks
	sender := w.Sender
	if sender == nil {
		e.client = webhook.NewClient(webhook.Config{Permits: w.Policy.Permits, AllowHTTP: w.Policy.AllowHTTP})
		sender = e.client
	}
	if w.Wrap != nil {
		sender = w.Wrap(sender)
	}
	return delivery.New(delivery.Config{
		State:     e.state,
		Sender:    sender,
		Record:    e.recordDeliveries,
		Busy:      func() bool { return e.commands.Load() > busyCommands },
		Shortage:  e.shortage,
		Enter:     e.background.enter,
		Leave:     e.background.leave,
		Stopped:   e.stopped,
		Clock:     e.cfg.Clock,
		Logger:    e.log,
		Most:      e.cfg.Limits.Deliveries,
		Bytes:     e.cfg.DeliveryBytes,
		Workspace: w.Workspace,
		Host:      w.Host,
		MaxData:   cmp.Or(w.MaxData, tracker.DefaultDeliveryPart),
		PublicURL: e.cfg.Inbound.PublicURL,
	})
}

// recordDeliveries writes results of deliveries through the actor of their workspace.
func (e *Engine) recordDeliveries(workspace storage.ID, results *tracker.DeliveryOutcomes) error {
	_, err := e.do(tracker.ServiceRequest("webhooks", workspace), tracker.RecordDeliveries, results)
	var failure *tracker.Error
	if errors.As(err, &failure) && failure.Code == tracker.CodeNotFound {
		return nil // the workspace was deleted with its deliveries
	}
	return err
}

// deliver makes the dispatcher of an owned shard look into a workspace. queued are the
// webhooks that may have new deliveries; none means any.
func (s *shard) deliver(workspace storage.ID, touched storage.DirtyFlags, queued []storage.ID) {
	s.mu.RLock()
	d := s.dispatcher
	s.mu.RUnlock()
	if d != nil {
		d.Notify(workspace, touched, queued)
	}
}
