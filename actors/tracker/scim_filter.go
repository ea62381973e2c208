package tracker

import (
	"encoding/json"
	"slices"
	"strings"
)

// maxSCIMTerms limits the conditions of a filter.
const maxSCIMTerms = 10

// scimTerm is one condition of a filter: an attribute equals a value, or one of its
// elements satisfies terms of its own. Attributes are in lower case; true, false and
// numbers are stored as text.
type scimTerm struct {
	attribute, value string
	element          []scimTerm // nil: the attribute is compared with the value
}

// parseSCIMFilter parses the supported part of the filters of RFC 7644, section
// 3.4.2.2: conditions with eq, joined by and. emails[type eq "work"].value eq "x" has
// the same result as emails[type eq "work" and value eq "x"].
func parseSCIMFilter(text string) ([]scimTerm, error) { return parseSCIMTerms(text, false) }

// parseSCIMTerms parses conditions; those within brackets can't have brackets
// themselves.
func parseSCIMTerms(text string, within bool) ([]scimTerm, error) {
	refuse := func(why string) ([]scimTerm, error) {
		return nil, scimRefusal(scimInvalidFilter, "The filter can't be used: "+why)
	}
	var terms []scimTerm
	for rest := strings.TrimSpace(text); ; {
		if len(terms) == maxSCIMTerms {
			return refuse("it has too many conditions.")
		}
		var term scimTerm
		if open := strings.IndexAny(rest, " ["); open > 0 && rest[open] == '[' && !within {
			inner, more, ok := cutSCIMBrackets(rest[open:])
			if !ok {
				return refuse("a bracket is not closed.")
			}
			element, err := parseSCIMTerms(inner, true)
			if err != nil {
				return nil, err
			}
			term, rest = scimTerm{attribute: bareAttribute(rest[:open]), element: element}, more
		}
		more := rest
		if sub, ok := strings.CutPrefix(rest, "."); ok || term.element == nil {
			var attribute, operator, value string
			attribute, more, _ = strings.Cut(sub, " ")
			operator, more, _ = strings.Cut(strings.TrimLeft(more, " "), " ")
			if attribute == "" || operator == "" {
				return refuse(`it is not of the form attribute eq "value".`)
			}
			if !strings.EqualFold(operator, "eq") || strings.ContainsAny(attribute, "()[]") {
				return refuse("only conditions with eq are supported, joined by and.")
			}
			if value, more, ok = cutSCIMValue(strings.TrimLeft(more, " ")); !ok {
				return refuse("a value is not a JSON string, number, true or false.")
			}
			if term.element == nil {
				term = scimTerm{attribute: bareAttribute(attribute), value: value}
			} else {
				term.element = append(term.element, scimTerm{attribute: strings.ToLower(attribute), value: value})
			}
		}
		terms = append(terms, term)
		if rest = strings.TrimLeft(more, " "); rest == "" {
			return terms, nil
		}
		joint, more, _ := strings.Cut(rest, " ")
		if !strings.EqualFold(joint, "and") {
			return refuse("only conditions with eq are supported, joined by and.")
		}
		rest = strings.TrimLeft(more, " ")
	}
}

// cutSCIMBrackets parses the brackets at the beginning of a text; it ignores brackets
// in strings.
func cutSCIMBrackets(text string) (inner, rest string, ok bool) {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return text[1:i], text[i+1:], true
		}
	}
	return "", "", false
}

// cutSCIMValue parses the JSON value at the beginning of a text.
func cutSCIMValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text, " ")
		var literal any
		if json.Unmarshal([]byte(value), &literal) != nil {
			return "", "", false
		}
		switch literal.(type) {
		case bool, float64:
			return value, rest, true
		}
		return "", "", false
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			if json.Unmarshal([]byte(text[:i+1]), &value) != nil || !indexable(value) {
				return "", "", false
			}
			return value, text[i+1:], true
		}
	}
	return "", "", false
}

// scimFilter parses the filter of a list, whose conditions may use the given attributes
// only.
func scimFilter(text string, attributes ...string) ([]scimTerm, error) {
	if text == "" {
		return nil, nil
	}
	terms, err := parseSCIMFilter(text)
	if err != nil {
		return nil, err
	}
	for _, t := range terms {
		if !slices.Contains(attributes, t.attribute) {
			return nil, scimRefusal(scimInvalidFilter, "The filter can't be used: it may name "+strings.Join(attributes, ", ")+".")
		}
		for _, part := range t.element {
			if t.attribute != "emails" || !slices.Contains(scimEmailParts, part.attribute) {
				return nil, scimRefusal(scimInvalidFilter, "The filter can't be used: brackets may follow emails, and name "+strings.Join(scimEmailParts, ", ")+".")
			}
		}
	}
	return terms, nil
}

// scimEmailParts are the sub-attributes of an address that a filter may use.
var scimEmailParts = []string{"type", "value", "primary"}

// scimPath is the target of an operation of a PATCH: an attribute, its elements that
// satisfy the terms, and a sub-attribute.
type scimPath struct {
	attribute string // in lower case
	selects   bool   // has a filter
	terms     []scimTerm
	sub       string // in lower case
	// foreign is set for attributes of a schema that is not supported.
	foreign bool
}

// parseSCIMPath parses a path of RFC 7644, section 3.5.2.
func parseSCIMPath(text string) (p scimPath, err error) {
	refuse := func() (scimPath, error) {
		return p, scimRefusal(scimInvalidPath, "A path can't be read; it is an attribute such as active, name.givenName, or emails[type eq \"work\"].value.")
	}
	for _, urn := range [...]string{scimUserURN, scimGroupURN} {
		if len(text) > len(urn) && text[len(urn)] == ':' && strings.EqualFold(text[:len(urn)], urn) {
			text = text[len(urn)+1:]
		} else if strings.EqualFold(text, urn) {
			return refuse()
		}
	}
	if len(text) > 4 && strings.EqualFold(text[:4], "urn:") {
		return scimPath{attribute: strings.ToLower(text), foreign: true}, nil
	}
	open := strings.IndexByte(text, '[')
	if open < 0 {
		p.attribute, p.sub, _ = strings.Cut(strings.ToLower(text), ".")
		if p.attribute == "" || strings.ContainsAny(text, " ]") || strings.HasSuffix(text, ".") {
			return refuse()
		}
		return p, nil
	}
	end := strings.LastIndexByte(text, ']')
	if open == 0 || end < open {
		return refuse()
	}
	p.attribute, p.selects = strings.ToLower(text[:open]), true
	if p.terms, err = parseSCIMTerms(text[open+1:end], true); err != nil {
		return p, err
	}
	if after := text[end+1:]; after != "" {
		sub, ok := strings.CutPrefix(after, ".")
		if !ok || sub == "" {
			return refuse()
		}
		p.sub = strings.ToLower(sub)
	}
	return p, nil
}
