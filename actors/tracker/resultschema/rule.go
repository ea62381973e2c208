package resultschema

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rule is a schema in the form in which it is checked.
type rule struct {
	never  bool // the schema false
	ref    *rule
	types  types
	format *jsonschema.Format

	constant *valueSet
	enum     *valueSet

	allOf, anyOf, oneOf []*rule
	not, when           *rule // when is the keyword if
	then, otherwise     *rule

	minimum, maximum, above, below, multiple *big.Rat

	minLength, maxLength *int
	pattern              *pattern

	minItems, maxItems *int
	unique             bool
	contains, items    *rule
	tuple              []*rule
	further            *rule // for items after the tuple

	minProperties, maxProperties *int
	required                     []string
	properties                   map[string]*rule
	patterns                     []patternRule
	additional                   *rule
	names                        *rule
	dependencies                 []dependency

	// bare is set if the rule accepts every value.
	bare bool
}

type patternRule struct {
	*pattern
	rule *rule
}

// dependency is the requirement of a property's presence: other properties, or a rule.
type dependency struct {
	name     string
	required []string
	rule     *rule
}

// types is a set of JSON's types, with numbers and integers apart.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeObject
	typeArray
	typeString
	typeNumber
	typeInteger
)

var typeNames = []struct {
	types
	name, noun string
}{
	{typeNull, "null", "null"}, {typeBoolean, "boolean", "a boolean"}, {typeObject, "object", "an object"}, {typeArray, "array", "an array"},
	{typeString, "string", "a string"}, {typeNumber, "number", "a number"}, {typeInteger, "integer", "an integer"},
}

var errForeign = errors.New("refers to something outside of it: a schema can only refer to itself")

// maxBelow limits the schemas that apply to one value through each other, by allOf,
// $ref and the like: the depth of the check's recursion within one value.
const maxBelow = 64

// ruler converts the library's compiled schemas into rules.
type ruler struct {
	made map[*jsonschema.Schema]*rule
	// reach is the depth of a rule's schemas for the same value; -1 while it is being
	// computed.
	reach map[*rule]int
}

func newRules(s *jsonschema.Schema) (*rule, error) {
	r := ruler{made: map[*jsonschema.Schema]*rule{}, reach: map[*rule]int{}}
	root, err := r.rule(s)
	if err != nil {
		return nil, err
	}
	for _, made := range r.made {
		if _, err := r.depth(made); err != nil {
			return nil, err
		}
	}
	return root, nil
}

var always = &rule{bare: true}

// rule returns the rule of a schema. The recursion is limited by the size of the
// schema.
func (r *ruler) rule(s *jsonschema.Schema) (*rule, error) {
	if s == nil {
		return nil, nil
	}
	if made := r.made[s]; made != nil {
		return made, nil
	}
	if !strings.HasPrefix(s.Location, home+"#") {
		return nil, errForeign
	}
	if s.DraftVersion != 7 {
		return nil, errors.New("has a part of another dialect than draft-07")
	}
	n := &rule{}
	r.made[s] = n
	if s.Bool != nil {
		n.never, n.bare = !*s.Bool, *s.Bool
		return n, nil
	}
	var err error
	if s.Ref != nil { // other keywords beside $ref are ignored
		n.ref, err = r.rule(s.Ref)
		return n, err
	}
	n.scalars(s)
	if err := r.applicators(n, s); err != nil {
		return nil, err
	}
	return n, r.containers(n, s)
}

// scalars converts the keywords without subschemas.
func (n *rule) scalars(s *jsonschema.Schema) {
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			for _, t := range typeNames {
				if t.name == name {
					n.types |= t.types
				}
			}
		}
	}
	if s.Const != nil {
		n.constant = newValueSet([]any{*s.Const})
	}
	if s.Enum != nil {
		n.enum = newValueSet(s.Enum.Values)
	}
	n.format = formatOf(s)
	n.minimum, n.maximum, n.above, n.below, n.multiple = s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf
	n.minLength, n.maxLength = s.MinLength, s.MaxLength
	if s.Pattern != nil {
		n.pattern = s.Pattern.(*pattern)
	}
	n.minItems, n.maxItems, n.unique = s.MinItems, s.MaxItems, s.UniqueItems
	n.minProperties, n.maxProperties, n.required = s.MinProperties, s.MaxProperties, s.Required
}

// applicators converts the subschemas for the same value.
func (r *ruler) applicators(n *rule, s *jsonschema.Schema) (err error) {
	for _, list := range []struct {
		to   *[]*rule
		from []*jsonschema.Schema
	}{{&n.allOf, s.AllOf}, {&n.anyOf, s.AnyOf}, {&n.oneOf, s.OneOf}} {
		if *list.to, err = r.list(list.from); err != nil {
			return err
		}
	}
	pairs := []pair{{&n.not, s.Not}}
	if s.Then != nil || s.Else != nil {
		pairs = append(pairs, pair{&n.when, s.If}, pair{&n.then, s.Then}, pair{&n.otherwise, s.Else})
	}
	if err := r.each(pairs...); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		d := dependency{name: name}
		switch of := s.Dependencies[name].(type) {
		case []string:
			d.required = of
		case *jsonschema.Schema:
			if d.rule, err = r.rule(of); err != nil {
				return err
			}
		}
		n.dependencies = append(n.dependencies, d)
	}
	return nil
}

// containers converts the subschemas for items and properties.
func (r *ruler) containers(n *rule, s *jsonschema.Schema) (err error) {
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		n.items, err = r.rule(items)
	case []*jsonschema.Schema:
		if n.tuple, err = r.list(items); err == nil {
			n.further, err = r.either(s.AdditionalItems)
		}
	}
	if err != nil {
		return err
	}
	if n.additional, err = r.either(s.AdditionalProperties); err != nil {
		return err
	}
	if err := r.each(pair{&n.contains, s.Contains}, pair{&n.names, s.PropertyNames}); err != nil {
		return err
	}
	if len(s.Properties) > 0 {
		n.properties = make(map[string]*rule, len(s.Properties))
	}
	for name, of := range s.Properties {
		if n.properties[name], err = r.rule(of); err != nil {
			return err
		}
	}
	for re, of := range s.PatternProperties {
		p := patternRule{pattern: re.(*pattern)}
		if p.rule, err = r.rule(of); err != nil {
			return err
		}
		n.patterns = append(n.patterns, p)
	}
	slices.SortFunc(n.patterns, func(a, b patternRule) int { return strings.Compare(a.String(), b.String()) })
	return nil
}

// pair is a schema and the destination of its rule.
type pair struct {
	to   **rule
	from *jsonschema.Schema
}

func (r *ruler) each(pairs ...pair) (err error) {
	for _, p := range pairs {
		if *p.to, err = r.rule(p.from); err != nil {
			return err
		}
	}
	return nil
}

func (r *ruler) list(from []*jsonschema.Schema) (list []*rule, err error) {
	for _, s := range from {
		n, err := r.rule(s)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// either returns the rule of a keyword that the library may represent as a boolean.
func (r *ruler) either(of any) (*rule, error) {
	switch of := of.(type) {
	case bool:
		if of {
			return always, nil
		}
		return &rule{never: true}, nil
	case *jsonschema.Schema:
		return r.rule(of)
	}
	return nil, nil
}

// same returns the rules that apply to the same value.
func (n *rule) same() []*rule {
	list := slices.Concat([]*rule{n.ref, n.not, n.when, n.then, n.otherwise}, n.allOf, n.anyOf, n.oneOf)
	for _, d := range n.dependencies {
		list = append(list, d.rule)
	}
	return slices.DeleteFunc(list, func(of *rule) bool { return of == nil })
}

// depth returns the depth of a rule's schemas for the same value, or an error if the
// rule refers to itself for the same value.
func (r *ruler) depth(n *rule) (int, error) {
	if known, ok := r.reach[n]; ok {
		if known < 0 {
			return 0, errors.New("refers to itself without going into the value: the check would never end")
		}
		return known, nil
	}
	r.reach[n] = -1
	deepest := 0
	for _, of := range n.same() {
		d, err := r.depth(of)
		if err != nil {
			return 0, err
		}
		deepest = max(deepest, d+1)
	}
	if deepest > maxBelow {
		return 0, fmt.Errorf("holds one value against more than %d schemas one below another", maxBelow)
	}
	r.reach[n] = deepest
	return deepest, nil
}

// formatOf returns the format of a schema. It replaces the library's check of regular
// expressions, which would count against the patterns of the schema, and leaves out
// that of URI templates, which refuses some valid ones.
func formatOf(s *jsonschema.Schema) *jsonschema.Format {
	switch {
	case s.Format == nil || s.Format.Name == "uri-template":
		return nil
	case s.Format.Name == regexFormat.Name:
		return &regexFormat
	}
	return s.Format
}
