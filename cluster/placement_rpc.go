package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"switchyard/cluster/placement"
	"switchyard/storage"
)

// hosting manages the replicas of one node for placement.
type hosting interface {
	report() []placement.GroupReport
	full() bool // see reportAnswer
	hostReplica(shard storage.Shard, to logPoint) error
	dropOrphan(in dropRequest) error
	changeReplica(ctx context.Context, shard storage.Shard, change replicaChange) error
}

// reportRequest asks for the reports of a node's groups. The directory's owner sends the registry
// along: members without a replica of the directory get it in no other way.
type reportRequest struct {
	Registry []byte `json:"registry,omitempty"` // opaque here
}

type reportAnswer struct {
	Groups []placement.GroupReport `json:"groups"`
	// Full is set while the node should lead nothing and take no replicas. The reports of its groups
	// say so too, but a node without a group has none. Versions before this field leave it out.
	// That its disk hangs is in the reports alone, in Full and Stuck of the same moment: otherwise a disk
	// that begins to hang between the two would pass for another reason.
	Full bool `json:"full,omitempty"`
}

func answerReport(own hosting) reportAnswer {
	return reportAnswer{Groups: own.report(), Full: own.full()}
}

// full reports whether the node should lead nothing and take no replicas, also for an answer of a
// version without the field.
func (a *reportAnswer) full() bool { return a.Full || len(a.Groups) > 0 && a.Groups[0].Full }

// hostRequest states how far the group was, in its leader's term. Versions before these fields leave them
// out.
type hostRequest struct {
	Shard storage.Shard `json:"shard"`
	Term  uint64        `json:"term,omitempty"`
	Last  uint64        `json:"last,omitempty"`
}

// replicasRequest is valid in one term of the leader only.
type replicasRequest struct {
	Shard  storage.Shard `json:"shard"`
	Term   uint64        `json:"term"`
	Change replicaChange `json:"change"`
}

// dropRequest states how far the group was when its leader did not count the replica. A replica
// that has heard of the group since is not dropped.
type dropRequest struct {
	Shard storage.Shard `json:"shard"`
	Term  uint64        `json:"term"`
	Last  uint64        `json:"last"`
}

// placementHandlers handles the control requests of placement. learn gets the registry of the
// directory's owner.
func placementHandlers(own hosting, learn func(from string, registry []byte)) map[rpcKind]rpcHandler {
	return map[rpcKind]rpcHandler{
		rpcReport: func(_ context.Context, from string, body []byte) ([]byte, error) {
			var in reportRequest
			if err := decodeRequest(body, &in); err != nil {
				return nil, err
			}
			if len(in.Registry) > 0 {
				learn(from, in.Registry)
			}
			return json.Marshal(answerReport(own))
		},
		rpcHost: func(_ context.Context, _ string, body []byte) ([]byte, error) {
			var in hostRequest
			if err := decodeRequest(body, &in); err != nil {
				return nil, err
			}
			return nil, own.hostReplica(in.Shard, logPoint{in.Term, in.Last})
		},
		rpcReplicas: func(ctx context.Context, _ string, body []byte) ([]byte, error) {
			var in replicasRequest
			if err := decodeRequest(body, &in); err != nil {
				return nil, err
			}
			return nil, changeAsLeader(ctx, own, in)
		},
		rpcDrop: func(_ context.Context, _ string, body []byte) ([]byte, error) {
			var in dropRequest
			if err := decodeRequest(body, &in); err != nil {
				return nil, err
			}
			return nil, own.dropOrphan(in)
		},
	}
}

func decodeRequest(body []byte, in any) error {
	if err := json.Unmarshal(body, in); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	return nil
}

var (
	errOtherTerm = errors.New("this node does not lead the shard in that term")
	errCounted   = errors.New("the replica has heard of its group since and is kept")
)

// changeAsLeader refuses a change that was planned in an earlier term: the members may have changed
// since.
func changeAsLeader(ctx context.Context, own hosting, in replicasRequest) error {
	report, ok := reportOf(own, in.Shard)
	if !ok || !report.Leads || report.Term != in.Term {
		return errOtherTerm
	}
	return own.changeReplica(ctx, in.Shard, in.Change)
}

// check refuses a request that may be old if the replica may have become a member again since.
func (in *dropRequest) check(report *placement.GroupReport) error {
	if report.Starting || report.Leads || report.Term > in.Term || (report.Term == in.Term && report.Last > in.Last) {
		return errCounted
	}
	return nil
}

func reportOf(own hosting, shard storage.Shard) (placement.GroupReport, bool) {
	reports := own.report()
	i := slices.IndexFunc(reports, func(r placement.GroupReport) bool { return r.Shard == shard })
	if i < 0 {
		return placement.GroupReport{}, false
	}
	return reports[i], true
}
