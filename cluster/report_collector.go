package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"switchyard/cluster/placement"
	"switchyard/storage"
)

// reportTimeout bounds the wait for a member's report. A member without a report counts as one that
// does not answer.
const reportTimeout = time.Second

// nodeCaller sends control requests to nodes.
type nodeCaller interface {
	call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error)
}

// memberSource knows the members.
type memberSource interface {
	// membersView returns the members, or false while they are not known.
	membersView() (clusterView, bool)
	// registrySnapshot encodes the registry for other nodes.
	registrySnapshot() []byte
}

// clusterView describes the cluster without its groups.
type clusterView struct {
	clusterID string
	shards    int // workspace shards; the directory is not counted
	format    storage.Format
	everThree bool // the cluster has had three members at the same time
	members   []placement.Member
}

// reportCollector collects the reports of all members.
type reportCollector struct {
	self  string
	own   hosting
	peers nodeCaller
}

// collect returns the reports of the members that answered, and those of them that should lead nothing
// and take no replicas, for another reason than that their disks hang. While a disk hangs, other reasons are
// not known. Members that gossip shows as dead are not asked: a paused one would use up the
// whole time-out each time.
func (g *reportCollector) collect(ctx context.Context, r clusterView, registry []byte) (found map[string][]placement.GroupReport, full map[string]bool) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	found, full = map[string][]placement.GroupReport{}, map[string]bool{}
	request, err := json.Marshal(reportRequest{Registry: registry})
	if err != nil { // byte slices always marshal
		return found, full
	}
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
	)
	for _, m := range r.members {
		if m.Name == g.self || isDown(m.State) {
			continue
		}
		asked.Go(func() {
			answer, err := g.ask(ctx, m.Name, request)
			if err != nil {
				return // the plan and the status show that it does not answer
			}
			mu.Lock()
			defer mu.Unlock()
			found[m.Name] = inRange(answer.Groups, r.shards)
			full[m.Name] = answer.full() && !isStuck(found[m.Name])
		})
	}
	own := answerReport(g.own)
	asked.Wait()
	found[g.self], full[g.self] = own.Groups, own.full() && !isStuck(own.Groups)
	return found, full
}

// isStuck reports whether the disk of the node with these reports hangs.
func isStuck(groups []placement.GroupReport) bool {
	return slices.ContainsFunc(groups, func(r placement.GroupReport) bool { return r.Stuck })
}

// markNodes returns the members, of which those that should lead nothing and take no replicas are marked: other
// nodes take over their leaderships and, where there is room, their replicas. A disk that hangs may work again
// soon, as a dead node may return, so the replicas of such a node wait until it has hung for long.
func markNodes(members []placement.Member, full, hang, hangLong map[string]bool) []placement.Member {
	out := slices.Clone(members)
	for i := range out {
		m := &out[i]
		m.Stuck, m.Full = hang[m.Name], full[m.Name] || hangLong[m.Name]
	}
	return out
}

func (g *reportCollector) ask(ctx context.Context, node string, request []byte) (*reportAnswer, error) {
	body, err := g.peers.call(ctx, node, rpcReport, request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its groups: %w", node, err)
	}
	var answer reportAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("read the groups of %s: %w", node, err)
	}
	return &answer, nil
}

// inRange drops reports of shards that the cluster does not have.
func inRange(groups []placement.GroupReport, shards int) []placement.GroupReport {
	kept := groups[:0]
	for _, r := range groups {
		if int(r.Shard) <= shards {
			kept = append(kept, r)
		}
	}
	return kept
}
