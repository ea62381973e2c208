package actors

import (
	"errors"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// laneMaker returns the credential that a lane token in a workspace was made with. It
// is cached like other callers, for all of its lanes. The error is UNAUTHORIZED if the
// credential was deleted, or its actor has left the workspace.
func (e *Engine) laneMaker(req *tracker.Request, workspace storage.ID, m *tracker.LaneMaker) (*admission, error) {
	name := m.Name(workspace)
	if a := e.callers.find(&name, workspace); a != nil {
		now, err := e.current(a, req.Deadline)
		if err != nil {
			return nil, err
		}
		if now.current && a.expired(e.now()) {
			return nil, tracker.Unauthorized()
		}
		if now.current {
			return a, nil
		}
	}
	a := &admission{credential: name}
	principal, err := e.authenticateMaker(req, a, workspace, m)
	if err != nil {
		return nil, err
	}
	if principal.Expired(e.now()) {
		return nil, tracker.Unauthorized()
	}
	v, err := e.linearizableView(workspace, req.Deadline, &a.target)
	if err != nil {
		return nil, err
	}
	a.caller, err = tracker.ResolveCaller(&v, principal)
	if failure := (*tracker.Error)(nil); errors.As(err, &failure) && failure.Code == tracker.CodeNotFound {
		err = tracker.Unauthorized()
	}
	if err != nil {
		return nil, err
	}
	if !a.remote {
		e.callers.keep(a)
	}
	return a, nil
}

// authenticateMaker reads the credential of a lane's maker from its home workspace.
func (e *Engine) authenticateMaker(req *tracker.Request, a *admission, workspace storage.ID, m *tracker.LaneMaker) (tracker.Principal, error) {
	if m.Operator() {
		if e.cfg.RootToken == "" {
			return tracker.Principal{}, tracker.Unauthorized()
		}
		return tracker.OperatorPrincipal(), nil
	}
	home := m.KeptIn(workspace)
	if e.elsewhere(e.shardOf(home).number) {
		a.remote = true
		return e.authenticateRemote(req, home, tracker.AuthenticateMakerOp, &tracker.MakerIn{LaneMaker: *m})
	}
	v, err := e.linearizableView(home, req.Deadline, &a.home)
	if err != nil {
		return tracker.Principal{}, err
	}
	return tracker.AuthenticateMaker(&v, m)
}
