package tracker

import (
	"fmt"
	"slices"
)

// noItem stands for the absence of an item.
const noItem = -1

// bulkPlan is what the refs of a bulk creation stand for.
type bulkPlan struct {
	parents []int   // the item of each item's parentRef, or noItem
	others  [][]int // the items of each item's relations, or noItem for the id of an issue
	order   []int   // the items, each one after its parent
}

// planBulk resolves the refs of the items. It notes unknown and repeated ones, and rings.
func planBulk(items []BulkItem, faults *Faults) *bulkPlan {
	p := &bulkPlan{parents: make([]int, len(items)), others: make([][]int, len(items))}
	refs, external := make(map[string]int, len(items)), make(map[string]int, len(items))
	once := func(known map[string]int, i int, given *Opt[string], field string) {
		text := given.Ptr()
		if text == nil {
			return
		}
		if first, again := known[*text]; again {
			faults.Add(fmt.Sprintf("items[%d].%s", i, field), fmt.Sprintf("items[%d] has the same %s.", first, field))
			return
		}
		known[*text] = i
	}
	for i := range items {
		once(refs, i, &items[i].Ref, "ref")
		once(external, i, &items[i].ExternalRef, "externalRef")
	}
	for i := range items {
		p.parents[i] = parentItem(refs, i, &items[i], faults)
		p.others[i] = make([]int, len(items[i].Relations))
		for j := range items[i].Relations {
			p.others[i][j] = relatedItem(refs, i, j, &items[i].Relations[j], faults)
		}
	}
	p.sort(faults)
	p.rings(items, faults)
	return p
}

const unknownRef = "No item of the request has this ref."

func parentItem(refs map[string]int, i int, item *BulkItem, faults *Faults) int {
	ref := item.ParentRef.Ptr()
	if ref == nil {
		return noItem
	}
	at := fmt.Sprintf("items[%d].parentRef", i)
	if item.ParentID.Ptr() != nil {
		faults.Add(at, "Must not be given together with parentId.")
		return noItem
	}
	parent, known := refs[*ref]
	switch {
	case !known:
		faults.Add(at, unknownRef)
		return noItem
	case parent == i:
		faults.Add(at, "An issue can't be its own parent.")
		return noItem
	}
	return parent
}

func relatedItem(refs map[string]int, i, j int, r *BulkRelation, faults *Faults) int {
	at := bulkRelationPath(i, j)
	ref, id := r.Ref.Ptr(), r.IssueID.Ptr()
	switch {
	case faults.Has(at), faults.Has(at + ".ref"), faults.Has(at + ".issueId"):
		return noItem
	case ref != nil && id != nil:
		faults.Add(at+".issueId", "Must not be given together with ref.")
		return noItem
	case id != nil:
		return noItem
	case ref == nil:
		faults.Add(at+".ref", "Is required, unless there is an issueId.")
		return noItem
	}
	other, known := refs[*ref]
	switch {
	case !known:
		faults.Add(at+".ref", unknownRef)
		return noItem
	case other == i:
		faults.Add(at+".ref", relatedToItself)
		return noItem
	}
	return other
}

// sort puts every item behind its parent, and otherwise in the order of the request.
func (p *bulkPlan) sort(faults *Faults) {
	const unseen, above, done = 0, 1, 2
	state := make([]byte, len(p.parents))
	for i := range p.parents {
		var chain []int
		at := i
		for ; at != noItem && state[at] == unseen; at = p.parents[at] {
			state[at] = above
			chain = append(chain, at)
		}
		if at != noItem && state[at] == above {
			faults.Add(fmt.Sprintf("items[%d].parentRef", chain[len(chain)-1]), "Makes a loop: the issue would be among its own parents.")
		}
		for _, item := range slices.Backward(chain) {
			state[item] = done
			p.order = append(p.order, item)
		}
	}
}

// rings notes the relations between items that close a ring.
func (p *bulkPlan) rings(items []BulkItem, faults *Faults) {
	for _, kind := range [...]edgeKind{edgeBlocks, edgeDuplicates} {
		ways := make([][]bulkEdge, len(items))
		for i := range items {
			for j, other := range p.others[i] {
				if other == noItem {
					continue
				}
				switch items[i].Relations[j].Type {
				case edgeForms[kind][0]:
					ways[i] = append(ways[i], bulkEdge{other, i, j})
				case edgeForms[kind][1]:
					ways[other] = append(ways[other], bulkEdge{i, i, j})
				}
			}
		}
		r := bulkRings{kind: kind, ways: ways, state: make([]byte, len(items)), faults: faults}
		for i := range items {
			r.walk(i)
		}
	}
}

// bulkEdge is an edge to an item, by the relation that it comes from.
type bulkEdge struct{ to, item, relation int }

// bulkRings is a walk along the edges of one kind, depth first.
type bulkRings struct {
	kind   edgeKind
	ways   [][]bulkEdge
	state  []byte // of each item: not seen, on the way to the present one, or done
	faults *Faults
}

func (r *bulkRings) walk(i int) {
	const unseen, above, done = 0, 1, 2
	if r.state[i] != unseen {
		return
	}
	r.state[i] = above
	for _, e := range r.ways[i] {
		if r.state[e.to] == above {
			r.faults.Add(bulkRelationPath(e.item, e.relation), r.kind.ringFault())
			continue
		}
		r.walk(e.to)
	}
	r.state[i] = done
}
