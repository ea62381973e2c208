package httpapi

import "switchyard/actors/tracker"

// UseEngine gives the server its engine. A server that is made before its node belongs to a
// cluster has none until then, and refuses every operation.
func (s *Server) UseEngine(e Engine) { s.running.Store(&e) }

// engineAdmits has the engine admit a request.
func (s *Server) engineAdmits(req *tracker.Request, op *tracker.Op) error {
	if s.running.Load() == nil {
		return tracker.NotApplied("The node has not joined its cluster yet.")
	}
	return s.engine().Admit(req, op)
}

// engine returns the engine that has admitted a request. A server keeps its engine.
func (s *Server) engine() Engine { return *s.running.Load() }
