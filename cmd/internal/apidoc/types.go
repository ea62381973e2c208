package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// typeOf says in words what a value may be.
func typeOf(s *schema) string {
	text := bareType(s)
	if slices.Contains(s.Type, "null") && len(s.Type) > 1 {
		text += ", or null"
	}
	if s.Default != nil {
		text += fmt.Sprintf("; %s if absent", literal(s.Default))
	}
	return text
}

func bareType(s *schema) string {
	switch {
	case s.Ref != "":
		return fmt.Sprintf("[%s](#%s)", s.name(), anchor(s.name()))
	case s.Const != nil:
		return literal(s.Const)
	case len(s.Enum) > 0:
		return oneOf(s.Enum)
	case len(s.OneOf) > 0:
		return join(s.OneOf, ", or ")
	case len(s.AllOf) > 0:
		return join(s.AllOf, " with ")
	case len(s.Type) == 0:
		return "any JSON value"
	}
	var kinds []string
	for _, name := range s.Type {
		if name != "null" {
			kinds = append(kinds, ofType(s, name))
		}
	}
	if len(kinds) == 0 {
		return "null"
	}
	return strings.Join(kinds, " or ")
}

func ofType(s *schema, name string) string {
	switch name {
	case "string":
		return text(s) + limits(s.MinLength, s.MaxLength, "character", "characters")
	case "array":
		size := strings.TrimPrefix(limits(s.MinItems, s.MaxItems, "item", "items"), ", ")
		if size == "" {
			return "list of " + typeOf(s.Items)
		}
		return "list of " + size + ", each " + typeOf(s.Items)
	case "object":
		values := new(schema)
		if len(s.Properties) == 0 && json.Unmarshal(s.AdditionalProperties, values) == nil && len(values.Type) > 0 {
			return "object with values of " + typeOf(values) + limits(s.MinProperties, s.MaxProperties, "property", "properties")
		}
		return "object"
	case "integer", "number":
		return name + between(s.Minimum, s.Maximum)
	}
	return name
}

// longestPattern is the length of regular expressions that a reader can take in.
const longestPattern = 100

func text(s *schema) string {
	switch s.Format {
	case "date-time":
		return "time (RFC 3339)"
	case "uri":
		return "URL"
	case "":
	default:
		return "text (" + s.Format + ")"
	}
	if len(s.Pattern) > longestPattern {
		return "text in a form that `/openapi.json` gives"
	}
	if s.Pattern != "" {
		return "text like `" + strings.ReplaceAll(s.Pattern, "|", `\|`) + "`"
	}
	return "text"
}

func limits(low, high *float64, one, many string) string {
	unit := many
	if high != nil && *high == 1 {
		unit = one
	}
	switch {
	case low != nil && *low > 0 && high != nil && *low == *high:
		return fmt.Sprintf(", %s %s", number(*low), unit)
	case low != nil && *low > 0 && high != nil:
		return fmt.Sprintf(", %s to %s %s", number(*low), number(*high), unit)
	case high != nil:
		return fmt.Sprintf(", at most %s %s", number(*high), unit)
	case low != nil && *low == 1:
		return fmt.Sprintf(", at least 1 %s", one)
	case low != nil && *low > 0:
		return fmt.Sprintf(", at least %s %s", number(*low), many)
	}
	return ""
}

func between(low, high *float64) string {
	switch {
	case low != nil && high != nil:
		return fmt.Sprintf(", %s to %s", number(*low), number(*high))
	case high != nil:
		return ", at most " + number(*high)
	case low != nil:
		return ", at least " + number(*low)
	}
	return ""
}

// number writes 262144 as 262,144.
func number(n float64) string {
	digits := strconv.FormatFloat(n, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(digits, ".")
	for at := len(whole) - 3; at > 0 && whole[at-1] != '-'; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

func oneOf(values []any) string {
	var words []string
	for _, value := range values {
		if value != nil {
			words = append(words, literal(value))
		}
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

func literal(value any) string {
	if text, ok := value.(string); ok {
		return "`" + text + "`"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("`%v`", value)
	}
	return "`" + string(text) + "`"
}

func join(all []*schema, between string) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, typeOf(s))
	}
	return strings.Join(texts, between)
}

// anchor returns the anchor of the heading of an object.
func anchor(name string) string { return strings.ToLower(name) + "-object" }
