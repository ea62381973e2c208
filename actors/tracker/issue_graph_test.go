package tracker

import (
	"fmt"
	"slices"
	"testing"
)

// graph describes a graph as a caller sees it: the nodes, with ! for those that are ready,
// and the number of edges.
func (w *issueFixture) graph(who *Caller, id IssueID, depth int, direction string) (nodes []string, g IssueGraph) {
	w.Helper()
	reply, err := w.ask(who, GraphOfIssue, &IssueGraphIn{ID: string(id), Depth: depth, Direction: direction})
	if err != nil {
		w.Fatal(err)
	}
	g = decode[IssueGraph](w, reply.Body)
	for _, n := range g.Nodes {
		if n.Ready {
			n.Title += "!"
		}
		nodes = append(nodes, n.Title)
	}
	return nodes, g
}

func TestGraphOfIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	ids := w.titled("A", "B", "C", "D", "E")
	hidden := w.create(CreateIssueIn{Title: "Hidden", IssueFields: IssueFields{TeamID: Some(w.secret)}}).ID
	for i := range 3 { // A blocks B blocks C blocks D
		w.relate(ids[i], RelationBlocks, ids[i+1])
	}
	w.relate(ids[1], RelationBlocks, hidden)
	w.relate(hidden, RelationBlocks, ids[4])
	w.relate(ids[0], RelationRelates, ids[2])
	w.relate(ids[0], RelationLedTo, ids[4]) // E is no node by this
	for _, row := range []struct {
		who       *Caller
		at        IssueID
		depth     int
		direction string
		want      []string
		edges     int
	}{
		{&w.ann, ids[1], 1, "both", []string{"B", "A!", "C", "Hidden"}, 4},
		{&w.gus, ids[1], 1, "both", []string{"B", "A!", "C"}, 3},
		{&w.ann, ids[1], 3, "down", []string{"B", "C", "Hidden", "D", "E"}, 4},
		{&w.gus, ids[1], 3, "down", []string{"B", "C", "D"}, 2},
		{&w.gus, ids[3], 2, "up", []string{"D", "C", "B"}, 2},
		{&w.gus, ids[4], 10, "up", []string{"E"}, 0},
		{&w.ann, ids[4], 10, "up", []string{"E", "Hidden", "B", "A!"}, 4},
	} {
		got, g := w.graph(row.who, row.at, row.depth, row.direction)
		if !slices.Equal(got, row.want) || len(g.Edges) != row.edges || g.Truncated {
			t.Errorf("%+v: %q with %d edges", row, got, len(g.Edges))
		}
		for _, e := range g.Edges {
			if e.Type != RelationBlocks && e.Type != RelationRelates && e.Type != RelationDiscoveredFrom {
				t.Errorf("an edge has the type %s", e.Type)
			}
		}
	}
}

func TestGraphOfIssue_HasALimit(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	top := w.titled("Top")[0]
	for i := range 4 {
		middle := w.titled("Middle")[0]
		w.relate(top, RelationBlocks, middle)
		for j := range 130 {
			w.relate(middle, RelationBlocks, w.titled(fmt.Sprint(i, j))[0])
		}
	}
	if nodes, g := w.graph(&w.ann, top, 2, "down"); len(nodes) != maxGraphNodes || !g.Truncated {
		t.Errorf("%d nodes, truncated %t", len(nodes), g.Truncated)
	}
}
