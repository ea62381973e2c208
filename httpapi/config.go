package httpapi

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchyard/actors/tracker"
	"switchyard/console/signin"
)

// Engine admits requests and runs operations. An error for the caller is a
// *tracker.Error; any other is answered as INTERNAL.
//
// For a query, req, in and req.Buf are used again once Do has returned, so the
// engine keeps none of them; those of commands and workflows are never reused.
type Engine interface {
	// Admit authenticates the credential of req, resolves the caller in the
	// workspace, and checks what the operation needs.
	Admit(req *tracker.Request, op *tracker.Op) error
	// Do runs the operation and returns by req.Deadline.
	Do(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error)
	// Begin is Do for a long-poll operation: when it has to wait, there is a Waiting and
	// no answer yet. It keeps req and in until then.
	Begin(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, tracker.Waiting, error)
	// Listen begins a stream for a request that accepts one, of an operation that
	// Streams. It keeps req and in.
	Listen(req *tracker.Request, op *tracker.Op, in any) (tracker.Stream, error)
	// Export begins the lines of an operation that answers with Lines. It keeps req and
	// in.
	Export(req *tracker.Request, op *tracker.Op, in any) (tracker.Lines, error)
	// TakeTurn waits for a turn to use a processor for longer, outside of an operation. A
	// request that goes on comes before others of its workspace. The caller ends the turn.
	TakeTurn(req *tracker.Request, goesOn bool) (end func(), err error)
}

// Config configures a Server. Zero limits mean their defaults.
type Config struct {
	// Engine runs the operations. Without one, requests are refused until UseEngine.
	Engine Engine
	// Cluster answers the operator's questions; nil leaves /cluster out.
	Cluster Cluster
	// Placement finds the node that serves a workspace; nil: always this one.
	Placement Placement
	// Ready says why the node can't serve now; nil when it can.
	Ready func() error
	// Version of the program, which the MCP server names.
	Version string
	// PublicURL is where clients reach the service, for the API description.
	PublicURL string
	// ClientURL is where clients reach this very node, see ParseClientURL; other nodes
	// tell those whose requests they forward. Empty: they tell none.
	ClientURL string
	// Secure says that the connections of Serve's listener are of TLS.
	Secure bool
	// CORSOrigins are the origins whose pages may read answers (Decision 73).
	CORSOrigins []string
	// NoConsole leaves the console out (Decision 93).
	NoConsole bool
	// ConsoleSession is how long a session of the console lasts; default 12 h.
	ConsoleSession time.Duration
	// SignIn is the identity provider of the console; nil: there is none.
	SignIn *signin.Provider
	Logger *slog.Logger
	// Registry takes the server's metrics; nil makes one of its own.
	Registry *prometheus.Registry

	// WorkspaceRequests limits the requests of a workspace in a second, where it has no limit
	// of its own; 0: no limit.
	WorkspaceRequests uint64
	// Rate limits the requests of each credential. The zero Rate is no limit.
	Rate Rate
	// Limits bound the share of one caller or address. The zero Limits bound nothing.
	Limits Limits
	// RootToken is the operator's credential, for whom some connections are kept. It is
	// empty if there is no operator.
	RootToken string
	// Slow is the time from which on operations are logged with where it went; 0: none are.
	Slow time.Duration
	// Tracing is for traces of requests; nil: none are traced.
	Tracing *Tracing
	// RequestTimeout is how long an operation may take; default 10 s.
	RequestTimeout time.Duration
	// ReadTimeout is how long a request may take to arrive, from its first byte to
	// the last of its body, and without the time of the body's bytes at 64 KiB a second;
	// default 15 s.
	ReadTimeout time.Duration
	// ReceiveGrace is how long requests may still arrive after Shutdown was called; default 2 s. A
	// client that sends slowly, or stops in the middle, must not hold it up.
	ReceiveGrace time.Duration
	// WriteTimeout is how long a response may take to be accepted; default 15 s.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection may wait between requests; default 2 min.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds the request line and headers together; default 16 KiB.
	MaxHeaderBytes int
	// MaxTargetBytes bounds path and query; default 8 KiB.
	MaxTargetBytes int
	// MaxConnections bounds the connections served at once; default 16384. A few more
	// get an error as answer, the others are closed. The last places are reserved; see
	// kept.
	MaxConnections int
}

func (c Config) withDefaults() Config {
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	orDefault(&c.ConsoleSession, consoleLife)
	orDefault(&c.RequestTimeout, 10*time.Second)
	orDefault(&c.ReadTimeout, 15*time.Second)
	orDefault(&c.ReceiveGrace, 2*time.Second)
	orDefault(&c.WriteTimeout, 15*time.Second)
	orDefault(&c.IdleTimeout, 2*time.Minute)
	orDefault(&c.MaxHeaderBytes, 16<<10)
	orDefault(&c.MaxTargetBytes, 8<<10)
	orDefault(&c.MaxConnections, 16_384)
	return c
}

func orDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
