package tracker

import (
	"encoding/json"
	"fmt"

	"switchyard/storage"
)

// Permit is the proof that somebody looked at the rights to an effect, and the
// workspace the effect is limited to. The zero Permit allows nothing.
//
// A workspace's goroutine refuses every command whose request carries neither a
// Permit nor the admission of that very operation (see Request.Admit), before it
// looks for a kept answer. The fields are not exported: the functions of this file,
// each of which names the look at rights it stands for, are the only way to a
// Permit.
type Permit struct {
	basis basis
	// about is the workspace that may be affected. The service's own permit has none
	// and is good for all.
	about storage.ID
}

// basis says which look at rights a Permit stands for.
type basis string

const (
	// basisService: a timer or the engine itself acts, on behalf of no caller.
	basisService basis = "service"
	// basisAdmission: the caller's rights in the workspace allow the workflow.
	basisAdmission basis = "admission"
	// basisFounding: the caller may make a workspace.
	basisFounding basis = "founding"
	// basisDeletion: the caller may delete the workspace, or its deletion is decided.
	basisDeletion basis = "deletion"
	// basisSignature: a provider's call is signed with the secret for the workspace.
	basisSignature basis = "signature"
	// basisSecret: the step compares a secret before it does anything else.
	basisSecret basis = "secret"
	// basisLook: the step is a query; it changes nothing.
	basisLook basis = "look"
)

// permitOf is the permit of a workflow whose own declaration asks for rights in
// the workspace of its path, or which the service runs. Workflows that any
// credential may ask for have none: they look at rights themselves.
func permitOf(f Flow) (Permit, error) {
	req := f.Request()
	switch {
	case req.permit.basis == basisService:
		return req.permit, nil
	case req.admitted != nil && req.admitted.Needs.Level >= Read:
		return Permit{basisAdmission, req.Workspace}, nil
	}
	return Permit{}, errNoRights("a step")
}

// permitFounding is the permit to make a workspace; see mayFound.
func permitFounding(id storage.ID) Permit { return Permit{basisFounding, id} }

// permitDeletion is the permit to remove a workspace; see mayDelete and
// decidedDeletion.
func permitDeletion(id storage.ID) Permit { return Permit{basisDeletion, id} }

// permitSigned is the permit of a provider's call whose signature was verified.
func permitSigned(id storage.ID) Permit { return Permit{basisSignature, id} }

// permitSecret is the permit of a step that itself compares the secret it is given.
func permitSecret(id storage.ID) Permit { return Permit{basisSecret, id} }

// errNoRights reports a fault of the service: a path to an effect on which nobody
// looked at rights. Callers see INTERNAL.
func errNoRights(op string) error { return fmt.Errorf("%s: the rights were not looked at", op) }

// MarshalJSON writes a permit for a step that another node runs.
func (p Permit) MarshalJSON() ([]byte, error) {
	return json.Marshal(sentPermit{p.basis, p.about})
}

// UnmarshalJSON reads a permit that another node of the cluster sent.
func (p *Permit) UnmarshalJSON(b []byte) error {
	var s sentPermit
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("read a permit: %w", err)
	}
	switch s.Basis {
	case basisService, basisAdmission, basisFounding, basisDeletion, basisSignature, basisSecret, basisLook:
		*p = Permit{s.Basis, s.About}
		return nil
	}
	return fmt.Errorf("read a permit: unknown basis %q", s.Basis)
}

type sentPermit struct {
	Basis basis      `json:"basis"`
	About storage.ID `json:"about"`
}

// Admit decides whether req.Caller may run an operation that asks for needs
// (op.Needs, unless the operator has set others), and notes the admission. It
// returns UNAUTHORIZED or FORBIDDEN.
func (r *Request) Admit(op *Op, needs Needs) error {
	r.admitted = nil
	if needs.Level != Public {
		switch {
		case r.Caller.Lane != nil && !op.Lane:
			return ForeignLane()
		case op.SCIM != 0 || r.Caller.SCIM != 0:
			if err := r.Caller.AdmitSCIM(op); err != nil {
				return err
			}
		case !r.Caller.Allows(needs):
			return lacking(needs)
		case !r.Caller.Allows(op.Also):
			return lacking(op.Also)
		}
	}
	r.admitted = op
	return nil
}

// ServiceRequest is a request of the service itself: a timer's, or the engine's.
func ServiceRequest(id string, workspace storage.ID) *Request {
	return &Request{ID: id, Workspace: workspace, Caller: System, permit: Permit{basis: basisService}}
}

// Look is the request of a step that is a query, by the service itself.
func (r *Request) Look(workspace storage.ID) *Request {
	return &Request{ID: r.ID, Workspace: workspace, Caller: System, Deadline: r.Deadline, permit: Permit{basis: basisLook}}
}

// Step is the request of a step that the service runs under a permit.
func (r *Request) Step(p Permit, workspace storage.ID) *Request {
	return &Request{ID: r.ID, Workspace: workspace, Caller: System, Deadline: r.Deadline, permit: p}
}

// StepAs is the request of a step in the name of a caller: their events, their
// idempotency key.
func (r *Request) StepAs(p Permit, caller Caller, workspace storage.ID) *Request {
	step := r.Step(p, workspace)
	step.Caller, step.Credential, step.Idempotency = caller, r.Credential, r.Idempotency
	return step
}

// Permit is the permit of a step, to be sent to the node that runs it.
func (r *Request) Permit() Permit { return r.permit }

// SentStep makes a request that another node sent carry the permit it came with.
func SentStep(r *Request, p Permit) *Request {
	r.permit = p
	return r
}

// Admitted returns an error unless the rights to run an operation were looked at.
// It is what the engine asks before an operation; the workspace's goroutine asks
// again, and more exactly, before a command.
func (r *Request) Admitted(op *Op) error {
	if r.admitted == op || r.permit.basis != "" && (r.permit.basis != basisLook || op.Kind == Query) {
		return nil
	}
	return errNoRights(op.Name)
}

// aboutWorkspace is the input of a command of the directory that concerns one
// workspace.
type aboutWorkspace interface{ about() storage.ID }

// admit returns an error unless the rights to run a command here were looked at:
// the operation itself was admitted, or a permit covers the workspace.
func (tx *Tx) admit(op *Op, req *Request, in any) error {
	if req.admitted == op {
		return nil
	}
	about := tx.Workspace()
	if about == storage.DirectoryID {
		if concerns, ok := in.(aboutWorkspace); ok {
			about = concerns.about()
		}
	}
	switch req.permit.basis {
	case "", basisLook:
		return errNoRights(op.Name)
	case basisService:
		return nil
	}
	if req.permit.about != about {
		return fmt.Errorf("%s: the permit is for another workspace", op.Name)
	}
	return nil
}
