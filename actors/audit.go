package actors

import (
	"switchyard/actors/tracker"
	"switchyard/storage"
)

// audited runs an operation that records administrative acts. The operator's acts in a
// workspace are copied to the cluster's audit before the answer; if that fails, a timer of
// the workspace copies them.
func (e *Engine) audited(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	reply, err := e.do(req, op, in)
	if err != nil || !req.Caller.Root || req.Workspace == (storage.ID{}) || op.Directory {
		return reply, err
	}
	send := tracker.ServiceRequest(req.ID, req.Workspace)
	send.Deadline = req.Deadline
	if _, err := e.do(send, tracker.SendAudit, &tracker.TimerIn{}); err != nil {
		e.log.Debug("copy the operator's acts to the cluster's audit", "workspace", req.Workspace.String(), "error", err)
	}
	return reply, nil
}
