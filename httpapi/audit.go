package httpapi

import "switchyard/actors/tracker"

// nodeActs are the acts on nodes, in the audit.
var nodeActs = map[*tracker.Op]string{opDrainNode: "drained", opUndrainNode: "undrained", opRemoveNode: "removed"}

// recordAct adds a command to the cluster to the cluster's audit (Decision 69).
func (s *Server) recordAct(by *tracker.Request, act, node string) error {
	req := *by
	req.Idempotency = nil
	if err := req.Admit(tracker.RecordAct, tracker.RecordAct.Needs); err != nil {
		return err
	}
	if _, err := s.engine().Do(&req, tracker.RecordAct, &tracker.Act{Kind: "node", Act: act, Target: node}); err != nil {
		return tracker.OutcomeUnknown("The node is " + act + ", but the audit does not say so yet. Repeat the request.")
	}
	return nil
}
