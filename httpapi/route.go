package httpapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// Route says that an operation is reached by a method at a path.
type Route struct {
	Method string
	// Path has its parameters in braces; {organizationId} names the workspace, and a
	// last {key...} takes every segment from there on.
	Path string
	Op   *tracker.Op
}

// route is a Route made ready, or one of the server's own paths.
type route struct {
	Route
	*observers
	label  string // "GET /workspaces"
	plan   *inputSchema
	params []string // names, in the order of the path
	// paramAt are the segments of the parameters, counted from 0; takesRest is set if
	// the last takes every segment from there on.
	paramAt   []int
	takesRest bool
	// workspaceAt is the place of the workspace among params, -1 when it has none;
	// bound are the places of the others, boundNames their names.
	workspaceAt int
	bound       []int
	boundNames  []string
	maxBody     int
	changes     bool     // takes an Idempotency-Key
	dialect     *dialect // nil: the service's own
	inputs      sync.Pool
	large       atomic.Int32 // above 0: one of the last answers took more than keptBuffer; see lend
	// direct answers without an operation; health is set for the checks of the node's
	// health.
	direct func(*exchange) error
	health bool
	// here is set if the node that was asked runs the operation; such a route is never
	// forwarded. local or console then runs it instead of the engine.
	here    bool
	local   localRun
	console consoleRun
	// tools says that the body is a message to a session's tools.
	tools bool
	// image says that the answer is the image of the shard that the path names.
	image bool
	// ofNode says that the node that the path names carries the operation out.
	ofNode bool
}

// compile makes the routes of operations ready.
func (s *Server) compile(routes []Route) ([]*route, error) {
	compiled := make([]*route, 0, len(routes))
	locals, consoles := s.localRuns(), s.console.runs()
	for _, r := range routes {
		local := locals[r.Op]
		if local == nil && isLocal(r.Op) || s.cfg.Cluster == nil && readsLog(r.Op) {
			continue // there is no cluster to ask
		}
		if consoles[r.Op] == nil && isConsole(r.Op) {
			continue // the console is switched off
		}
		rt := &route{Route: r, label: r.Method + " " + r.Path, observers: s.metrics.observers(r.Method, r.Path), maxBody: r.Op.MaxBody}
		if rt.maxBody == 0 {
			rt.maxBody = defaultMaxBody
		}
		rt.dialect = dialectOf(r.Path)
		rt.local, rt.console = local, consoles[r.Op]
		rt.here = rt.local != nil || rt.console != nil
		rt.changes = r.Op.Kind != tracker.Query && r.Method != fasthttp.MethodGet && !rt.here && (rt.dialect == nil || !rt.dialect.keyless)
		rt.tools = r.Op == opSessionTools
		rt.image = r.Op == opBackupShard
		rt.ofNode = r.Op == opNodeLoad
		rt.inputs.New = r.Op.New
		if r.Op.WithoutKey {
			rt.changes = false
		}
		compiled = append(compiled, rt)
	}
	for _, rt := range compiled {
		if err := rt.parsePath(); err != nil {
			return nil, fmt.Errorf("httpapi: route %s: %w", rt.label, err)
		}
		rt.workspaceAt = slices.Index(rt.params, workspaceParam)
		for i, name := range rt.params {
			if i != rt.workspaceAt {
				rt.bound = append(rt.bound, i)
				rt.boundNames = append(rt.boundNames, name)
			}
		}
		var err error
		if rt.plan, err = newPlan(rt.Op, rt.params); err != nil {
			return nil, fmt.Errorf("httpapi: operation %s: %w", rt.Op.Name, err)
		}
	}
	return compiled, nil
}

// describedPath is the path as the API description has it, which knows no
// parameters of several segments.
func (rt *route) describedPath() string { return strings.Replace(rt.Path, "...}", "}", 1) }

// readsBody reports whether the operation reads the body's properties.
func (rt *route) readsBody() bool { return rt.tools || rt.plan != nil && rt.plan.body != nil }

// checksBody reports whether a body is held to the rules of all bodies (Decision 3) though the operation has no
// properties. The body of a GET or a DELETE means nothing, so it is not looked at.
func (rt *route) checksBody() bool {
	switch rt.Method {
	case fasthttp.MethodPost, fasthttp.MethodPut, fasthttp.MethodPatch:
		return rt.plan != nil && rt.plan.raw == nil && !rt.readsBody()
	}
	return false
}

// input gives an empty input. Those of queries are used again, for nobody holds
// on to them after the answer.
func (rt *route) input() any {
	if rt.Op.Kind != tracker.Query || rt.Op.LongPoll {
		return rt.Op.New()
	}
	return rt.inputs.Get()
}

func (rt *route) giveBack(in any) {
	if rt.Op.Kind == tracker.Query && !rt.Op.LongPoll {
		reflect.ValueOf(in).Elem().SetZero()
		rt.inputs.Put(in)
	}
}
