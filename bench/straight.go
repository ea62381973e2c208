package bench

import (
	"bytes"
	"sync/atomic"
)

// ownerHeader names, on an answer that a node got from another, where clients reach
// that other node, the owner of the workspace.
const ownerHeader = "Switchyard-Owner: "

// straight is a client of a cluster that goes straight to the owner of the workspace
// it asks for, once an answer has named it. Only URLs of the nodes that the run was
// given count: requests carry tokens. Owned by one goroutine.
type straight struct {
	nodes  []*connection
	byURL  map[string]int // shared, and never changed
	first  int            // asked while the owner isn't known
	owners map[string]int // of workspaces; as many as the run made
}

// everyNode has clients begin at all nodes in turn.
const everyNode = -1

// clusterDialer makes clients of a cluster. Each asks one node first or, unless it
// goes straight to owners, always: the node of the given index, or everyNode in turn.
func clusterDialer(urls []string, straightOn bool, begin int) (dial func() doer, host string, err error) {
	dials := make([]func() doer, len(urls))
	byURL := make(map[string]int, len(urls))
	for i, url := range urls {
		var at string
		if dials[i], at, err = dialer(url); err != nil {
			return nil, "", err
		}
		if i == 0 {
			host = at // nodes don't look at it
		}
		byURL[url] = i
	}
	var made atomic.Int64
	return func() doer {
		first := begin
		if begin == everyNode {
			first = int(made.Add(1)-1) % len(urls)
		}
		if !straightOn || len(urls) == 1 {
			return dials[first]()
		}
		s := &straight{nodes: make([]*connection, len(urls)), byURL: byURL, first: first, owners: map[string]int{}}
		for i := range dials {
			s.nodes[i] = dials[i]().(*connection)
		}
		return s
	}, host, nil
}

// do asks the owner if it is known. When a node does not answer, the next request
// for the workspace goes to the first one again.
func (s *straight) do(request []byte) (int, []byte, error) {
	workspace := workspaceOf(request)
	at, known := s.owners[string(workspace)]
	if !known {
		at = s.first
	}
	node := s.nodes[at]
	status, body, err := node.do(request)
	if err != nil {
		delete(s.owners, string(workspace))
		return status, body, err
	}
	if owner := node.owner(); len(owner) > 0 && len(workspace) > 0 {
		if i, ok := s.byURL[string(owner)]; ok {
			s.owners[string(workspace)] = i
		}
	}
	return status, body, nil
}

func (s *straight) close() {
	for _, c := range s.nodes {
		c.close()
	}
}

// owner returns the owner that the last answer names, empty if it names none.
func (c *connection) owner() []byte {
	_, rest, ok := bytes.Cut(c.buf[:c.head], []byte(ownerHeader))
	if !ok {
		return nil
	}
	value, _, _ := bytes.Cut(rest, []byte("\r"))
	return value
}

// workspaceOf finds the id in a request's path; empty when it has none.
func workspaceOf(request []byte) []byte {
	_, rest, ok := bytes.Cut(request, []byte(" /workspaces/"))
	if !ok || len(rest) < 36 {
		return nil
	}
	return rest[:36]
}
