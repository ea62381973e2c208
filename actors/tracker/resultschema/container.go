package resultschema

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// object checks an object's properties against a rule.
func (c *check) object(r *rule, n *node, collected *faults) bool {
	ok := c.shape(r, n, collected)
	for i := range n.items {
		if !ok && collected.full() {
			return false
		}
		child := &n.items[i]
		known := false
		if of := r.properties[child.name]; of != nil {
			known = true
			ok = c.fits(of, child, collected) && ok
		}
		for j := range r.patterns {
			p := &r.patterns[j]
			if c.matches(p.pattern, child.name) {
				known = true
				ok = c.fits(p.rule, child, collected) && ok
			}
			if c.spent() {
				return false
			}
		}
		if !known && r.additional != nil {
			if r.additional.never {
				ok = collected.add(child, func() string { return "is not a known property" })
			} else {
				ok = c.fits(r.additional, child, collected) && ok
			}
		}
		if r.names != nil && !c.fits(r.names, &node{kind: '"', text: child.name}, nil) {
			ok = collected.add(child, func() string { return "must not have this name, by the schema under propertyNames" })
		}
		if !c.spend(1) {
			return false
		}
	}
	return ok
}

// shape checks the number and the names of the properties.
func (c *check) shape(r *rule, n *node, collected *faults) bool {
	ok := true
	if r.minProperties != nil && len(n.items) < *r.minProperties {
		ok = collected.add(n, func() string { return "must have at least " + count(*r.minProperties, "property") })
	}
	if r.maxProperties != nil && len(n.items) > *r.maxProperties {
		ok = collected.add(n, func() string { return "must have at most " + count(*r.maxProperties, "property") })
	}
	ok = c.present(r.required, n, collected, "") && ok
	for i := range r.dependencies {
		d := &r.dependencies[i]
		if !c.spend(1) {
			return false
		}
		if n.get(d.name) == nil {
			continue
		}
		ok = c.present(d.required, n, collected, d.name) && ok
		if d.rule != nil {
			ok = c.fits(d.rule, n, collected) && ok
		}
	}
	return ok
}

// present checks that properties exist; because is the property that requires them, if
// any.
func (c *check) present(names []string, n *node, collected *faults, because string) bool {
	ok := true
	for _, name := range names {
		if !c.spend(1) {
			return false
		}
		if n.get(name) != nil {
			continue
		}
		missing := &node{parent: n, name: name}
		ok = collected.add(missing, func() string {
			if because != "" {
				return "is required beside " + cut(because, maxPlace)
			}
			return "is required"
		})
		if collected.full() {
			return false
		}
	}
	return ok
}

// array checks an array's items against a rule.
func (c *check) array(r *rule, n *node, collected *faults) bool {
	ok := true
	if r.minItems != nil && len(n.items) < *r.minItems {
		ok = collected.add(n, func() string { return "must have at least " + count(*r.minItems, "item") })
	}
	if r.maxItems != nil && len(n.items) > *r.maxItems {
		ok = collected.add(n, func() string { return "must have at most " + count(*r.maxItems, "item") })
	}
	if r.unique && len(n.items) > 1 {
		if i, j, found := c.duplicate(n); found {
			ok = collected.add(n, func() string { return fmt.Sprintf("must not have equal items, and those at %d and %d are", i, j) })
		}
	}
	if r.items != nil || r.tuple != nil {
		for i := range n.items {
			of := r.items
			if r.tuple != nil {
				if of = r.further; i < len(r.tuple) {
					of = r.tuple[i]
				}
				if of == nil {
					break
				}
			}
			if !c.fits(of, &n.items[i], collected) {
				if ok = false; collected.full() || c.spent() {
					return false
				}
			}
		}
	}
	return c.contained(r, n, collected) && ok
}

func (c *check) contained(r *rule, n *node, collected *faults) bool {
	if r.contains == nil {
		return true
	}
	for i := range n.items {
		if c.fits(r.contains, &n.items[i], nil) {
			return true
		}
		if c.spent() {
			return false
		}
	}
	return collected.add(n, func() string { return "must have an item that fits the schema under contains" })
}

// isMultiple reports whether a number is a multiple of the rule's.
func (c *check) isMultiple(n *node, r *rule) bool {
	if !c.spend(2 * n.arithmetic()) {
		return false
	}
	return new(big.Rat).Quo(n.rat(), r.multiple).IsInt()
}

// showRat formats a number for a message.
func showRat(v *big.Rat) string {
	if v.IsInt() {
		return cut(v.Num().String(), maxDigits)
	}
	if f, _ := v.Float64(); f != 0 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return cut(v.RatString(), maxDigits)
}

// count formats a required number of things. The library replaces numbers beyond 64
// bits by another number.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		noun = stem + "ie"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
