package apicheck

import (
	"net/http"
	"strings"
)

// segment is a place in the tree of the described paths.
type segment struct {
	fixed map[string]*segment
	param *segment
	path  string // that ends here, as it is described; empty for none
	verbs object // its operations
}

// place names an operation by its method and its path as it is described.
type place struct{ method, path string }

func (p place) String() string { return p.method + " " + p.path }

func (s *segment) add(path string, operations object) {
	at := s
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		var next *segment
		if strings.HasPrefix(part, "{") {
			if at.param == nil {
				at.param = &segment{}
			}
			next = at.param
		} else {
			if at.fixed == nil {
				at.fixed = map[string]*segment{}
			}
			if next = at.fixed[part]; next == nil {
				next = &segment{}
				at.fixed[part] = next
			}
		}
		at = next
	}
	at.path, at.verbs = path, operations
}

// find returns the operation of a request, or nil. A fixed segment takes precedence over
// a parameter.
func (c *Checker) find(method, path string) (object, place) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	at := c.routes.match(strings.Split(strings.TrimPrefix(path, "/"), "/"))
	if at == nil {
		return nil, place{}
	}
	return child(at.verbs, strings.ToLower(method)), place{method, at.path}
}

func (s *segment) match(parts []string) *segment {
	if len(parts) == 0 {
		if s.path == "" {
			return nil
		}
		return s
	}
	if next := s.fixed[parts[0]]; next != nil {
		if found := next.match(parts[1:]); found != nil {
			return found
		}
	}
	if s.param == nil || parts[0] == "" {
		return nil
	}
	if found := s.param.match(parts[1:]); found != nil {
		return found
	}
	if len(s.param.fixed) == 0 && s.param.param == nil {
		return s.param // a last parameter may be of several segments
	}
	return nil
}
