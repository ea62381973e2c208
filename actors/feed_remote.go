package actors

import (
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
)

// The credential of a listener may be another node's. This file asks that node about it, beside the rounds.

// remoteCaller is another node's answer about a credential.
type remoteCaller struct {
	asking atomic.Bool
	answer atomic.Pointer[remoteAnswer]
}

type remoteAnswer struct {
	at  time.Time // time of the question
	err error

	// Owned by the feed's round.
	admission *admission // its rights in the workspace are those of the last round that used it
	round     int        // the first round that used it; 0 for none yet
}

// usable reports whether a round may use the answer. The first round that sees it may,
// unless it is very old: rounds can be further apart than remoteFresh, so that each
// would find an outdated answer only.
func (a *remoteAnswer) usable(round int, now time.Time) bool {
	if a.round == 0 {
		a.round = round
	}
	age := now.Sub(a.at)
	return age < remoteFresh || a.round == round && age < doubtMost
}

// callerAt returns the caller with the rights of a moment. The other node's answer is needed for
// the credential alone: this node knows the rights in the workspace, and when the credential ends.
func (a *remoteAnswer) callerAt(at *moment, op *tracker.Op, now time.Time) (*tracker.Caller, error) {
	if a.err != nil {
		return nil, a.err
	}
	if a.admission.expired(now) {
		return nil, tracker.Unauthorized()
	}
	admission, err := at.rights(a.admission, op)
	if err != nil {
		return nil, err
	}
	a.admission = admission
	return &admission.caller, nil
}

// identifyRemote asks the node that serves the credential's home, at most once a second
// and without blocking the other listeners.
func (f *feed) identifyRemote(l *eventStream, at *moment, now time.Time) (*tracker.Caller, error) {
	known := f.remote[l.req.Credential]
	if known == nil {
		known = &remoteCaller{}
		f.remote[l.req.Credential] = known
	}
	answer := known.answer.Load()
	if answer != nil && answer.usable(f.rounds, now) {
		return answer.callerAt(at, l.op, f.engine.now())
	}
	if !known.asking.Swap(true) && f.engine.background.enter() {
		go func() {
			defer f.engine.background.leave()
			req := l.req
			asked := time.Now()
			req.Deadline = asked.Add(2 * time.Second)
			answer := &remoteAnswer{at: asked}
			if answer.err = f.engine.Admit(&req, l.op); answer.err == nil {
				answer.admission = admissionOf(&req)
			}
			known.answer.Store(answer)
			known.asking.Store(false)
			f.stripe.mu.Lock()
			defer f.stripe.mu.Unlock()
			f.schedule()
		}()
	}
	return nil, nil
}

// forgetRemote drops the answers about credentials without listeners.
func (f *feed) forgetRemote(callers map[string]*tracker.Caller) {
	for credential, known := range f.remote {
		if callers[credential] == nil && !known.asking.Load() {
			if a := known.answer.Load(); a == nil || time.Since(a.at) > doubtMost {
				delete(f.remote, credential)
			}
		}
	}
}
