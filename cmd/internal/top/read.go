package top

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/httpapi"
)

const (
	// loadWithin bounds the wait for the load of one node, so that a node that hangs delays
	// a frame no longer.
	loadWithin = 3 * time.Second
	// askedAtOnce bounds the requests under way.
	askedAtOnce = 8
	// maxBusiest bounds the workspaces with most requests that are shown, and maxSlowest those with the slowest
	// requests that are shown beside them.
	maxBusiest = 20
	maxSlowest = 10
	// maxSlugs bounds the slugs that are remembered.
	maxSlugs = 1000
)

// Get sends a GET request of the operator and returns the body of a successful answer.
type Get func(ctx context.Context, path string) ([]byte, error)

// Reader reads the cluster. It is for one goroutine.
type Reader struct {
	get   Get
	now   func() time.Time
	slugs map[string]string // by workspace
}

// NewReader makes a reader.
func NewReader(get Get, now func() time.Time) *Reader {
	return &Reader{get: get, now: now, slugs: map[string]string{}}
}

// Reading is the cluster at one time.
type Reading struct {
	At       time.Time
	Topology httpapi.Topology
	// Loads are those of the nodes that answered, by name, and Silent the reasons for which
	// others did not.
	Loads  map[string]*httpapi.NodeLoad
	Silent map[string]string
	// Busiest are the workspaces with most requests of all nodes, and others with the slowest ones.
	Busiest []Busy
}

// Busy is a workspace with its requests in a second. Slug is empty if it could not be read.
type Busy struct {
	ID, Slug, Node string
	Reads, Writes  float64
	// Uncounted is the most that may be missing.
	Uncounted float64
	// Slowest is the time that the slowest request took.
	Slowest time.Duration
}

// Read asks for everything. Its error is that of GET /cluster; a node that does not tell its
// load is no error.
func (r *Reader) Read(ctx context.Context) (*Reading, error) {
	of := &Reading{Loads: map[string]*httpapi.NodeLoad{}, Silent: map[string]string{}}
	raw, err := r.get(ctx, "/cluster")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &of.Topology); err != nil {
		return nil, fmt.Errorf("read the cluster: %w", err)
	}
	r.readLoads(ctx, of)
	of.At = r.now()
	of.Busiest = busiest(of.Loads)
	r.readSlugs(ctx, of.Busiest)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return of, nil
}

// readLoads asks the nodes that run for their load.
func (r *Reader) readLoads(ctx context.Context, of *Reading) {
	var names []string
	for _, n := range of.Topology.Nodes {
		if n.State != "dead" && n.State != "left" {
			names = append(names, n.Name)
		}
	}
	var mu sync.Mutex
	each(names, func(name string) {
		load := &httpapi.NodeLoad{}
		err := r.decode(ctx, "/cluster/nodes/"+url.PathEscape(name)+"/load", load)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			of.Silent[name] = silence(err)
			return
		}
		of.Loads[name] = load
	})
}

// silence is the reason for which a node does not tell its load, in a few words.
func silence(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer"
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// decode reads an answer within loadWithin.
func (r *Reader) decode(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, loadWithin)
	defer cancel()
	raw, err := r.get(ctx, path)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the answer to GET %s: %w", path, err)
	}
	return nil
}

// readSlugs fills the slugs in, of which it remembers those read before.
func (r *Reader) readSlugs(ctx context.Context, of []Busy) {
	if len(r.slugs) > maxSlugs-maxBusiest-maxSlowest {
		clear(r.slugs)
	}
	var unknown []string
	for _, b := range of {
		if _, known := r.slugs[b.ID]; !known {
			unknown = append(unknown, b.ID)
		}
	}
	var mu sync.Mutex
	each(unknown, func(id string) {
		var workspace struct {
			Slug string `json:"slug"`
		}
		if r.decode(ctx, "/workspaces/"+url.PathEscape(id), &workspace) != nil {
			return // it is shown by its id
		}
		mu.Lock()
		defer mu.Unlock()
		r.slugs[id] = workspace.Slug
	})
	for i := range of {
		of[i].Slug = r.slugs[of[i].ID]
	}
}

// each calls do for the values, for askedAtOnce of them at a time.
func each(values []string, do func(string)) {
	free := make(chan struct{}, askedAtOnce)
	var all sync.WaitGroup
	for _, value := range values {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			do(value)
		})
	}
	all.Wait()
}

// busiest puts the lists of the nodes together. A workspace whose owner has changed is in two
// lists; the requests are added up, and the node is that with more of them.
func busiest(loads map[string]*httpapi.NodeLoad) []Busy {
	of := map[string]*Busy{}
	most := map[string]float64{}
	for name, load := range loads {
		seconds := float64(load.BusiestMs) / 1000
		if seconds <= 0 {
			continue
		}
		for _, w := range load.Busiest {
			b := of[w.OrganizationID]
			if b == nil {
				b = &Busy{ID: w.OrganizationID}
				of[w.OrganizationID] = b
			}
			reads, writes := float64(w.Reads)/seconds, float64(w.Writes)/seconds
			b.Reads, b.Writes, b.Uncounted = b.Reads+reads, b.Writes+writes, b.Uncounted+float64(w.Uncounted)/seconds
			b.Slowest = max(b.Slowest, time.Duration(w.SlowestMs)*time.Millisecond)
			if b.Node == "" || reads+writes > most[b.ID] {
				b.Node, most[b.ID] = name, reads+writes
			}
		}
	}
	list := make([]Busy, 0, len(of))
	for _, b := range of {
		list = append(list, *b)
	}
	slices.SortFunc(list, func(a, b Busy) int {
		return cmp.Or(cmp.Compare(b.Reads+b.Writes, a.Reads+a.Writes), cmp.Compare(a.ID, b.ID))
	})
	if len(list) > maxBusiest {
		others := list[maxBusiest:]
		slices.SortStableFunc(others, func(a, b Busy) int { return cmp.Compare(b.Slowest, a.Slowest) })
		list = list[:maxBusiest+min(len(others), maxSlowest)]
	}
	return list
}
