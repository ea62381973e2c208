package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	fastrouter "github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// maxParams bounds the parameters of a route.
const maxParams = 4

// methodOrder lists the methods of routes in the order in which Allow names them.
var methodOrder = []string{
	fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPut,
	fasthttp.MethodPatch, fasthttp.MethodDelete, fasthttp.MethodOptions,
}

// params are the values of a route's parameters, in the order of the path.
type params [maxParams][]byte

// router finds the place of a request's path. github.com/fasthttp/router matches the
// path; this type adds what depends on the method (405, Allow, HEAD) and takes the
// values of the parameters. It is built once and then only read.
//
// The library sees no value of a parameter. It gets a path in which a mark replaces each
// segment that is not a word of the table, such as /workspaces/-/issues/-. The values are
// then taken from the request's segments by their position. So an id can't choose a route
// by its content, a word may be written with escapes, and a lookup allocates nothing: the
// library copies each value it passes.
type router struct {
	paths *fastrouter.Router
	// words are the fixed segments of all routes, and longest is the length of the
	// longest of them.
	words   map[string]struct{}
	longest int
	// all lists the methods known anywhere, for OPTIONS *.
	all string
}

// routedPath is a path of the table with the routes of its methods.
type routedPath struct {
	routes []*route
	allow  string
}

// mark replaces a segment that is not a word. The library copies it, and Go
// allocates nothing for strings of one byte.
const mark = '-'

// placeKey is the name under which the library's handlers leave their place.
type placeKey struct{}

func newRouter(routes []*route) (*router, error) {
	r := &router{paths: fastrouter.New(), words: map[string]struct{}{}, all: strings.Join(methodOrder, ", ")}
	// These settings are of the library's own handler, which is not used: Lookup
	// redirects nothing and answers nothing.
	r.paths.RedirectTrailingSlash, r.paths.RedirectFixedPath, r.paths.SaveMatchedRoutePath = false, false, false
	r.paths.HandleMethodNotAllowed, r.paths.HandleOPTIONS = false, false
	places := map[string]*routedPath{}
	for _, rt := range routes {
		if err := r.add(places, rt); err != nil {
			return nil, fmt.Errorf("route %s %s: %w", rt.Method, rt.Path, err)
		}
	}
	return r, nil
}

// add notes a route in the place of its path, which is made if it is not there.
func (r *router) add(places map[string]*routedPath, rt *route) error {
	if !slices.Contains(methodOrder, rt.Method) {
		return errors.New("unknown method")
	}
	if err := rt.parsePath(); err != nil {
		return err
	}
	pattern, err := r.pattern(rt)
	if err != nil {
		return err
	}
	at := places[pattern]
	if at == nil {
		at = &routedPath{}
		places[pattern] = at
		if err := r.handle(pattern, at); err != nil {
			return err
		}
	}
	for _, other := range at.routes {
		if other.Method == rt.Method {
			return fmt.Errorf("same as %s", other.Path)
		}
	}
	at.routes = append(at.routes, rt)
	at.allow = at.methods()
	return nil
}

// parsePath notes the parameters of the route's path and where they are.
func (rt *route) parsePath() error {
	segments := strings.Split(rt.Path, "/")
	if segments[0] != "" || len(segments) > maxSegments {
		return errors.New("bad path")
	}
	rt.params, rt.paramAt, rt.takesRest = nil, nil, false
	for i, segment := range segments[1:] {
		name, ok := strings.CutPrefix(segment, "{")
		if !ok {
			continue
		}
		name, ok = strings.CutSuffix(name, "}")
		name, rt.takesRest = strings.CutSuffix(name, "...")
		if !ok || name == "" || slices.Contains(rt.params, name) || len(rt.params) == maxParams || rt.takesRest && i < len(segments)-2 {
			return fmt.Errorf("bad parameter %q", segment)
		}
		rt.params, rt.paramAt = append(rt.params, name), append(rt.paramAt, i)
	}
	return nil
}

// pattern writes a route's path in the library's form, and notes its words. The names
// of the parameters are their numbers, so that routes may call them differently.
func (r *router) pattern(rt *route) (string, error) {
	segments := strings.Split(rt.Path, "/")[1:]
	for i, segment := range segments {
		switch at := slices.Index(rt.paramAt, i); {
		case at < 0 && segment == string(mark):
			return "", fmt.Errorf("the word %q is the mark of parameters", segment)
		case at < 0:
			r.words[segment] = struct{}{}
			r.longest = max(r.longest, len(segment))
		case rt.takesRest && at == len(rt.paramAt)-1:
			segments[i] = fmt.Sprintf("{%d:*}", at)
		default:
			segments[i] = fmt.Sprintf("{%d}", at)
		}
	}
	return "/" + strings.Join(segments, "/"), nil
}

// handle has the library lead to a place. It panics where two patterns collide.
func (r *router) handle(pattern string, at *routedPath) (err error) {
	defer func() {
		if refused := recover(); refused != nil {
			err = fmt.Errorf("add %s: %v", pattern, refused)
		}
	}()
	r.paths.ANY(pattern, func(ctx *fasthttp.RequestCtx) { ctx.SetUserValue(placeKey{}, at) })
	return nil
}

// methods returns the value of Allow: the methods of the place's routes, HEAD beside
// GET, and OPTIONS.
func (at *routedPath) methods() string {
	var names []string
	for _, m := range methodOrder {
		if m == fasthttp.MethodOptions || at.route([]byte(m)) != nil {
			names = append(names, m)
		}
	}
	return strings.Join(names, ", ")
}

// route returns the place's route for a method; HEAD has that of GET.
func (at *routedPath) route(method []byte) *route {
	for _, rt := range at.routes {
		if string(method) == rt.Method || string(method) == fasthttp.MethodHead && rt.Method == fasthttp.MethodGet {
			return rt
		}
	}
	return nil
}

// find returns the place that a path leads to, and sets the values of the parameters.
// It returns nil if there is none. A word takes precedence over a parameter, and a
// parameter over one for the rest of the path. The library's answer is left in ctx.
func (r *router) find(t *target, p *params, ctx *fasthttp.RequestCtx) *routedPath {
	path := r.masked(t)
	// Lookup neither keeps nor changes the path.
	leave, _ := r.paths.Lookup(fastrouter.MethodWild, unsafe.String(unsafe.SliceData(path), len(path)), nil)
	if leave == nil {
		return nil
	}
	leave(ctx)
	at := ctx.UserValue(placeKey{}).(*routedPath)
	if !at.routes[0].setParams(t, p) {
		return nil
	}
	return at
}

// masked returns the path with marks in place of values.
func (r *router) masked(t *target) []byte {
	t.masked = t.masked[:0]
	for _, segment := range t.segments[:t.n] {
		t.masked = append(t.masked, '/')
		if len(segment) <= r.longest {
			if _, word := r.words[string(segment)]; word {
				t.masked = append(t.masked, segment...)
				continue
			}
		}
		t.masked = append(t.masked, mark)
	}
	return t.masked
}

// setParams sets the values of the parameters. It reports false if one of them begins with
// an empty segment: no route has "//" or ends with a slash.
func (rt *route) setParams(t *target, p *params) bool {
	for i, at := range rt.paramAt {
		if p[i] = t.segments[at]; len(p[i]) == 0 {
			return false
		}
	}
	if last := len(rt.paramAt) - 1; rt.takesRest && rt.paramAt[last] < t.n-1 {
		// From here on a slash in the path and one in a segment (%2F) are the same.
		p[last] = bytes.Join(t.segments[rt.paramAt[last]:t.n], []byte{'/'})
	}
	return true
}
