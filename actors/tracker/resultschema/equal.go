package resultschema

import (
	"encoding/json"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// seed makes the hashes of values unpredictable.
var seed = maphash.MakeSeed()

// hashStep is the number of bytes that are hashed or compared in one step.
const hashStep = 64

// hash writes a value to h, the same for equal values, and counts its steps.
func (c *check) hash(h *maphash.Hash, n *node) {
	if !c.spend(2 + len(n.text)/hashStep) {
		return
	}
	_ = h.WriteByte(byte(n.kind))
	switch n.kind {
	case '"':
		writeText(h, n.text)
	case '0':
		writeText(h, c.canonical(n))
	case '[':
		writeText(h, strconv.Itoa(len(n.items)))
		for i := range n.items {
			c.hash(h, &n.items[i])
		}
	case '{':
		// The sum of the properties' hashes does not depend on their order.
		var sum uint64
		for i := range n.items {
			var one maphash.Hash
			one.SetSeed(seed)
			writeText(&one, n.items[i].name)
			c.hash(&one, &n.items[i])
			sum += one.Sum64()
			if c.spent() {
				return
			}
		}
		writeText(h, strconv.FormatUint(sum, 16))
	}
}

func writeText(h *maphash.Hash, text string) {
	_, _ = h.WriteString(strconv.Itoa(len(text)))
	_ = h.WriteByte(':')
	_, _ = h.WriteString(text)
}

// canonical returns the same text for equal numbers.
func (c *check) canonical(n *node) string {
	if n.whole() {
		if n.text == "-0" {
			return "0"
		}
		return n.text
	}
	c.spend(2 * fractionSteps) // the digits are written out
	return strings.TrimSuffix(n.rat().String(), "/1")
}

// equal compares two values, and counts its steps; it returns false once they are used
// up.
func (c *check) equal(a, b *node) bool {
	if !c.spend(1+min(len(a.text), len(b.text))/hashStep) || a.kind != b.kind || len(a.items) != len(b.items) {
		return false
	}
	switch a.kind {
	case '"':
		return a.text == b.text
	case '0':
		return c.canonical(a) == c.canonical(b)
	case '[':
		for i := range a.items {
			if !c.equal(&a.items[i], &b.items[i]) {
				return false
			}
		}
	case '{':
		for i := range a.items {
			other := b.get(a.items[i].name)
			if other == nil || !c.equal(&a.items[i], other) {
				return false
			}
		}
	}
	return true
}

func (c *check) sum(n *node) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	c.hash(&h, n)
	return h.Sum64()
}

// valueSet is a set of values.
type valueSet struct {
	list   []node
	byHash map[uint64][]int
}

func newValueSet(values []any) *valueSet {
	s := &valueSet{list: make([]node, len(values)), byHash: make(map[uint64][]int, len(values))}
	free := &check{left: math.MaxInt} // the values of a schema are few
	for i, v := range values {
		s.list[i] = fromAny(v)
		h := free.sum(&s.list[i])
		s.byHash[h] = append(s.byHash[h], i)
	}
	return s
}

// has reports whether a value is in the set.
func (c *check) has(s *valueSet, n *node) bool {
	if (n.kind == '[' || n.kind == '{') && !slices.ContainsFunc(s.list, func(of node) bool {
		return of.kind == n.kind && len(of.items) == len(n.items)
	}) {
		c.spend(len(s.list))
		return false // no value has its size, so nothing is hashed
	}
	for _, i := range s.byHash[c.sum(n)] {
		if c.equal(&s.list[i], n) {
			return true
		}
	}
	return false
}

// duplicate returns the positions of two equal items.
func (c *check) duplicate(n *node) (first, second int, found bool) {
	seen := make(map[uint64][]int, len(n.items))
	for i := range n.items {
		h := c.sum(&n.items[i])
		for _, j := range seen[h] {
			if c.equal(&n.items[j], &n.items[i]) {
				return j, i, true
			}
		}
		if c.spent() {
			return 0, 0, false
		}
		seen[h] = append(seen[h], i)
	}
	return 0, 0, false
}

// fromAny converts a value from the library's form.
func fromAny(v any) node {
	switch v := v.(type) {
	case bool:
		if v {
			return node{kind: 't'}
		}
		return node{kind: 'f'}
	case string:
		return node{kind: '"', text: v}
	case json.Number:
		return node{kind: '0', text: v.String()}
	case []any:
		n := node{kind: '[', items: make([]node, len(v))}
		for i := range v {
			n.items[i] = fromAny(v[i])
		}
		return n
	case map[string]any:
		n := node{kind: '{', byName: make(map[string]*node, len(v)), items: make([]node, 0, len(v))}
		for name, of := range v {
			n.items = append(n.items, fromAny(of))
			item := &n.items[len(n.items)-1]
			item.name = name
			n.byName[name] = item
		}
		return n
	}
	return node{kind: jsontext.Kind('n')}
}
