package tracker

import (
	"cmp"
	"net/netip"
	"reflect"
	"time"

	"switchyard/storage"
)

// Kind is the way an operation runs.
type Kind uint8

const (
	// Query reads one workspace on the caller's goroutine and can't write, by type.
	Query Kind = iota
	// Command changes one workspace in one batch, on that workspace's goroutine.
	Command
	// Workflow runs queries and commands on several workspaces or the directory. Each
	// step is atomic. A timer finishes or undoes the work after a crash between two
	// steps.
	Workflow
)

// Level is the right an operation asks for, from the least to the most.
type Level uint8

const (
	// Public needs no credential.
	Public Level = iota
	// Identified needs any valid credential, even if the path names no workspace.
	Identified
	// Read is the right to read the workspace of the path.
	Read
	// Write is the right to change the workspace's content.
	Write
	// Admin is the right to change permissions, and the workspace itself.
	Admin
	// Operator is the root token alone.
	Operator
)

// Needs is the right that a caller must hold for an operation. A token with the right
// for Resource alone ("issues", "sessions" or empty) suffices.
type Needs struct {
	Level    Level
	Resource string
}

// Op describes an operation: how to route, bind, authorize, run and document it. Ops
// are made once, at package level, and never change.
type Op struct {
	Name    string // "CreateIssue": operationId in the API description
	Summary string
	Kind    Kind
	Needs   Needs
	// Also is a second right that a caller must hold; the zero value asks for none.
	Also Needs
	// Callers names, for the API description, the callers that may use the operation, where it
	// checks more than Needs and Also; empty where it does not.
	Callers string
	// Directory operations run in the directory instead of a workspace.
	Directory bool
	// FromSnapshot queries read from one snapshot; others do single look-ups.
	FromSnapshot bool
	// Filtered queries are given the sets of the workspace's issues, where there are any.
	Filtered bool
	// Strict operations refuse unknown properties of the body.
	Strict bool
	// Secret operations answer with a secret that only the caller may see. Caches must
	// not store the answer, and an idempotency key keeps it encrypted.
	Secret bool
	// Missing is the entity that NOT_FOUND names when the path's workspace does not
	// exist; empty for the workspace itself.
	Missing string
	// Onboarding operations are public if the operator allows everybody to create
	// workspaces; otherwise they need the root token (Decision 12).
	Onboarding bool
	// WithoutKey operations take no Idempotency-Key: the caller identifies requests in
	// another way, or a repeat changes nothing.
	WithoutKey bool
	// TakesIssuesIn commands store issues that were created elsewhere. Their number is limited, but
	// no rate of creations counts them.
	TakesIssuesIn bool
	// WithoutWorkspace commands create or erase a workspace, so they run without an existing
	// one.
	WithoutWorkspace bool
	// Audits are the kinds of administrative acts that the operation records.
	Audits []string
	// Space is the operation's effect on the bytes that its workspace stores.
	Space SpaceEffect
	// SCIM holds the scopes of which a SCIM token needs one. It is 0 for operations
	// outside of a SCIM base, which SCIM tokens can't call.
	SCIM SCIMScopes
	// Lane operations accept a lane token. Lane tokens give access to nothing else.
	Lane bool
	// LongPoll operations may wait for a change: see Reply.Wait.
	LongPoll bool
	// SinceFirstLook operations wait for a change since they ran first. If another node serves
	// the workspace meanwhile, it does not know what that run saw: it has to answer at once.
	SinceFirstLook bool
	// Streams marks operations that answer a request for text/event-stream with an
	// open-ended stream of events: see Engine.Listen.
	Streams bool
	// Signed operations take signed calls of providers. Signed reports whether a call's
	// headers have a signature of the right form; if not, Unsigned refuses the call
	// before its body is read. It is nil for other operations.
	Signed func(header func(name string) string) bool
	// MaxBody bounds the request body in bytes; 0 means 1 MiB.
	MaxBody int
	// MaxWrites bounds the bytes that the command writes; 0 means maxCommandBytes.
	MaxWrites int
	// LongRunning workflows run for a timer and have no deadline as a whole; each step has
	// that of a request.
	LongRunning bool
	// Prompt operations run for a timer and do work in steps, and callers wait for the last
	// step. A timer that such an operation sets again runs as soon as it is due. Timers of other
	// operations wait for the scheduler's next pass, which leaves time for commands between steps.
	Prompt bool
	// Lines marks operations that answer with a stream of lines: see Engine.Export.
	Lines bool
	// Heavy marks a query that takes a millisecond of processor time or more. As many run
	// at a time as there are processors, and workspaces take turns. It ends with an error if its
	// time is up while it reads.
	Heavy bool
	// Media lists the content types of an operation that does not answer with JSON; see
	// Reply.File.
	Media []string
	// Outcomes are how the operation ends when it succeeds; Refusals are the codes of
	// failures that not every operation of its kind has. They are for the API
	// description.
	Outcomes []Outcome
	Refusals []Code
	In, Out  reflect.Type
	// New returns an empty input, a pointer to In.
	New func() any

	query   func(*View, any) (Reply, error)
	command func(*Tx, any) (Reply, error)
	flow    func(Flow, any) (Reply, error)
}

// Option adjusts an Op where it is declared.
type Option func(*Op)

// AndNeeds makes an operation require a second right.
func AndNeeds(n Needs) Option { return func(o *Op) { o.Also = n } }

// ForCallers describes the callers of an operation that checks more than Needs, as the object
// of a sentence that begins with "Needs".
func ForCallers(text string) Option { return func(o *Op) { o.Callers = text } }

// InDirectory makes an operation run in the directory.
func InDirectory(o *Op) { o.Directory = true }

// FromSnapshot makes a query read from a snapshot.
func FromSnapshot(o *Op) { o.FromSnapshot = true }

// TakesATurn marks a heavy query, see Op.Heavy.
func TakesATurn(o *Op) { o.Heavy = true }

// Filters marks a query that uses the sets of the workspace's issues. The query takes its
// own snapshot.
func Filters(o *Op) { o.Filtered = true }

// StrictBody makes an operation refuse unknown properties of the body.
func StrictBody(o *Op) { o.Strict = true }

// ForOnboarding marks an operation that lets a caller without a credential create a
// workspace.
func ForOnboarding(o *Op) { o.Onboarding = true }

// WithSecret marks an operation whose answer carries a secret.
func WithSecret(o *Op) { o.Secret = true }

// WithoutKey marks an operation that takes no Idempotency-Key.
func WithoutKey(o *Op) { o.WithoutKey = true }

// TakesIssuesIn declares a command that stores issues which were created elsewhere.
func TakesIssuesIn(o *Op) { o.TakesIssuesIn = true }

// SCIMScope makes an operation part of a SCIM base, for connections with one of the
// scopes.
func SCIMScope(scopes SCIMScopes) Option { return func(o *Op) { o.SCIM = scopes } }

// ForLanes makes an operation accept a lane token, for the token's own session.
func ForLanes(o *Op) { o.Lane = true }

// MayWait marks an operation that waits if its input, a Waiter, asks for it.
func MayWait(o *Op) { o.LongPoll = true }

// SinceFirstLook marks an operation that waits for a change since it ran first.
func SinceFirstLook(o *Op) { o.SinceFirstLook = true }

// MayStream marks an operation that also answers with a stream of events.
func MayStream(o *Op) { o.Streams = true }

// AnswersLines marks an operation that answers with a stream of lines.
func AnswersLines(o *Op) { o.Lines = true }

// LongRunning marks a workflow that may take longer than a request.
func LongRunning(o *Op) { o.LongRunning = true }

// Prompt marks a timer's operation whose next step runs as soon as it is due.
func Prompt(o *Op) { o.Prompt = true }

// RunsWithoutWorkspace marks a command that runs without an existing workspace.
func RunsWithoutWorkspace(o *Op) { o.WithoutWorkspace = true }

// BodyUpTo limits the request body to a number of bytes.
func BodyUpTo(most int) Option { return func(o *Op) { o.MaxBody = most } }

// WritesUpTo limits what the command writes to a number of bytes.
func WritesUpTo(most int) Option { return func(o *Op) { o.MaxWrites = most } }

// AnswersFile marks an operation that answers with a file of one of the content types.
func AnswersFile(media ...string) Option { return func(o *Op) { o.Media = media } }

// Answers declares how an operation ends when it succeeds. Without it the outcome is
// NoContent where Out is None, else Done.
func Answers(outcomes ...Outcome) Option { return func(o *Op) { o.Outcomes = outcomes } }

// Refuses declares failures that not every operation of its kind has. Every change
// whose workspace may be full has CONFLICT.
func Refuses(codes ...Code) Option { return func(o *Op) { o.Refusals = codes } }

// SignedBy marks an operation that takes calls of providers; see Op.Signed.
func SignedBy(formed func(header func(name string) string) bool) Option {
	return func(o *Op) { o.Signed = formed }
}

// Missing makes an operation name another entity in its NOT_FOUND for an unknown
// workspace.
func Missing(what string) Option { return func(o *Op) { o.Missing = what } }

// NoWorkspace returns the error for a path whose workspace does not exist. For calls of providers
// it is that of a wrong signature: a workspace that does not exist has no secret to judge one by.
func (o *Op) NoWorkspace() error {
	if o.Signed != nil {
		return Unsigned()
	}
	return NotFound(cmp.Or(o.Missing, "workspace"))
}

func newOp[In, Out any](kind Kind, name, summary string, needs Needs, options []Option) *Op {
	o := &Op{Name: name, Summary: summary, Kind: kind, Needs: needs, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](), New: func() any { return new(In) }}
	for _, set := range options {
		set(o)
	}
	if o.Outcomes == nil {
		o.Outcomes = []Outcome{Done}
		if o.Out == reflect.TypeFor[None]() {
			o.Outcomes[0] = NoContent
		}
	}
	return o
}

// NewQuery declares a query. Out is the type of the answer's body for the API
// description, or None.
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

// None is the input or answer type of an operation without one.
type None struct{}

// Outcome is the result of a request, from which the response's status follows.
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
	Location string // path of the created resource; empty for none
	Replayed bool   // the answer was kept for the idempotency key of an earlier request
	// File is set if Body is a file instead of JSON.
	File *File
	// Wait, in the answer of a long-poll operation, makes the engine run the operation
	// again when the topic has a change or the time is up. A command that returns it
	// has written nothing. At the end of the time Body is the answer; without a Body
	// the operation runs a last time, with Request.Final.
	Wait *Wait
	// Took has the topics of what a long-poll operation has taken from the other requests, by agent and
	// provider; nil if all of it has the topic for which the operation waits.
	Took []Topic
	// More makes the engine commit the batch and run the command again, for work that
	// is too large for one batch. The last run returns the answer.
	More bool
	// parts are the parts of Body that events have, too, in their order.
	parts []replyPart
	// undo makes the command leave no writes, though it succeeds. Its answer is not kept.
	undo bool
	// unkept is set if the answer is not kept for the idempotency key.
	unkept bool
	// soFar, with More, keeps Body for the idempotency key until the command goes on. It answers a
	// repeat if the node stops before.
	soFar bool
}

// File describes a file that is the body of an answer. The bytes at its address never
// change.
type File struct {
	Name        string
	ContentType string
}

// Request is the context of an operation's call: everything but the input.
type Request struct {
	ID string // X-Request-Id
	// Address is the client's; not valid if it is not known.
	Address netip.Addr
	// Workspace is the path's workspace, or zero if the path has none.
	Workspace  storage.ID
	Credential string // the bearer token as sent; never logged
	// CredentialSum is the SHA-256 of Credential, or nil if it is not computed yet.
	CredentialSum *[32]byte
	Caller        Caller // set by Engine.Admit
	// Access is what the engine knows Caller from, by which it sees whether the caller's rights
	// may have changed since; nil if nothing can change them. Only the engine uses it.
	Access any
	// Proof is the result of Engine.Admit's check of the shard of Workspace. The next
	// operation of the request consumes it.
	Proof Proof
	// admitted is the operation for which Admit has checked the caller's rights; permit
	// is the permit of a step or of the service itself. See Permit.
	admitted    *Op
	permit      Permit
	Idempotency *Idempotency
	// answered is set once an answer with soFar is kept for the key.
	answered bool
	// Seal is the request's SealKey if the credential stayed on another node.
	Seal []byte
	// Deadline is the time by which the request must be answered.
	Deadline time.Time
	// Buf is a buffer that the answer's body may be built in.
	Buf []byte
	// Spent says where the time went.
	Spent Spent
	// Final says that a long-poll operation must not wait any more.
	Final bool
	// HeadOnly says that nothing of an export is wanted but whether it could begin, for the answer to HEAD.
	HeadOnly bool
	// Gone reports whether the client has closed its connection; nil if that can't be
	// known.
	Gone func() bool
	// Charge counts the memory of the answer's body. The engine calls it for queries that take turns,
	// so that few answers at a time are not counted yet, and a poll calls it while its answer grows. An error refuses the request. It is nil if
	// nobody counts the memory.
	Charge func(body []byte) error
	// BodySize is the size of the request's body in bytes; 0 if it is not known.
	BodySize int
	// Memory is what the request's content takes in memory; nil if nobody counts it.
	Memory Memory
}

// Memory counts the memory of a request's content, until all who hold the content have given it up.
// A command may hold it for longer than its caller, who leaves at the deadline.
type Memory interface {
	// Hold adds a holder, and GiveUp ends one. Both can be called by any goroutine.
	Hold()
	GiveUp()
}

// Proof says that the node that admitted a request owned the workspace's shard then, and
// had its latest state. A query that begins later may rely on it: what it reads is at
// least as new as the request, as long as the node still owns the shard in that epoch. The
// zero Proof says nothing.
type Proof struct {
	Epoch uint64
	Now   time.Time // the owner's clock
}

// Idempotency is the key a request carries (Decision 6).
type Idempotency struct {
	Key string
	// Fingerprint is the SHA-256 of method, path, query and body. A repeat of the key
	// with another fingerprint is refused.
	Fingerprint [32]byte
}

// Flow is the context of a workflow: the request, and the means to run steps on other
// workspaces.
type Flow interface {
	Request() *Request
	Now() time.Time
	NewID() storage.ID
	// Secret fills b with random bytes that are fit for credentials.
	Secret(b []byte)
	// Inbound returns the operator's settings for calls of providers.
	Inbound() *InboundSettings
	// Shards returns the number of workspace shards.
	Shards() int
	// Query runs a query on a workspace (or storage.DirectoryID) as the service itself.
	// The workspace of a step in StepOps may be served by another node, so its input
	// must survive an encoding as JSON; other steps run on this node only.
	Query(workspace storage.ID, op *Op, in any) (Reply, error)
	// Command runs a command as the service itself, within the limits of the permit.
	Command(permit Permit, workspace storage.ID, op *Op, in any) (Reply, error)
	// CommandAs is like Command, in the name of a caller: the event and the idempotency
	// key are the caller's. The rights are the permit's.
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
