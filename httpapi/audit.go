package httpapi

import (
	"errors"

	"switchyard/actors/tracker"
)

// nodeActs are the acts on nodes, in the audit.
var nodeActs = map[*tracker.Op]string{opDrainNode: "drained", opUndrainNode: "undrained", opRemoveNode: "removed"}

// auditPart is the part of a command's time that is left for its entry in the audit: one in so many.
const auditPart = 4

// recordAct adds a command to the cluster to the cluster's audit (Decision 69), and returns the error of the
// request. failed is the command's own. If nobody knows whether the command was carried out, the entry says so;
// one that was refused has none.
func (s *Server) recordAct(by *tracker.Request, act, node string, failed error) error {
	entry := tracker.Act{Kind: "node", Act: act, Target: node}
	if failed != nil {
		if !outcomeIsUnknown(failed) {
			return failed
		}
		entry.Changes = map[string]tracker.FromTo{"outcome": {From: []byte("null"), To: []byte(`"unknown"`)}}
	}
	req := *by
	req.Idempotency = nil
	if err := req.Admit(tracker.RecordAct, tracker.RecordAct.Needs); err != nil {
		return errors.Join(failed, err)
	}
	_, err := s.engine().Do(&req, tracker.RecordAct, &entry)
	if err != nil && failed == nil {
		return tracker.OutcomeUnknown("The node is " + act + ", but the audit does not say so yet. Repeat the request.")
	}
	return failed
}

// outcomeIsUnknown reports whether nobody knows if a change was made.
func outcomeIsUnknown(err error) bool {
	var told *tracker.Error
	if !errors.As(err, &told) {
		return false
	}
	details, ok := told.Details.(tracker.OutcomeDetails)
	return ok && details.Outcome == "unknown"
}
