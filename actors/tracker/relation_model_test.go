package tracker

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// relationModel is a simple model of which issues block and duplicate each other.
type relationModel struct {
	*issueFixture
	ids   []IssueID
	edges map[modelEdge]bool
}

type modelEdge struct {
	kind     edgeKind
	from, to int
}

// leads reports whether edges of a kind lead from an issue to another one.
func (m *relationModel) leads(kind edgeKind, from, to int) bool {
	seen, queue := map[int]bool{from: true}, []int{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for e := range m.edges {
			if e.kind == kind && e.from == at && !seen[e.to] {
				seen[e.to] = true
				queue = append(queue, e.to)
			}
		}
	}
	return seen[to]
}

// draw returns a relation, and the edge that it is.
func (m *relationModel) draw(t *rapid.T) (*RelationIn, modelEdge) {
	at := rapid.IntRange(0, len(m.ids)-1)
	from, to := at.Draw(t, "from"), at.Draw(t, "to")
	e := modelEdge{rapid.SampledFrom([]edgeKind{edgeBlocks, edgeBlocks, edgeDuplicates}).Draw(t, "kind"), from, to}
	if rapid.Bool().Draw(t, "from the other end?") {
		return relation(m.ids[to], edgeForms[e.kind][1], m.ids[from]), e
	}
	return relation(m.ids[from], edgeForms[e.kind][0], m.ids[to]), e
}

func (m *relationModel) relate(t *rapid.T) {
	in, e := m.draw(t)
	if e.from == e.to {
		return
	}
	_, _, err := m.try(&m.ann, PutRelation, in)
	if m.edges[e] || !m.leads(e.kind, e.to, e.from) {
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		m.edges[e] = true
		return
	}
	wantCode(t, err, CodeConflict)
	var refused *Error
	errors.As(err, &refused)
	m.checkRing(t, e, refused.Details.(RingDetails).Path)
}

// checkRing checks that a path is the ring that an edge would close, from its beginning on.
func (m *relationModel) checkRing(t *rapid.T, e modelEdge, path []string) {
	var ring []int
	for _, name := range path {
		ring = append(ring, slices.IndexFunc(m.ids, func(id IssueID) bool { return *m.get(id).Identifier == name }))
	}
	if len(ring) < 2 || ring[0] != e.from || ring[1] != e.to {
		t.Fatalf("%+v: the ring is %v", e, ring)
	}
	for i := 1; i < len(ring); i++ {
		if !m.edges[modelEdge{e.kind, ring[i], ring[(i+1)%len(ring)]}] {
			t.Fatalf("%+v: there is no edge behind issue %d of the ring %v", e, i, ring)
		}
	}
}

func (m *relationModel) unrelate(t *rapid.T) {
	in, e := m.draw(t)
	if !m.edges[e] {
		return
	}
	m.run(&m.ann, DeleteRelation, in)
	delete(m.edges, e)
}

func (m *relationModel) move(t *rapid.T) {
	id := rapid.SampledFrom(m.ids).Draw(t, "issue")
	m.patch(id, setStatus(rapid.SampledFrom([]IssueStatus{StatusTodo, StatusDone}).Draw(t, "status")))
}

// look compares which issues are blocked and ready.
func (m *relationModel) look(t *rapid.T) {
	v := storage.NewView(m.db, 1, m.workspace)
	for i, id := range m.ids {
		want := false
		for e := range m.edges {
			want = want || e.kind == edgeBlocks && e.to == i && !m.get(m.ids[e.from]).Status.Closed()
		}
		raw, _ := storage.ParseID(id)
		if got, err := v.Has(blockedTable, issueKey(raw)); err != nil || got != want {
			t.Fatalf("issue %d is blocked: %t, want %t, %v", i, got, want, err)
		}
	}
}

// No sequence of relations, from either end, makes a ring, and every ring is told.
func TestRelations_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		m := &relationModel{issueFixture: w, ids: w.titled("A", "B", "C", "D", "E", "F"), edges: map[modelEdge]bool{}}
		t.Repeat(map[string]func(*rapid.T){"relate": m.relate, "relate more": m.relate, "unrelate": m.unrelate, "move": m.move, "look": m.look})
		m.look(t)
		w.verify()
	})
}
