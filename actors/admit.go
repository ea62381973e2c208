package actors

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/processors"
	"switchyard/storage"
)

// maxCredential bounds a credential's text in bytes; every kind is shorter.
const maxCredential = 512

// Admit finds out who makes a request and whether they may run the operation in
// the workspace of its path, and sets req.Caller. It returns UNAUTHORIZED,
// NOT_FOUND (no such workspace, or not for this caller), FORBIDDEN or UNAVAILABLE, each with
// Unadmitted set.
func (e *Engine) Admit(req *tracker.Request, op *tracker.Op) error {
	err := e.admit(req, op)
	if op == tracker.CreateWorkspace && e.cfg.OpenOnboarding {
		err = tracker.PointToOnboarding(err)
	}
	return tracker.Unadmitted(err)
}

func (e *Engine) admit(req *tracker.Request, op *tracker.Op) error {
	processors.Note()
	if req.Deadline.IsZero() {
		req.Deadline = time.Now().Add(e.cfg.Limits.Answer)
	}
	if req.Workspace == storage.DirectoryID {
		return op.NoWorkspace() // has the form of an id, but is the service's own
	}
	needs := op.Needs
	if op.Onboarding && (!e.cfg.OpenOnboarding || e.isRoot(credentialSum(req))) {
		needs = tracker.Needs{Level: tracker.Operator}
	}
	workspace := req.Workspace
	switch needs.Level {
	case tracker.Public:
		req.Caller, req.Access = tracker.Caller{}, nil
		return req.Admit(op, needs)
	case tracker.Identified, tracker.Operator:
		workspace = storage.ID{}
	default:
		if workspace == (storage.ID{}) {
			return tracker.NotFound("workspace")
		}
	}
	if req.Credential == "" || len(req.Credential) > maxCredential {
		return tracker.Unauthorized()
	}
	if err := e.identify(req, workspace); err != nil {
		return err
	}
	return req.Admit(op, needs)
}

// identify sets req.Caller to the caller that the credential identifies in a workspace, or
// anywhere if the workspace is zero. In a workspace it also sets req.Proof.
func (e *Engine) identify(req *tracker.Request, workspace storage.ID) error {
	hash := credentialSum(req)
	now := e.now()
	if a := e.callers.find(hash, workspace); a != nil {
		// As good as reading it now: this node still owns both workspaces, so a change
		// that was acknowledged has committed here and counted up a generation.
		s, err := e.current(a, req.Deadline)
		if err != nil {
			return err
		}
		if s.current && a.expired(now) {
			return tracker.Unauthorized()
		}
		if s.current {
			e.stats.callersFound.Add(1)
			e.noteUse(a, now)
			req.Caller, req.Access, req.Proof = a.caller, a, tracker.Proof{Epoch: s.targetEpoch, Now: now}
			return nil
		}
	}
	e.stats.callersResolved.Add(1)
	a := &admission{credential: *hash}
	if err := e.resolve(req, workspace, a); err != nil {
		return err
	}
	if !a.caller.Used.IsZero() {
		a.used.Store(a.caller.Used.UnixMilli())
	}
	if !a.remote {
		e.callers.keep(a)
	}
	e.noteUse(a, now)
	req.Caller, req.Access, req.Proof = a.caller, a, tracker.Proof{Epoch: a.target.epoch, Now: now}
	return nil
}

// standing says whether nothing has changed that a remembered caller depends on, and in
// which epoch this node owns the shard of the addressed workspace.
type standing struct {
	current     bool
	targetEpoch uint64
}

// current reports whether a remembered caller is unchanged. Each shard confirms once that
// this node still has its latest state: the addressed one last, since the maker of a lane
// is resolved in the same workspace.
func (e *Engine) current(a *admission, deadline time.Time) (standing, error) {
	places := [4]*accessVersion{&a.home, nil, &a.target, nil}
	if m := a.maker; m != nil {
		places[1], places[3] = &m.home, &m.target
	}
	var last owned
	for _, p := range places {
		if p == nil {
			continue
		}
		if ok, err := e.unchanged(p, &last, deadline); err != nil || !ok {
			return standing{}, err
		}
	}
	if a.target.workspace == (storage.ID{}) {
		return standing{current: true}, nil
	}
	return standing{current: true, targetEpoch: last.epoch}, nil
}

// unlessMoved returns nil in place of an error of readable where this node no longer
// owns the shard: the caller must be resolved anew, by the node that owns it now, and the
// error would be repeated for as long as the caller is remembered.
func (e *Engine) unlessMoved(p *accessVersion, err error) error {
	if _, owned := e.replicator.Owner(p.shard); !owned {
		return nil
	}
	return err
}

// expired reports whether the credential of a remembered caller has ended by itself, or
// the one that its lane came from.
func (a *admission) expired(now time.Time) bool {
	if a.maker != nil && a.maker.expired(now) {
		return true
	}
	return !a.caller.Expires.IsZero() && a.caller.Expired(now)
}

// resolve reads the caller that a credential identifies.
func (e *Engine) resolve(req *tracker.Request, workspace storage.ID, a *admission) error {
	principal, err := e.authenticate(req, a)
	if err != nil {
		return err
	}
	if workspace == (storage.ID{}) {
		a.caller = tracker.Caller{Principal: principal}
		return nil
	}
	v, err := e.linearizableView(workspace, req.Deadline, &a.target)
	if err != nil {
		return err
	}
	if a.caller, err = tracker.ResolveCaller(&v, principal); err != nil || principal.Lane == nil {
		return err
	}
	if a.maker, err = e.laneMaker(req, workspace, &principal.Lane.Maker); err != nil {
		return err
	}
	a.remote = a.remote || a.maker.remote
	return a.caller.MadeBy(&a.maker.caller)
}

// authenticate returns the principal of a credential that has not expired.
func (e *Engine) authenticate(req *tracker.Request, a *admission) (tracker.Principal, error) {
	if e.isRoot(&a.credential) {
		return tracker.OperatorPrincipal(), nil
	}
	credential, err := tracker.ParseCredential(req.Credential)
	if err != nil || credential.Home == (storage.ID{}) || credential.Home == storage.DirectoryID {
		return tracker.Principal{}, tracker.Unauthorized()
	}
	p, err := e.keptAt(req, a, credential)
	if err == nil && p.Expired(e.now()) {
		err = tracker.Unauthorized()
	}
	return p, err
}

// isRoot reports whether a hash is that of the operator's token.
func (e *Engine) isRoot(hash *[sha256.Size]byte) bool {
	return e.cfg.RootToken != "" && subtle.ConstantTimeCompare(hash[:], e.rootHash[:]) == 1
}

// credentialSum returns the SHA-256 of a request's credential.
func credentialSum(req *tracker.Request) *[sha256.Size]byte {
	if req.CredentialSum != nil {
		return req.CredentialSum
	}
	var text [maxCredential]byte
	sum := sha256.Sum256(text[:copy(text[:], req.Credential)])
	return &sum
}

// keptAt reads the credential where it is kept, in its home workspace. Where
// another node serves that, it is asked each time: what it says is not remembered,
// since a revoked credential must be refused from then on.
func (e *Engine) keptAt(req *tracker.Request, a *admission, credential tracker.Credential) (tracker.Principal, error) {
	if e.elsewhere(e.shardOf(credential.Home).number) {
		a.remote = true
		return e.authenticateRemote(req, credential.Home, tracker.AuthenticateOp, &credential)
	}
	v, err := e.linearizableView(credential.Home, req.Deadline, &a.home)
	if err != nil {
		return tracker.Principal{}, err
	}
	return tracker.Authenticate(&v, credential)
}

// authenticateRemote asks the node that serves a credential's home for its principal.
func (e *Engine) authenticateRemote(req *tracker.Request, home storage.ID, op *tracker.Op, in any) (tracker.Principal, error) {
	reply, err := e.step(req.Look(home), op, in)
	if err != nil {
		return tracker.Principal{}, err
	}
	var p tracker.Principal
	if err := json.Unmarshal(reply.Body, &p); err != nil {
		return tracker.Principal{}, fmt.Errorf("read a principal: %w", err)
	}
	return p, nil
}

// linearizableView gives a view of a workspace that is linearizable now, and notes in p how
// the workspace stood before: a change that commits between is then seen as one.
func (e *Engine) linearizableView(workspace storage.ID, deadline time.Time, p *accessVersion) (storage.View, error) {
	*p = accessVersion{workspace: workspace, shard: e.shardOf(workspace).number, generation: e.generations.of(workspace).Load()}
	var err error
	if p.epoch, err = e.readable(p.shard, deadline); err != nil {
		return storage.View{}, err
	}
	return storage.NewView(e.state, p.shard, workspace), nil
}
