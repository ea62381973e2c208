package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// gatherWait is how long a member has to report. Who takes longer is planned for
// as one that does not answer.
const reportTimeout = time.Second

// nodeCaller reaches other nodes.
type nodeCaller interface {
	call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error)
}

// memberSource knows who the members are.
type memberSource interface {
	// membersView is what is known now; false while it is not known at all.
	membersView() (clusterView, bool)
	// registrySnapshot is the registry in the form that other nodes learn it from.
	registrySnapshot() []byte
}

// view is the cluster apart from its groups.
type clusterView struct {
	clusterID string
	shards    int  // workspace shards; the directory is beside them
	everThree bool // three members not removed have been here at once
	members   []memberView
}

// reportCollector asks every member how its groups stand.
type reportCollector struct {
	self  string
	own   hosting
	peers nodeCaller
}

// collect gives the reports of the members that answered. Those that gossip holds
// for dead are not asked: a paused one would cost the whole wait each time.
func (g *reportCollector) collect(ctx context.Context, r clusterView, registry []byte) map[string][]groupReport {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	found := map[string][]groupReport{}
	request, err := json.Marshal(reportRequest{Registry: registry})
	if err != nil { // bytes always marshal
		return found
	}
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
	)
	for _, m := range r.members {
		if m.Name == g.self || m.State == NodeDead || m.State == NodeLeft {
			continue
		}
		asked.Go(func() {
			groups, err := g.ask(ctx, m.Name, request)
			if err != nil {
				return // the plan, and the status, say who does not answer
			}
			mu.Lock()
			defer mu.Unlock()
			found[m.Name] = inRange(groups, r.shards)
		})
	}
	own := g.own.report()
	asked.Wait()
	found[g.self] = own
	return found
}

// markFullNodes gives the members with those whose disk is full as draining: others take
// over what they lead and, where there is room, hold.
func markFullNodes(members []memberView, reports map[string][]groupReport) []memberView {
	out := slices.Clone(members)
	for i := range out {
		if r := reports[out[i].Name]; len(r) > 0 && r[0].Full {
			out[i].Draining = true
		}
	}
	return out
}

func (g *reportCollector) ask(ctx context.Context, node string, request []byte) ([]groupReport, error) {
	body, err := g.peers.call(ctx, node, rpcReport, request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its groups: %w", node, err)
	}
	var answer reportAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read the groups of %s: %w", node, err)
	}
	return answer.Groups, nil
}

// inRange leaves out shards that the cluster does not have.
func inRange(groups []groupReport, shards int) []groupReport {
	kept := groups[:0]
	for _, r := range groups {
		if int(r.Shard) <= shards {
			kept = append(kept, r)
		}
	}
	return kept
}
