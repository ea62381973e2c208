package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"switchyard/internal/processors"
)

// Server serves the API on its listeners.
type Server struct {
	cfg         Config
	running     atomic.Pointer[Engine] // nil before the node belongs to a cluster
	fast        *fasthttp.Server
	router      *router
	routes      []*route
	ids         *requestIDs
	metrics     *metrics
	load        *load
	exchanges   sync.Pool
	answers     answerBuffers
	forwardings sync.Pool // *forwarding
	now         func() time.Time
	// smallestBody is the smallest limit on a body that a route has, in bytes.
	smallestBody int
	// signedPaths are the beginnings of the paths of operations with signed bodies.
	signedPaths [][]byte
	rates       *rateLimits // nil: there is no limit
	workspaces  workspaceRates
	pools       *pools // nil for a node alone
	leavers     leavers
	tools       *toolbox // nil when no route leads to them
	description []byte
	goodbyes    goodbyes
	// draining is set when connections are to end after the response in progress.
	draining atomic.Bool
	// stopping is set before, when the node begins to stop.
	stopping atomic.Bool
	budget   *budget
	waits    *waitingShares
	resumes  *resumeTurns
	// onboarding and anonymous limit unknown callers by address, and founders limits
	// known callers that create workspaces. Each is nil if there is no such limit.
	onboarding, founders, anonymous *rateLimits
	known                           *known
	rootHash                        [sha256.Size]byte
	// clientURL is Config.ClientURL without a slash at its end; empty: none.
	clientURL []byte
	// origins are the origins of pages that may read answers, and publicOrigin is that of the public
	// URL; empty: none.
	origins      origins
	publicOrigin string
	encoders     *encoders
	console      *consoleSite // nil: it is switched off
	sites        []*servedSite
	slow         *slowLog
	// askedTraces limits the traces that callers ask for.
	askedTraces *rate.Limiter

	mu        sync.Mutex
	listeners []*listener
	closing   bool
	parked    map[*parked]struct{} // requests that wait, and hold no goroutine
	// streams has the timer that ends each stream with its session; nil: the session has no
	// end that the stream does not notice itself.
	streams map[ending]*time.Timer

	// resuming counts the requests that are parked, or on their way back to a handler.
	resuming atomic.Int64
}

// New makes a server of the whole API. Its error is a fault of the configuration
// or of an operation's declaration.
func New(cfg Config) (*Server, error) { return newServer(cfg, Routes()) }

func newServer(cfg Config, routes []Route) (*Server, error) {
	cfg = cfg.withDefaults()
	s := &Server{
		answers: answerBuffers{large: make(chan *answerBuffer, largeKept)},
		cfg:     cfg, ids: newRequestIDs(), now: time.Now,
		parked: map[*parked]struct{}{}, streams: map[ending]*time.Timer{},
	}
	s.load = newLoad(s.now())
	s.resumes = newResumeTurns(resumeAtOnce*processors.Count(), s.resume)
	if cfg.Engine != nil {
		s.UseEngine(cfg.Engine)
	}
	clientURL, err := ParseClientURL(cfg.ClientURL)
	if err != nil {
		return nil, fmt.Errorf("httpapi: client URL %q: %w", cfg.ClientURL, err)
	}
	s.clientURL = []byte(clientURL)
	if s.origins, err = newOrigins(cfg.CORSOrigins); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	s.slow, s.askedTraces = newSlowLog(), newAskedTraces()
	if s.encoders, err = newEncoders(); err != nil {
		return nil, err
	}
	s.exchanges.New = func() any { return new(exchange) }
	s.forwardings.New = func() any { return new(forwarding) }
	if cfg.Rate.Requests > 0 {
		s.rates = newRateLimits(cfg.Rate)
	}
	if cfg.Limits.Onboarding.Requests > 0 {
		s.onboarding, s.founders = newAddressRates(cfg.Limits.Onboarding), newAddressRates(cfg.Limits.Onboarding)
	}
	if cfg.Limits.Anonymous.Requests > 0 {
		s.anonymous = newAddressRates(cfg.Limits.Anonymous)
	}
	refused := func(bound string) { s.metrics.refuse(bound) }
	s.budget = newBudget(&s.cfg.Limits, refused)
	s.waits = newWaitingShares(cfg.Limits.AddressWaiting, refused)
	s.known = newKnown()
	s.rootHash = sha256.Sum256([]byte(cfg.RootToken))
	if cfg.Placement != nil {
		s.pools = newPools(cfg.Placement.Dial)
	}
	if s.metrics, err = newMetrics(cfg.Registry, s.connections, s.budget); err != nil {
		return nil, err
	}
	if !cfg.NoConsole {
		if s.console, err = s.newConsole(); err != nil {
			return nil, err
		}
	}
	docs, err := newDocs()
	if err != nil {
		return nil, err
	}
	if s.routes, err = s.compile(routes); err != nil {
		return nil, err
	}
	if s.publicOrigin, err = originOf(cfg.PublicURL); err != nil {
		return nil, fmt.Errorf("httpapi: public URL: %w", err)
	}
	if s.tools, err = newToolbox(s.routes, cfg); err != nil {
		return nil, err
	}
	if s.description, err = describeAPI(s.routes, cfg); err != nil {
		return nil, err
	}
	s.routes = append(s.routes, s.builtin(docs)...)
	s.sites = s.newSites(docs)
	if s.router, err = newRouter(s.routes); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	s.smallestBody = defaultMaxBody
	for _, rt := range s.routes {
		s.smallestBody = min(s.smallestBody, rt.maxBody)
		if rt.Op != nil && rt.Op.Signed != nil {
			fixed, _, _ := strings.Cut(rt.Path, "{")
			s.signedPaths = append(s.signedPaths, []byte(fixed))
		}
	}
	s.fast = &fasthttp.Server{
		Handler:               s.handle,
		ErrorHandler:          s.broken,
		HeaderReceived:        s.readHeaders,
		ExpectHandler:         s.expect,
		Logger:                fastLogger{cfg.Logger},
		Concurrency:           cfg.MaxConnections + MaxPeerConnections(cfg.MaxConnections) + 4*turnedAway,
		ReadBufferSize:        cfg.MaxHeaderBytes + addedHeaders,
		ReadTimeout:           cfg.ReadTimeout,
		WriteTimeout:          cfg.WriteTimeout,
		IdleTimeout:           cfg.IdleTimeout,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		CloseOnShutdown:       true,
		SecureErrorLogMessage: true,
		// The handler reads bodies itself: after admission, and with the route's limit.
		StreamRequestBody:            true,
		DisablePreParseMultipartForm: true,
	}
	return s, nil
}

// Description is the document at /openapi.json, which must not be changed.
func (s *Server) Description() []byte { return s.description }

// Serve accepts and serves connections until Shutdown, or until the listener
// fails. It closes the listener.
func (s *Server) Serve(ln net.Listener) error {
	l := s.newListener(ln, s.cfg.MaxConnections)
	l.shares = &s.cfg.Limits
	return s.serveOn(l)
}

// ServePeers is Serve for the connections of other nodes, which forward requests
// and are believed what they say about them.
func (s *Server) ServePeers(ln net.Listener) error {
	l := s.newListener(ln, maxPeers)
	l.peers = true
	return s.serveOn(l)
}

// maxPeers bounds the connections of other nodes, but for those that rest.
const maxPeers = 8192

// MaxPeerConnections returns the most connections of other nodes that a server with so many places for clients
// takes, with those that rest.
func MaxPeerConnections(clients int) int { return maxPeers + clients }

func (s *Server) serveOn(l *listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return errors.Join(http.ErrServerClosed, l.Close())
	}
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	if err := s.fast.Serve(l); err != nil {
		return fmt.Errorf("serve HTTP on %v: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, lets the requests in progress finish and closes their
// connections. Requests that have not arrived after Config.ReceiveGrace are answered with 408, those
// that wait at other nodes with 503. When ctx ends
// first, what is left is cut off and ctx's error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	listeners := s.listeners
	s.mu.Unlock()
	s.stopping.Store(true)
	s.draining.Store(true)
	for _, l := range listeners {
		_ = l.Close() // again, and with its error, by fasthttp
	}
	for _, l := range listeners {
		l.closeSilent()
	}
	s.endStreams()
	s.leavers.end()
	s.unpark(ctx)
	grace := time.AfterFunc(s.cfg.ReceiveGrace, func() {
		for _, l := range listeners {
			l.endReceiving()
		}
	})
	defer grace.Stop()
	err := s.fast.ShutdownWithContext(ctx)
	if s.pools != nil {
		s.pools.close()
	}
	for _, l := range listeners {
		l.closeAll()
	}
	s.goodbyes.end(ctx)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("shut down HTTP: %w", err)
	}
	return nil
}

// connections is how many are open.
func (s *Server) connections() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.listeners {
		if !l.peers {
			n += l.open()
		}
	}
	return float64(n)
}

// fastLogger takes fasthttp's messages about connections: noise from outside that the
// answers to the requests already reported.
type fastLogger struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l fastLogger) Printf(format string, args ...any) {
	l.log.Debug("connection failed", "error", fmt.Sprintf(format, args...))
}
