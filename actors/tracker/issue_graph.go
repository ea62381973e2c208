package tracker

import (
	"cmp"
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// IssueGraphIn asks for the issues that block an issue or are blocked by it, up to a
// number of steps away.
type IssueGraphIn struct {
	ID        string `path:"id"`
	Depth     int    `query:"depth" rules:"min=1,max=10" default:"3"`
	Direction string `query:"direction" enum:"up,down,both" default:"both"`
}

// IssueGraph is the answer to GraphOfIssue. The edges are the relations of every type
// between the nodes, in the first form of each pair. Truncated says that there are more
// nodes than are shown.
type IssueGraph struct {
	Nodes     []GraphNode `json:"nodes"`
	Edges     []GraphEdge `json:"edges"`
	Truncated bool        `json:"truncated"`
}

// GraphNode is an issue of a graph.
type GraphNode struct {
	ID         IssueID     `json:"id"`
	Identifier *string     `json:"identifier"`
	Title      string      `json:"title"`
	Status     IssueStatus `json:"status"`
	AssigneeID *string     `json:"assigneeId"`
	Ready      bool        `json:"ready"`
}

// GraphEdge is a relation between two issues of a graph.
type GraphEdge struct {
	Type   RelationType `json:"type"`
	FromID IssueID      `json:"fromId"`
	ToID   IssueID      `json:"toId"`
}

// maxGraphNodes is the number of issues that a graph shows.
const maxGraphNodes = 500

// GraphOfIssue walks along the relations by which issues block each other (Decision 56).
var GraphOfIssue = NewQuery[IssueGraphIn, IssueGraph]("GraphOfIssue", "Get what blocks an issue, and what it blocks", Needs{Read, "issues"}, graphOfIssue, FromSnapshot, TakesATurn)

func graphOfIssue(v *View, in *IssueGraphIn) (Reply, error) {
	id, err := v.seenIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	g := graphWalk{v: v, at: map[storage.ID]int{}, now: At(v.now), out: IssueGraph{Nodes: []GraphNode{}, Edges: []GraphEdge{}}}
	if _, err := g.add(id); err != nil {
		return Reply{}, err
	}
	depth := cmp.Or(in.Depth, 3)
	if in.Direction != "down" {
		err = g.walk(id, inward, depth)
	}
	if err == nil && in.Direction != "up" {
		err = g.walk(id, outward, depth)
	}
	if err == nil {
		err = g.connect()
	}
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &g.out)
}

// graphWalk collects the nodes of a graph.
type graphWalk struct {
	v   *View
	now Timestamp
	ids []storage.ID // of the nodes, in their order
	// at has the positions of nodes; issues that the caller may not see are at hiddenNode.
	at  map[storage.ID]int
	out IssueGraph
}

const hiddenNode = -1

// walk adds the issues up to some steps away in a direction. It does not go through issues
// that the caller may not see.
func (g *graphWalk) walk(start storage.ID, along direction, steps int) error {
	seen := map[storage.ID]bool{start: true}
	for level := []storage.ID{start}; len(level) > 0 && steps > 0; steps-- {
		var next []storage.ID
		for _, id := range level {
			err := g.v.eachNeighbor(id, edgeBlocks, along, func(other storage.ID) (bool, error) {
				if seen[other] {
					return true, nil
				}
				seen[other] = true
				shown, err := g.add(other)
				if shown {
					next = append(next, other)
				}
				return !g.out.Truncated, err
			})
			if err != nil || g.out.Truncated {
				return err
			}
		}
		level = next
	}
	return nil
}

// add adds an issue, and reports whether it is shown.
func (g *graphWalk) add(id storage.ID) (shown bool, err error) {
	if at, known := g.at[id]; known {
		return at != hiddenNode, nil
	}
	g.at[id] = hiddenNode
	_, err = issues.Record(g.v, issueKey(id), func(rec storage.Record) (err error) {
		if shown, err = g.v.canViewIssue(rec); err != nil || !shown {
			return err
		}
		if len(g.ids) == maxGraphNodes {
			g.out.Truncated, shown = true, false
			return nil
		}
		var node GraphNode
		if err := json.Unmarshal(rec.JSON(), &node); err != nil {
			return err
		}
		if node.Ready, err = g.v.isReady(id, rec, g.now); err != nil {
			return err
		}
		g.at[id] = len(g.ids)
		g.ids, g.out.Nodes = append(g.ids, id), append(g.out.Nodes, node)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("read an issue of a graph: %w", err)
	}
	return shown, nil
}

// connect adds the relations between the nodes.
func (g *graphWalk) connect() error {
	for i, id := range g.ids {
		edges, err := g.v.edgesOf(id)
		if err != nil {
			return err
		}
		for _, e := range edges {
			to, known := g.at[e.to]
			if e.from != id || !known || to == hiddenNode {
				continue
			}
			g.out.Edges = append(g.out.Edges, GraphEdge{edgeForms[e.kind][0], g.out.Nodes[i].ID, g.out.Nodes[to].ID})
		}
	}
	slices.SortStableFunc(g.out.Edges, func(a, b GraphEdge) int { return cmp.Compare(a.Type, b.Type) })
	return nil
}
