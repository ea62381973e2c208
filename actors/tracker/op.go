package tracker

import (
	"cmp"
	"reflect"
	"time"

	"switchyard/storage"
)

// Kind says how an operation runs.
type Kind uint8

const (
	// Query reads one workspace on the caller's goroutine and can't write, by type.
	Query Kind = iota
	// Command changes one workspace, on that workspace's goroutine, in one batch.
	Command
	// Workflow is made of queries and commands on several workspaces or the
	// directory, each atomic by itself; it is written so that a crash between two
	// steps is finished or undone by a timer.
	Workflow
)

// Level is the right an operation asks for, from the least to the most.
type Level uint8

const (
	// Public needs no credential.
	Public Level = iota
	// Identified needs any valid credential, also where no workspace is named.
	Identified
	// Read is the right to look at what is in the workspace of the path.
	Read
	// Write is the right to change it.
	Write
	// Admin is the right to change who may do what, and the workspace itself.
	Admin
	// Operator is the root token alone.
	Operator
)

// Needs is what a caller must hold for an operation. Resource ("issues",
// "sessions" or none) lets a token with just that resource's right pass.
type Needs struct {
	Level    Level
	Resource string
}

// Op describes one operation: enough to route, bind, authorize, run and document
// it. Ops are made once, at package level, and never change.
type Op struct {
	Name    string // "CreateIssue": operationId in the API description
	Summary string
	Kind    Kind
	Needs   Needs
	// Also is what a caller must hold besides; its zero value is nothing.
	Also Needs
	// Directory operations run in the directory instead of a workspace.
	Directory bool
	// Snapshot queries read one moment; others do single look-ups.
	Snapshot bool
	// Strict operations refuse unknown properties of the body.
	Strict bool
	// Secret operations answer with something that is for the caller alone: no cache
	// may keep it, nor is it kept in the clear with an idempotency key.
	Secret bool
	// Missing is what NOT_FOUND names when the path's workspace is not there; empty for
	// the workspace itself.
	Missing string
	// Onboarding operations are public only while the operator lets anyone make a
	// workspace; else they need the root token (Decision 12).
	Onboarding bool
	// Unkeyed operations take no Idempotency-Key: who asks names a request in its own
	// way, or repeating it changes nothing.
	Unkeyed bool
	// Founding commands run also where no workspace is: they make or erase it.
	Founding bool
	// Room says what the operation does to the space its workspace takes.
	Room Room
	// SCIM are the scopes one of which the operation asks for; 0 for operations that
	// don't belong to a SCIM base, which SCIM tokens can't ask for.
	SCIM SCIMScopes
	// Lane operations may be asked for with a lane token, which opens nothing else.
	Lane bool
	// Patient operations may wait for something to happen: see Reply.Wait.
	Patient bool
	// Streams says that who accepts text/event-stream is answered with a stream of
	// events that does not end: see Engine.Listen.
	Streams bool
	// Signed operations take calls of providers, whose bodies are signed. Signed reports
	// whether a call's headers hold something of a signature's form; without it the call
	// is refused by Unsigned before its body is read. nil for other operations.
	Signed func(header func(name string) string) bool
	// MaxBody bounds the request body in bytes; 0 means 1 MiB.
	MaxBody int
	// Lasting workflows run for a timer as long as it takes: each of their steps has the
	// time of a request.
	Lasting bool
	// Media are the content types an operation answers with instead of JSON; see
	// Reply.File.
	Media   []string
	In, Out reflect.Type
	// New makes an empty input, a pointer to In.
	New func() any

	query   func(*View, any) (Reply, error)
	command func(*Tx, any) (Reply, error)
	flow    func(Flow, any) (Reply, error)
}

// Option adjusts an Op where it is declared.
type Option func(*Op)

// AndNeeds makes an operation ask for a second right.
func AndNeeds(n Needs) Option { return func(o *Op) { o.Also = n } }

// InDirectory makes an operation run in the directory.
func InDirectory(o *Op) { o.Directory = true }

// OneMoment makes a query read from a snapshot.
func OneMoment(o *Op) { o.Snapshot = true }

// StrictBody makes unknown properties of the body faults.
func StrictBody(o *Op) { o.Strict = true }

// Onboards marks an operation that lets a stranger make a workspace.
func Onboards(o *Op) { o.Onboarding = true }

// WithSecret marks an operation whose answer carries a secret.
func WithSecret(o *Op) { o.Secret = true }

// WithoutKey marks an operation that takes no Idempotency-Key.
func WithoutKey(o *Op) { o.Unkeyed = true }

// Provisions makes an operation one of a SCIM base, for connections with one of the
// scopes.
func Provisions(scopes SCIMScopes) Option { return func(o *Op) { o.SCIM = scopes } }

// ForLanes lets holders of a lane token ask for an operation, about their own session.
func ForLanes(o *Op) { o.Lane = true }

// MayWait marks an operation that waits, when its input asks for it; the input is
// a Waiter.
func MayWait(o *Op) { o.Patient = true }

// MayStream marks an operation that also answers with a stream of events.
func MayStream(o *Op) { o.Streams = true }

// Lasts marks a workflow that may take longer than a request.
func Lasts(o *Op) { o.Lasting = true }

// Founds lets a command run where no workspace is.
func Founds(o *Op) { o.Founding = true }

// BodyUpTo bounds the request body, in bytes.
func BodyUpTo(most int) Option { return func(o *Op) { o.MaxBody = most } }

// AnswersFile marks an operation that answers with the bytes of a file.
func AnswersFile(media ...string) Option { return func(o *Op) { o.Media = media } }

// SignedBy marks an operation that takes calls of providers; see Op.Signed.
func SignedBy(formed func(header func(name string) string) bool) Option {
	return func(o *Op) { o.Signed = formed }
}

// Missing makes an operation answer an unknown workspace like any other thing of
// that name that is not there.
func Missing(what string) Option { return func(o *Op) { o.Missing = what } }

// NoWorkspace is the answer when the path names no workspace.
func (o *Op) NoWorkspace() error { return NotFound(cmp.Or(o.Missing, "workspace")) }

func newOp[In, Out any](kind Kind, name, summary string, needs Needs, options []Option) *Op {
	o := &Op{Name: name, Summary: summary, Kind: kind, Needs: needs, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](), New: func() any { return new(In) }}
	for _, set := range options {
		set(o)
	}
	return o
}

// NewQuery declares a query. Out is the type of the answer's body, for the API
// description; None when there is none.
func NewQuery[In, Out any](name, summary string, needs Needs, run func(*View, *In) (Reply, error), options ...Option) *Op {
	o := newOp[In, Out](Query, name, summary, needs, options)
	o.query = func(v *View, in any) (Reply, error) { return run(v, in.(*In)) }
	return o
}

// NewCommand declares a command.
func NewCommand[In, Out any](name, summary string, needs Needs, run func(*Tx, *In) (Reply, error), options ...Option) *Op {
	o := newOp[In, Out](Command, name, summary, needs, options)
	o.command = func(tx *Tx, in any) (Reply, error) { return run(tx, in.(*In)) }
	return o
}

// NewWorkflow declares a workflow.
func NewWorkflow[In, Out any](name, summary string, needs Needs, run func(Flow, *In) (Reply, error), options ...Option) *Op {
	o := newOp[In, Out](Workflow, name, summary, needs, options)
	o.flow = func(f Flow, in any) (Reply, error) { return run(f, in.(*In)) }
	return o
}

// None is the input or answer of an operation that has none.
type None struct{}

// Outcome is what became of a request, for the response's status.
type Outcome uint8

// The outcomes, with their HTTP statuses.
const (
	Done        Outcome = iota // 200
	Created                    // 201
	Accepted                   // 202
	NoContent                  // 204
	NotModified                // 304
)

// Reply is an operation's answer. Body is JSON, or a File, and belongs to the receiver.
type Reply struct {
	Outcome  Outcome
	Body     []byte
	ETag     string // with its quotes; empty when there is none
	Location string // the address of what was made; empty when it is not told
	Replayed bool   // an earlier answer, repeated for its idempotency key
	// File is set where Body is not JSON but the bytes of a file.
	File *File
	// Wait, in the answer of a Patient operation, has the engine run it again when
	// something happened, or when the time is up. A command that asks for it has
	// written nothing. Body is the answer when nothing happened; without one the
	// operation is run a last time, with Request.Final.
	Wait *Wait
	// More makes the engine commit and run the command again: for work too large
	// for one batch. The last run gives the answer.
	More bool
}

// File says what the bytes of an answer are. They never change under their
// address.
type File struct {
	Name        string
	ContentType string
}

// Request is what an operation is asked with besides its input.
type Request struct {
	ID string // X-Request-Id
	// Workspace of the path; zero where the path names none.
	Workspace  storage.ID
	Credential string // the bearer token as sent; never logged
	Caller     Caller // set by Engine.Admit
	// admitted is the operation that Admit let the caller run; permit is that of a
	// step, or of the service itself. See Permit.
	admitted    *Op
	permit      Permit
	Idempotency *Idempotency
	// Seal is the request's SealKey where the credential stayed on another node.
	Seal []byte
	// Deadline is when the answer is due, whatever it is.
	Deadline time.Time
	// Buf is space the answer's body may be built in.
	Buf []byte
	// Final says that a Patient operation may wait no more.
	Final bool
	// Gone tells whether the caller has left meanwhile; nil when nobody can know.
	Gone func() bool
}

// Idempotency is the key a request carries (Decision 6).
type Idempotency struct {
	Key string
	// Fingerprint is a SHA-256 over method, path, query and body: a repeat with
	// another one is refused.
	Fingerprint [32]byte
}

// Flow is what a workflow is given: who asks, and steps on other workspaces.
type Flow interface {
	Request() *Request
	Now() time.Time
	NewID() storage.ID
	// Secret fills b with randomness fit for credentials.
	Secret(b []byte)
	// Inbound is what the operator has set for calls of providers.
	Inbound() *InboundSettings
	// Query runs a query on a workspace (or storage.DirectoryID) as the service
	// itself. The input of a step among StepOps must survive a trip through JSON, since
	// the workspace may live on another node; other steps run on this node or not at
	// all.
	Query(workspace storage.ID, op *Op, in any) (Reply, error)
	// Command runs a command as the service itself, as far as the permit goes.
	Command(permit Permit, workspace storage.ID, op *Op, in any) (Reply, error)
	// CommandAs is Command in the name of a caller: whose event it is, and whose
	// idempotency key. The rights are the permit's.
	CommandAs(permit Permit, caller Caller, workspace storage.ID, op *Op, in any) (Reply, error)
}

// RunFlow runs a workflow.
func (o *Op) RunFlow(f Flow, in any) (Reply, error) { return o.flow(f, in) }

// RunQuery runs a query.
func (o *Op) RunQuery(v *View, in any) (Reply, error) {
	if err := v.admitLane(o); err != nil {
		return Reply{}, err
	}
	return o.query(v, in)
}
