package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// field is a row of a table of fields. The name of one in an object of its own has
// the object's before it: parent.child, or list[].child.
type field struct {
	name     string
	schema   *schema
	required bool
}

// fields returns the properties of an object and of those within it, required ones
// first, then by name.
func fields(s *schema, prefix string) []field {
	names := slices.SortedFunc(maps.Keys(s.Properties), func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var all []field
	for _, name := range names {
		property := s.Properties[name]
		all = append(all, field{prefix + name, property, slices.Contains(s.Required, name)})
		within, at := property, prefix+name+"."
		for within.Items != nil {
			within, at = within.Items, strings.TrimSuffix(at, ".")+"[]."
		}
		all = append(all, fields(within, at)...)
	}
	return all
}

// body writes the fields of a request's body, whose media types have one schema.
func (w *writer) body(op *operation) {
	if op.RequestBody == nil {
		return
	}
	names := slices.Sorted(maps.Keys(op.RequestBody.Content))
	label := "body"
	if !slices.Equal(names, []string{"application/json"}) {
		label += " (`" + strings.Join(names, "` or `") + "`)"
	}
	about := op.RequestBody.Description
	var rows []field
	if s := op.RequestBody.Content[names[0]].Schema; s != nil { // else the bytes have no schema
		s = w.doc.resolve(s)
		rows = fields(s, "")
		if len(rows) == 0 && about == "" {
			about = typeOf(s)
		}
	}
	if about != "" {
		w.line("%s: %s", upper(label), about)
		w.line("")
	}
	if len(rows) == 0 {
		return
	}
	w.line("| %s | |", label)
	w.line("|---|---|")
	for _, f := range rows {
		mark := ""
		if f.required {
			mark = "**required**, "
		}
		w.line("| `%s` | %s%s%s |", f.name, mark, typeOf(f.schema), said(f.schema.Description))
	}
	w.line("")
}

// object writes the fields of a named object of answers.
func (w *writer) object(name string) {
	s := w.doc.Components.Schemas[name]
	w.line("### %s object", name)
	w.line("")
	rows := fields(s, "")
	if len(rows) == 0 {
		w.line("%s%s", upper(typeOf(s)), said(s.Description))
		w.line("")
		return
	}
	w.line("| field | |")
	w.line("|---|---|")
	for _, f := range rows {
		left := ""
		if !f.required {
			left = "; may be left out"
		}
		w.line("| `%s` | %s%s%s |", f.name, typeOf(f.schema), left, said(f.schema.Description))
	}
	w.line("")
}

func said(description string) string {
	if description == "" {
		return ""
	}
	return fmt.Sprintf(". %s", description)
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
