package tracker

import (
	"encoding/json"
	"fmt"

	"switchyard/storage"
)

// Permit is the proof that rights to an effect were checked, and the workspace that the
// effect is limited to. The zero Permit allows nothing.
//
// A workspace's goroutine refuses every command whose request carries neither a Permit
// nor the admission of that very operation (see Request.Admit), before it looks for a
// kept answer. The fields are not exported: the functions of this file are the only way
// to a Permit, and each is named after the check of rights that it stands for.
type Permit struct {
	basis basis
	// about is the workspace that may be changed. The service's own permit has none and
	// is good for all.
	about storage.ID
	// exempt is set for what runs in read-only mode too: the engine's own commands, and the
	// steps of workflows that the operator has asked for.
	exempt bool
	// elsewhere is set for a step of a timer's workflow outside of the timer's workspace. The
	// read-only mode of the service refuses it, and that of the step's own workspace does not:
	// a deletion is finished by a timer of the directory.
	elsewhere bool
}

// basis is the check of rights that a Permit stands for.
type basis string

const (
	// basisService: a timer or the engine acts, for no caller.
	basisService basis = "service"
	// basisAdmission: the caller's rights in the workspace allow the workflow.
	basisAdmission basis = "admission"
	// basisCreation: the caller may create a workspace.
	basisCreation basis = "creation"
	// basisDeletion: the caller may delete the workspace, or its deletion is already
	// decided.
	basisDeletion basis = "deletion"
	// basisSignature: a provider's call is signed with the workspace's secret.
	basisSignature basis = "signature"
	// basisSecret: the step compares a secret before it does anything else.
	basisSecret basis = "secret"
	// basisSignIn: the identity provider has confirmed the user.
	basisSignIn basis = "sign-in"
	// basisOwn: a user ends their own sessions in a workspace that does not store the
	// credential.
	basisOwn basis = "own"
	// basisOperator: the operator acts on the whole service.
	basisOperator basis = "operator"
	// basisLook: the step is a query and changes nothing.
	basisLook basis = "look"
)

// permitOf returns the permit of a workflow whose declaration asks for rights in the
// workspace of its path, or which the service runs. Workflows that need no more than a
// credential have none: they check rights themselves.
func permitOf(f Flow) (Permit, error) {
	req := f.Request()
	switch {
	case req.permit.basis == basisService:
		return req.permit, nil
	case req.admitted != nil && req.admitted.Needs.Level >= Read:
		return Permit{basis: basisAdmission, about: req.Workspace}, nil
	}
	return Permit{}, errNoRights("a step")
}

// permitOperator returns the permit of the operator's workflow on the whole service.
func permitOperator(f Flow) (Permit, error) {
	if req := f.Request(); req.admitted == nil || req.admitted.Needs.Level != Operator {
		return Permit{}, errNoRights("a step for the whole service")
	}
	return Permit{basis: basisOperator}, nil
}

// permitCreation returns the permit to create a workspace; see checkCreation.
func permitCreation(id storage.ID) Permit { return Permit{basis: basisCreation, about: id} }

// permitDeletion returns the permit to remove a workspace; see mayDelete and
// decidedDeletion.
func permitDeletion(id storage.ID) Permit { return Permit{basis: basisDeletion, about: id} }

// permitSigned returns the permit of a provider's call with a verified signature.
func permitSigned(id storage.ID) Permit { return Permit{basis: basisSignature, about: id} }

// permitSecret returns the permit of a step that compares a secret itself.
func permitSecret(id storage.ID) Permit { return Permit{basis: basisSecret, about: id} }

// permitSignedIn returns the permit to open a session for a user whom the identity provider
// has confirmed.
func permitSignedIn(id storage.ID) Permit { return Permit{basis: basisSignIn, about: id} }

// permitOwn returns the permit of a user to end their own sessions.
func permitOwn(id storage.ID) Permit { return Permit{basis: basisOwn, about: id} }

// errNoRights reports a bug of the service: a command for which no rights were checked.
// Callers see INTERNAL.
func errNoRights(op string) error { return fmt.Errorf("%s: the rights were not looked at", op) }

// MarshalJSON encodes a permit for a step that another node runs.
func (p Permit) MarshalJSON() ([]byte, error) {
	return json.Marshal(sentPermit{p.basis, p.about, p.exempt, p.elsewhere})
}

// UnmarshalJSON decodes a permit that another node of the cluster sent.
func (p *Permit) UnmarshalJSON(b []byte) error {
	var s sentPermit
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("read a permit: %w", err)
	}
	switch s.Basis {
	case basisService, basisAdmission, basisCreation, basisDeletion, basisSignature, basisSecret, basisSignIn, basisOwn, basisOperator, basisLook:
		*p = Permit{basis: s.Basis, about: s.About, exempt: s.Exempt, elsewhere: s.Elsewhere}
		return nil
	}
	return fmt.Errorf("read a permit: unknown basis %q", s.Basis)
}

type sentPermit struct {
	Basis basis      `json:"basis"`
	About storage.ID `json:"about"`
	// Exempt has the name that earlier versions gave it.
	Exempt    bool `json:"operator,omitempty"`
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Admit checks that req.Caller may run an operation that asks for needs (op.Needs,
// unless the operator has set others), and notes the admission. It returns UNAUTHORIZED,
// FORBIDDEN or, while the workspace is imported, UNAVAILABLE.
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
			return errLacksRight(needs)
		case !r.Caller.Allows(op.Also):
			return errLacksRight(op.Also)
		case r.Caller.Importing:
			return errImporting()
		}
	}
	r.admitted = op
	return nil
}

// ServiceRequest returns a request of the engine itself, which runs in read-only mode too.
func ServiceRequest(id string, workspace storage.ID) *Request {
	req := DeferrableRequest(id, workspace)
	req.permit.exempt = true
	return req
}

// DeferrableRequest returns a request of the service itself that read-only mode refuses.
func DeferrableRequest(id string, workspace storage.ID) *Request {
	return &Request{ID: id, Workspace: workspace, Caller: System, permit: Permit{basis: basisService}}
}

// TimerRequest returns the request of a timer. Read-only mode refuses its commands and steps,
// which may come after the scheduler has looked for the mode, unless RunsReadOnly(kind).
func TimerRequest(kind string, workspace storage.ID) *Request {
	req := DeferrableRequest("timer-"+kind, workspace)
	req.permit.exempt = RunsReadOnly(kind)
	return req
}

// Look returns the request of a step that is a query, by the service itself.
func (r *Request) Look(workspace storage.ID) *Request {
	return &Request{ID: r.ID, Workspace: workspace, Caller: System, Deadline: r.Deadline, permit: Permit{basis: basisLook}}
}

// Step returns the request of a step that the service runs under a permit.
func (r *Request) Step(p Permit, workspace storage.ID) *Request {
	p.exempt = r.Caller.Root || r.permit.exempt
	p.elsewhere = r.permit.basis == basisService && workspace != r.Workspace
	return &Request{ID: r.ID, Address: r.Address, Workspace: workspace, Caller: System, Deadline: r.Deadline, permit: p}
}

// StepAs returns the request of a step in the name of a caller, with the caller's
// events and idempotency key.
func (r *Request) StepAs(p Permit, caller Caller, workspace storage.ID) *Request {
	step := r.Step(p, workspace)
	step.Caller, step.Credential, step.Idempotency = caller, r.Credential, r.Idempotency
	return step
}

// Permit returns the permit of a step, to be sent to the node that runs it.
func (r *Request) Permit() Permit { return r.permit }

// SentStep gives a request from another node the permit that came with it.
func SentStep(r *Request, p Permit) *Request {
	r.permit = p
	return r
}

// Admitted returns an error unless the rights to run an operation were checked. The
// engine calls it before every operation. The workspace's goroutine checks again, with
// the workspace of the permit, before a command.
func (r *Request) Admitted(op *Op) error {
	if r.admitted == op || r.permit.basis != "" && (r.permit.basis != basisLook || op.Kind == Query) {
		return nil
	}
	return errNoRights(op.Name)
}

// aboutWorkspace is the input of a command of the directory that concerns one
// workspace.
type aboutWorkspace interface{ about() storage.ID }

// admit returns an error unless the rights to run a command here were checked: the
// operation itself was admitted, or a permit covers the workspace.
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
	case basisService, basisOperator:
		return nil
	}
	if req.permit.about != about {
		return fmt.Errorf("%s: the permit is for another workspace", op.Name)
	}
	if req.permit.basis == basisAdmission && op.Needs.Level >= Read {
		return Unadmitted(tx.stillMay(op))
	}
	return nil
}

// stillMay returns an error if the caller of a step has lost the right to it since the
// workflow was admitted: while a step waits for its turn a credential may end, or a role may
// change. A credential that another workspace stores is not looked at, only the role of its
// actor here.
func (tx *Tx) stillMay(op *Op) error {
	p := tx.Caller.Principal
	if p.Root || p.Token == "" {
		return nil // the operator, or the service itself
	}
	v := tx.Reader()
	if p.Home == tx.Workspace() {
		if err := p.stillStored(v); err != nil {
			return err
		}
	}
	caller, err := ResolveCaller(v, p)
	if err != nil {
		return err
	}
	return (&Request{Caller: caller}).Admit(op, op.Needs)
}
