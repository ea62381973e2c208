package httpapi

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// The router is our own. fasthttp/router matches on the decoded and normalized
// path, where %2F has become a slash, "//" one slash and ".." has been resolved,
// so that what an id contains can choose the route; and with its redirects turned
// off, static segments and parameters at one place still collide. Here a path is
// matched segment by segment, each decoded alone (see target).

// maxParams bounds the parameters of a route.
const maxParams = 4

// router is a tree of path segments. It is built once and then only read.
type router struct {
	root node
	// all are the methods known anywhere, for OPTIONS *.
	all string
}

type node struct {
	static []*node // few at any place, so a list to walk
	name   string  // of a static segment
	param  *node
	rest   *node // of a parameter that takes every segment from here on
	routes []*route
	allow  string
}

// params are the values of a route's parameters, in the order of the path.
type params [maxParams][]byte

// methods, with what the router adds to a node's own.
var methodOrder = []string{
	fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPut,
	fasthttp.MethodPatch, fasthttp.MethodDelete, fasthttp.MethodOptions,
}

func newRouter(routes []*route) (*router, error) {
	r := &router{all: strings.Join(methodOrder, ", ")}
	for _, rt := range routes {
		if err := r.add(rt); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *router) add(rt *route) error {
	if !slices.Contains(methodOrder, rt.Method) {
		return fmt.Errorf("route %s %s: unknown method", rt.Method, rt.Path)
	}
	segments := strings.Split(rt.Path, "/")
	if segments[0] != "" || len(segments) > maxSegments {
		return fmt.Errorf("route %s %s: bad path", rt.Method, rt.Path)
	}
	at := &r.root
	rt.params = nil
	for i, segment := range segments[1:] {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			name, ok = strings.CutSuffix(name, "}")
			name, rest := strings.CutSuffix(name, "...")
			if !ok || name == "" || slices.Contains(rt.params, name) || len(rt.params) == maxParams || rest && i < len(segments)-2 {
				return fmt.Errorf("route %s %s: bad parameter %q", rt.Method, rt.Path, segment)
			}
			rt.params = append(rt.params, name)
			if rest {
				if at.rest == nil {
					at.rest = &node{}
				}
				at = at.rest
				continue
			}
			if at.param == nil {
				at.param = &node{}
			}
			at = at.param
			continue
		}
		at = at.child(segment)
	}
	for _, other := range at.routes {
		if other.Method == rt.Method {
			return fmt.Errorf("route %s %s: same as %s", rt.Method, rt.Path, other.Path)
		}
	}
	at.routes = append(at.routes, rt)
	at.allow = at.methods()
	return nil
}

func (n *node) child(name string) *node {
	for _, c := range n.static {
		if c.name == name {
			return c
		}
	}
	c := &node{name: name}
	n.static = append(n.static, c)
	return c
}

// methods is the value of Allow: what is there, HEAD beside GET, and OPTIONS.
func (n *node) methods() string {
	var names []string
	for _, m := range methodOrder {
		have := m == fasthttp.MethodOptions || slices.ContainsFunc(n.routes, func(rt *route) bool {
			return rt.Method == m || m == fasthttp.MethodHead && rt.Method == fasthttp.MethodGet
		})
		if have {
			names = append(names, m)
		}
	}
	return strings.Join(names, ", ")
}

// find gives the place a path leads to, nil when none, with the parameters on the
// way. A static segment wins over a parameter, and that over one for all the rest;
// where one leads nowhere, the next is tried.
func (r *router) find(t *target, p *params) *node {
	return r.root.find(t.segments[:t.n], p, 0)
}

func (n *node) find(segments [][]byte, p *params, depth int) *node {
	if len(segments) == 0 {
		if len(n.routes) == 0 {
			return nil
		}
		return n
	}
	segment := segments[0]
	for _, c := range n.static {
		if string(segment) == c.name {
			if found := c.find(segments[1:], p, depth); found != nil {
				return found
			}
			break
		}
	}
	if n.param != nil && len(segment) > 0 {
		p[depth] = segment
		if found := n.param.find(segments[1:], p, depth+1); found != nil || n.rest == nil {
			return found
		}
	}
	if n.rest == nil || len(segment) == 0 {
		return nil
	}
	// A slash in the path and one in a segment (%2F) are the same to it.
	p[depth] = segment
	if len(segments) > 1 {
		p[depth] = bytes.Join(segments, []byte{'/'})
	}
	return n.rest
}

// route gives the node's route for a method; HEAD has GET's.
func (n *node) route(method []byte) *route {
	for _, rt := range n.routes {
		if string(method) == rt.Method || string(method) == fasthttp.MethodHead && rt.Method == fasthttp.MethodGet {
			return rt
		}
	}
	return nil
}
