package actors

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// readable returns the epoch in which this node owns a shard when reads of the shard's
// state by this node are linearizable now. The epoch is looked at last: no epoch is owned
// twice, so a caller that compares it with an earlier one knows that the shard was owned
// all the time between.
func (e *Engine) readable(n storage.Shard, deadline time.Time) (epoch uint64, err error) {
	barred := e.replicator.ReadBarrier(n, deadline)
	epoch, here := e.replicator.Owner(n)
	switch {
	case !here:
		e.stats.refused[refusedNotOwner].Add(1)
		return 0, errNotServed()
	case barred != nil:
		e.stats.refused[refusedBarrier].Add(1)
		return 0, tracker.Moved("This node could not make sure in time that it has the latest state of the workspace.")
	}
	return epoch, nil
}

// proven reports whether a proof from the request's admission holds for an operation: it is
// about the same workspace, which this node has served since.
func (e *Engine) proven(op *tracker.Op, proof *tracker.Proof, shard storage.Shard) bool {
	if proof.Epoch == 0 || op.Directory {
		return false
	}
	epoch, here := e.replicator.Owner(shard)
	return here && epoch == proof.Epoch
}

// query runs a query, and looks at the caller's rights again whenever they may have changed before
// it read the workspace. proof is from the admission of this very request, or zero.
func (e *Engine) query(req *tracker.Request, op *tracker.Op, in any, proof tracker.Proof) (reply tracker.Reply, err error) {
	e.stats.queries.Add(1)
	var heavy *heavyRun
	if turns := e.turnsOf(req, op); turns != nil { // it waits before the read barrier
		if heavy, err = e.takeTurn(turns, req, target(req, op), false); err != nil {
			return tracker.Reply{}, err
		}
	}
	defer func() { heavy.end() }()
	for range maxAdmissions {
		reply, err = e.read(req, op, in, proof, heavy)
		if errors.Is(err, tracker.ErrTurn) {
			if heavy, err = e.takeTurn(e.pages, req, target(req, op), false); err != nil {
				return tracker.Reply{}, err
			}
			reply, err = e.read(req, op, in, proof, heavy)
		}
		if !errors.Is(err, errOutdated) {
			break
		}
		if err := e.admitAgain(req, op); err != nil {
			return tracker.Reply{}, err
		}
		proof, req.Proof = req.Proof, tracker.Proof{}
	}
	if req.Charge != nil && err == nil && reply.Wait == nil {
		if err := req.Charge(reply.Body); err != nil {
			return tracker.Reply{}, err
		}
	}
	return reply, err
}

// read runs a query once, unless its caller's rights may have changed since Admit.
func (e *Engine) read(req *tracker.Request, op *tracker.Op, in any, proof tracker.Proof, heavy *heavyRun) (reply tracker.Reply, err error) {
	workspace := target(req, op)
	s := e.shardOf(workspace)
	if !e.proven(op, &proof, s.number) {
		epoch, err := e.readable(s.number, req.Deadline)
		if err != nil {
			return tracker.Reply{}, err
		}
		if a := admissionOf(req); a != nil && a.target.workspace == workspace && a.target.epoch != epoch {
			return tracker.Reply{}, errOutdated // another node may have changed them in between
		}
		proof.Now = e.now()
	}
	v := e.views.Get().(*tracker.View)
	records, segments := e.cfg.Store.Records().Always(), e.cfg.Store.Segments().Now()
	var snapshot *pebble.Snapshot
	if op.FromSnapshot {
		records = e.cfg.Store.Records().Now()
		snapshot = e.state.NewSnapshot() // behind both moments
		v.View.Renew(snapshot, s.number, workspace)
	} else {
		v.View.Renew(e.state, s.number, workspace)
	}
	v.View.Recall(records)
	v.View.RecallSegments(segments)
	heavy.watch(v)
	// A query of single look-ups reads until it ends. The others read one moment, which they take
	// now: rights that change later are no reason to do all the work again.
	lookUps := !op.FromSnapshot && !op.Heavy
	err = errOutdated
	if lookUps || !e.outdated(req) {
		reply, err = e.runQuery(v, req, op, in, proof.Now, heavy)
	}
	if snapshot != nil {
		if closed := snapshot.Close(); err == nil && closed != nil {
			err = fmt.Errorf("close a snapshot: %w", closed)
		}
	}
	if lookUps && err == nil && e.outdated(req) {
		err = errOutdated
	}
	if op.Filtered && err == nil {
		err = e.lists.listed(v, s, req.Deadline)
	}
	if panicked := (*tracker.PanicError)(nil); !errors.As(err, &panicked) {
		v.Renew(nil, time.Time{}, nil)
		v.Watch(nil)
		e.views.Put(v)
	}
	if err != nil {
		return tracker.Reply{}, e.clientError(req, op, err)
	}
	return reply, nil
}

func (e *Engine) runQuery(v *tracker.View, req *tracker.Request, op *tracker.Op, in any, now time.Time, heavy *heavyRun) (reply tracker.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tracker.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	v.Renew(&req.Caller, now, req.Buf)
	v.Configure(&e.cfg.Agents)
	v.Remember(e.tails)
	v.SeeClaimers(e.claimers)
	if op.Filtered {
		e.lists.filter(v)
	}
	if req.Final {
		v.Finally()
	}
	v.ChargeWith(req.Charge)
	if heavy == nil && req.Charge != nil {
		v.WithoutTurn()
	}
	return op.RunQuery(v, in)
}
