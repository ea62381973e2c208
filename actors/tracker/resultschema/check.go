package resultschema

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	// maxSteps limits the work of one check; a step takes some tens of nanoseconds.
	maxSteps = 300_000
	// maxFaults limits the faults in a result.
	maxFaults = 20

	// Costs, in steps, of work that is more than one step.
	wholeSteps    = 4  // exact arithmetic with an integer
	fractionSteps = 40 // exact arithmetic with another number
	branchSteps   = 2
	regexSteps    = 20_000
	formatBytes   = 6 // bytes of a text that the check of a format reads in one step
	// matchBytes is the number of bytes that a pattern of one instruction reads in one
	// step.
	matchBytes = 4
)

// Check checks a value, in JSON, against the schema and returns its faults: each has a
// place in the value and the requirement there.
func (s *Schema) Check(raw []byte) []string {
	value, err := parse(raw, maxValues)
	switch {
	case errors.Is(err, errTooMuch):
		return []string{sentence("Can't be checked: "+strings.TrimPrefix(err.Error(), errTooMuch.Error()+": ")) + "."}
	case err != nil:
		return []string{sentence("Is not JSON: "+cut(err.Error(), maxFaultText)) + "."}
	}
	c := &check{left: maxSteps}
	collected := &faults{most: maxFaults}
	fits := c.fits(s.root, value, collected)
	if c.spent() {
		return []string{fmt.Sprintf("Too much work to check: more than %d steps. Report less, or simplify the schema.", maxSteps)}
	}
	if fits {
		return nil
	}
	return collected.texts()
}

// check is the check of one value against one schema.
type check struct {
	left int // remaining steps; negative when they are used up
}

// spend uses steps; it returns false if none are left.
func (c *check) spend(steps int) bool {
	c.left -= steps
	return c.left >= 0
}

func (c *check) spent() bool { return c.left < 0 }

// fits reports whether a value satisfies a rule. If collected is not nil, it looks for
// further faults after the first. The result means nothing once the steps are used up.
func (c *check) fits(r *rule, n *node, collected *faults) bool {
	for r.ref != nil {
		if !c.spend(1) {
			return false
		}
		r = r.ref
	}
	if !c.spend(1) {
		return false
	}
	if r.bare {
		return true
	}
	if r.never {
		return collected.add(n, func() string { return "must not be there" })
	}
	if r.types != 0 && r.types&typeOf(n) == 0 && (r.types&typeInteger == 0 || !c.isInteger(n)) {
		return collected.add(n, func() string { return "must be " + r.types.nouns() + ", not " + typeOf(n).nouns() })
	}
	ok := c.scalar(r, n, collected)
	if !ok && collected.full() {
		return false
	}
	switch n.kind {
	case '{':
		ok = c.object(r, n, collected) && ok
	case '[':
		ok = c.array(r, n, collected) && ok
	}
	if !ok && collected.full() {
		return false
	}
	return c.combined(r, n, collected) && ok
}

func typeOf(n *node) types {
	switch n.kind {
	case 'n':
		return typeNull
	case 't', 'f':
		return typeBoolean
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	}
	return typeNumber
}

// scalar checks the keywords that don't concern items or properties.
func (c *check) scalar(r *rule, n *node, collected *faults) bool {
	ok := true
	if r.constant != nil && !c.has(r.constant, n) {
		ok = collected.add(n, func() string { return "must be " + r.constant.list[0].show() })
	}
	if r.enum != nil && !c.has(r.enum, n) {
		ok = collected.add(n, func() string { return "must be one of " + r.enum.show() })
	}
	switch n.kind {
	case '"':
		return c.text(r, n, collected) && ok
	case '0':
		return c.number(r, n, collected) && ok
	}
	return ok
}

func (c *check) text(r *rule, n *node, collected *faults) bool {
	ok := true
	if r.minLength != nil || r.maxLength != nil {
		if !c.spend(len(n.text) / hashStep) {
			return false
		}
		length := utf8.RuneCountInString(n.text)
		if r.minLength != nil && length < *r.minLength {
			ok = collected.add(n, func() string { return fmt.Sprintf("must have at least %s", count(*r.minLength, "character")) })
		}
		if r.maxLength != nil && length > *r.maxLength {
			ok = collected.add(n, func() string { return fmt.Sprintf("must have at most %s", count(*r.maxLength, "character")) })
		}
	}
	if r.pattern != nil && !c.matches(r.pattern, n.text) {
		ok = collected.add(n, func() string { return "must match the pattern " + r.pattern.String() })
	}
	if r.format != nil {
		steps := 4 + len(n.text)/formatBytes
		if r.format.Name == "regex" {
			steps = regexSteps
		}
		if !c.spend(steps) {
			return false
		}
		if r.format.Validate(n.text) != nil {
			ok = collected.add(n, func() string { return "must be of the format " + r.format.Name })
		}
	}
	return ok
}

func (c *check) matches(p *pattern, text string) bool {
	return c.spend(1+(len(text)+4)*p.size/matchBytes) && p.MatchString(text)
}

func (c *check) number(r *rule, n *node, collected *faults) bool {
	if r.minimum == nil && r.maximum == nil && r.above == nil && r.below == nil && r.multiple == nil {
		return true
	}
	if !c.spend(n.arithmetic()) {
		return false
	}
	ok, v := true, n.rat()
	if r.minimum != nil && v.Cmp(r.minimum) < 0 {
		ok = collected.add(n, func() string { return "must be at least " + showRat(r.minimum) })
	}
	if r.above != nil && v.Cmp(r.above) <= 0 {
		ok = collected.add(n, func() string { return "must be greater than " + showRat(r.above) })
	}
	if r.maximum != nil && v.Cmp(r.maximum) > 0 {
		ok = collected.add(n, func() string { return "must be at most " + showRat(r.maximum) })
	}
	if r.below != nil && v.Cmp(r.below) >= 0 {
		ok = collected.add(n, func() string { return "must be less than " + showRat(r.below) })
	}
	if r.multiple != nil && !c.isMultiple(n, r) {
		ok = collected.add(n, func() string { return "must be a multiple of " + showRat(r.multiple) })
	}
	return ok
}

// combined checks the keywords that apply further schemas to the same value.
func (c *check) combined(r *rule, n *node, collected *faults) bool {
	ok := true
	for _, of := range r.allOf {
		if !c.fits(of, n, collected) {
			if ok = false; collected.full() {
				return false
			}
		}
	}
	if len(r.anyOf) > 0 && !c.any(r, n, collected) {
		ok = false
	}
	if len(r.oneOf) > 0 && !c.one(r, n, collected) {
		ok = false
	}
	if r.not != nil && c.fits(r.not, n, nil) {
		ok = collected.add(n, func() string { return "must not be as the schema under not says" })
	}
	if r.when != nil {
		then := r.otherwise
		if c.fits(r.when, n, nil) {
			then = r.then
		}
		if then != nil && !c.fits(then, n, collected) {
			ok = false
		}
	}
	return ok
}

func (c *check) any(r *rule, n *node, collected *faults) bool {
	var each []*faults
	for _, of := range r.anyOf {
		one := collected.branch()
		if !c.spend(branchSteps) || c.fits(of, n, one) {
			return true
		}
		each = append(each, one)
		if c.spent() {
			return false
		}
	}
	return collected.addAll(n, func() string { return branches("at least one", n, each) })
}

func (c *check) one(r *rule, n *node, collected *faults) bool {
	var each []*faults
	first := -1
	for i, of := range r.oneOf {
		one := collected.branch()
		if first >= 0 {
			one = nil
		}
		if c.spend(branchSteps) && c.fits(of, n, one) {
			if first >= 0 {
				return collected.add(n, func() string {
					return fmt.Sprintf("must fit exactly one of the schemas under oneOf, and fits those at %d and %d", first, i)
				})
			}
			first = i
		}
		each = append(each, one)
		if c.spent() {
			return false
		}
	}
	return first >= 0 || collected.addAll(n, func() string { return branches("exactly one", n, each) })
}
