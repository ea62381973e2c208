package resultschema

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// object checks an object's properties against a rule.
func (c *check) object(r *rule, n *node, told *faults) bool {
	ok := c.shape(r, n, told)
	for i := range n.items {
		if !ok && told.full() {
			return false
		}
		child := &n.items[i]
		known := false
		if of := r.properties[child.name]; of != nil {
			known = true
			ok = c.fits(of, child, told) && ok
		}
		for j := range r.patterns {
			p := &r.patterns[j]
			if c.matches(p.pattern, child.name) {
				known = true
				ok = c.fits(p.rule, child, told) && ok
			}
			if c.spent() {
				return false
			}
		}
		if !known && r.additional != nil {
			if r.additional.never {
				ok = told.add(child, func() string { return "is not a known property" })
			} else {
				ok = c.fits(r.additional, child, told) && ok
			}
		}
		if r.names != nil && !c.fits(r.names, &node{kind: '"', text: child.name}, nil) {
			ok = told.add(child, func() string { return "must not have this name, by the schema under propertyNames" })
		}
		if !c.spend(1) {
			return false
		}
	}
	return ok
}

// shape checks the number and the names of the properties.
func (c *check) shape(r *rule, n *node, told *faults) bool {
	ok := true
	if r.minProperties != nil && len(n.items) < *r.minProperties {
		ok = told.add(n, func() string { return "must have at least " + count(*r.minProperties, "property") })
	}
	if r.maxProperties != nil && len(n.items) > *r.maxProperties {
		ok = told.add(n, func() string { return "must have at most " + count(*r.maxProperties, "property") })
	}
	ok = c.present(r.required, n, told, "") && ok
	for i := range r.dependencies {
		d := &r.dependencies[i]
		if !c.spend(1) {
			return false
		}
		if n.get(d.name) == nil {
			continue
		}
		ok = c.present(d.required, n, told, d.name) && ok
		if d.rule != nil {
			ok = c.fits(d.rule, n, told) && ok
		}
	}
	return ok
}

// present checks that properties exist; because is the property that requires them, if
// any.
func (c *check) present(names []string, n *node, told *faults, because string) bool {
	ok := true
	for _, name := range names {
		if !c.spend(1) {
			return false
		}
		if n.get(name) != nil {
			continue
		}
		missing := &node{parent: n, name: name}
		ok = told.add(missing, func() string {
			if because != "" {
				return "is required beside " + cut(because, maxPlace)
			}
			return "is required"
		})
		if told.full() {
			return false
		}
	}
	return ok
}

// array checks an array's items against a rule.
func (c *check) array(r *rule, n *node, told *faults) bool {
	ok := true
	if r.minItems != nil && len(n.items) < *r.minItems {
		ok = told.add(n, func() string { return "must have at least " + count(*r.minItems, "item") })
	}
	if r.maxItems != nil && len(n.items) > *r.maxItems {
		ok = told.add(n, func() string { return "must have at most " + count(*r.maxItems, "item") })
	}
	if r.unique && len(n.items) > 1 {
		if i, j, found := c.duplicate(n); found {
			ok = told.add(n, func() string { return fmt.Sprintf("must not have equal items, and those at %d and %d are", i, j) })
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
			if !c.fits(of, &n.items[i], told) {
				if ok = false; told.full() || c.spent() {
					return false
				}
			}
		}
	}
	return c.contained(r, n, told) && ok
}

func (c *check) contained(r *rule, n *node, told *faults) bool {
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
	return told.add(n, func() string { return "must have an item that fits the schema under contains" })
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
