package actors

import (
	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Engine.Admit looks at a caller's rights before the command waits for its turn. So that no
// command acts by rights that have ended meanwhile, the workspace's actor runs none whose
// caller was found out before the last change of what the rights come from. It finds out the
// caller again where the workspace alone decides that. Otherwise it refuses the command, and
// the engine looks again and sends the command anew.
//
// Queries read a state that is later than Admit, some of them seconds later. So that none shows
// a state by older rights, the engine compares the same generations when a query has the
// state that it reads, and looks at the rights again if they differ.

// maxAdmissions is how often the rights to one request are looked at before it is refused.
const maxAdmissions = 8

// errOutdated is the answer to a request that was not carried out since its caller's rights may
// have changed. Callers see it if the rights change again each time.
var errOutdated = tracker.NotApplied("The rights in the workspace are being changed.")

// outdated reports whether the rights of a command's caller may have changed since Admit. The
// next step of a command that was applied in part is not looked at: it has to end.
func (w *workspaceActor) outdated(c *call) bool {
	return !c.partial && w.engine.outdated(&c.req)
}

// outdated reports whether the rights of a request's caller may have changed since Admit, in
// workspaces that this node has served since.
func (e *Engine) outdated(req *tracker.Request) bool {
	for a := admissionOf(req); a != nil; a = a.maker {
		for _, p := range [...]*accessVersion{&a.home, &a.target} {
			if p.workspace != (storage.ID{}) && e.generations.of(p.workspace).Load() != p.generation {
				return true
			}
		}
	}
	return false
}

// admitAgain does the same as Admit for a query whose caller may have other rights by now. A node
// that keeps the caller's credential is not asked once more: nothing has shown here that the
// credential has changed, and a heavy query would keep its turn meanwhile.
func (e *Engine) admitAgain(req *tracker.Request, op *tracker.Op) error {
	a := admissionOf(req)
	if !a.remote || a.maker != nil || a.target.workspace == (storage.ID{}) {
		return e.Admit(req, op)
	}
	var at accessVersion
	v, err := e.linearizableView(a.target.workspace, req.Deadline, &at)
	if err != nil {
		return err
	}
	now := e.now()
	if a.expired(now) {
		return tracker.Unauthorized()
	}
	fresh, err := a.renewed(&v, at)
	if err != nil {
		return err
	}
	req.Caller, req.Access, req.Proof = fresh.caller, fresh, tracker.Proof{Epoch: at.epoch, Now: now}
	return req.Admit(op, op.Needs)
}

// admitsAgain reports whether the caller of an outdated command may still run it, as far as this
// workspace decides that, and sets the command's caller. Commands that the engine has to send
// anew come behind those that have arrived meanwhile. If these change rights too, as do many
// changes of tokens or members at once, the command would be outdated again each time.
func (w *workspaceActor) admitsAgain(c *call) bool {
	old, _ := c.req.Access.(*admission)
	if old == nil || old.target.workspace != w.h.workspace {
		return false
	}
	if w.admits(c) { // it was found out since, for another command
		return true
	}
	e := w.engine
	at := accessVersion{workspace: w.h.workspace, shard: w.h.shard.number, generation: e.generations.of(w.h.workspace).Load(), epoch: w.h.epoch}
	fresh := &admission{credential: old.credential, target: at}
	v := storage.NewView(e.state, w.h.shard.number, w.h.workspace)
	principal := old.caller.Principal
	if !principal.Root {
		credential, err := tracker.ParseCredential(c.req.Credential)
		if err != nil || credential.Home != w.h.workspace {
			return false
		}
		if principal, err = tracker.Authenticate(&v, credential); err != nil || principal.Expired(e.now()) {
			return false
		}
		fresh.home = at
	}
	var err error
	if fresh.caller, err = tracker.ResolveCaller(&v, principal); err != nil {
		return false
	}
	if principal.Lane != nil {
		fresh.maker = w.makerHere(&v, &principal.Lane.Maker, at)
		if fresh.maker == nil || fresh.caller.MadeBy(&fresh.maker.caller) != nil {
			return false
		}
	}
	fresh.used.Store(old.used.Load())
	e.callers.keep(fresh)
	c.req.Caller = fresh.caller
	return c.req.Admit(c.op, c.op.Needs) == nil
}

// makerHere returns the maker of a lane, or nil if that is not decided by this workspace alone.
// v reads the workspace, and at is its state.
func (w *workspaceActor) makerHere(v *storage.View, m *tracker.LaneMaker, at accessVersion) *admission {
	if m.Operator() || m.KeptIn(at.workspace) != at.workspace {
		return nil
	}
	principal, err := tracker.AuthenticateMaker(v, m)
	if err != nil || principal.Expired(w.engine.now()) {
		return nil
	}
	caller, err := tracker.ResolveCaller(v, principal)
	if err != nil {
		return nil
	}
	return &admission{credential: m.Name(at.workspace), home: at, target: at, caller: caller}
}

// changesRights reports whether the open batch changes rights that a command may need. Its
// caller's are known again once the batch is committed.
func (w *workspaceActor) changesRights(c *call) bool {
	return len(w.batch) > 0 && w.buffer.Dirty()&tracker.DirtyAccess != 0 && c.req.Access != nil && !c.partial
}
