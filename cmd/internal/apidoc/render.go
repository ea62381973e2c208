package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const head = `# API reference

<!-- Written by "make api" from the description of the API. Do not edit it. -->

Every operation, by subject. A node serves the same as OpenAPI 3.1 at ` + "`/openapi.json`" + `, and as a page that sends requests at ` + "`/docs`" + `.
[decisions.md](decisions.md) says why operations behave as they do.

- A credential is sent as ` + "`Authorization: Bearer ...`" + `.
- Each answer has ` + "`X-Request-Id`" + `: the caller's own, or a new one.
- An answer that another node gave has ` + "`Switchyard-Owner`" + `: where clients reach that node, if it was started with --client-url.
- If requests of the credential, the workspace or the address are limited, an answer has ` + "`RateLimit-Limit`" + `, ` + "`RateLimit-Remaining`" + ` and ` + "`RateLimit-Reset`" + `, the seconds until all requests are left again.
- An operation marked *repeatable* takes an ` + "`Idempotency-Key`" + ` of at most 255 characters. A repeat with the same key within 24 hours gets the first answer, with ` + "`Idempotency-Replayed: true`" + `.
- A list has its first page without ` + "`cursor`" + `, and the next one with the ` + "`nextCursor`" + ` of the page before.
- The parameter ` + "`organizationId`" + ` of a path is the id of the workspace. Tables of parameters leave it out.

`

type writer struct {
	bytes.Buffer
	doc *document
}

func (w *writer) line(format string, args ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", args...) // a buffer takes all
}

// render writes the reference.
func (d *document) render() []byte {
	w := &writer{doc: d}
	w.WriteString(head)
	w.contents()
	w.errors()
	for _, tag := range d.Tags {
		w.line("## %s", tag.Name)
		w.line("")
		w.line("%s", tag.Description)
		w.line("")
		for _, op := range d.tagged(tag.Name) {
			w.operation(op)
		}
	}
	w.webhooks()
	w.line("## Objects")
	w.line("")
	w.line("What answers consist of.")
	w.line("")
	for _, name := range d.answered() {
		w.object(name)
	}
	return append(bytes.TrimRight(w.Bytes(), "\n"), '\n')
}

func (w *writer) contents() {
	w.line("| subject | operations |")
	w.line("|---|---|")
	for _, tag := range w.doc.Tags {
		var all []string
		for _, op := range w.doc.tagged(tag.Name) {
			all = append(all, fmt.Sprintf("[%s](#%s)", op.Summary, slug(op.Summary)))
		}
		w.line("| [%s](#%s) | %s |", tag.Name, slug(tag.Name), strings.Join(all, " · "))
	}
	w.line("| more | [Errors](#errors) · [What subscriptions are sent](#what-subscriptions-are-sent) · [Objects](#objects) |")
	w.line("")
}

// slug returns the anchor of a heading.
func slug(heading string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(heading) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
			b.WriteRune(c)
		case c == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// errors writes the table of statuses and codes.
func (w *writer) errors() {
	w.line("## Errors")
	w.line("")
	w.line("Every error but those under `/oauth` and `/scim` is this object. Those two have the errors of their standards.")
	w.line("")
	w.line("| field | |")
	w.line("|---|---|")
	for _, f := range fields(w.doc.Components.Schemas["Error"], "") {
		if f.name != "code" {
			w.line("| `%s` | %s%s |", f.name, typeOf(f.schema), said(f.schema.Description))
		}
	}
	w.line("| `code` | one of the following |")
	w.line("")
	w.line("| status | code | besides |")
	w.line("|---|---|---|")
	var rows []string
	for name, r := range w.doc.Components.Responses {
		content := r.Content["application/json"].Schema
		if name == "Error" || content == nil || len(content.AllOf) != 2 {
			continue
		}
		var besides []string
		for _, header := range slices.Sorted(maps.Keys(r.Headers)) {
			if header != "X-Request-Id" && header != "Switchyard-Owner" && !strings.HasPrefix(header, "RateLimit-") {
				besides = append(besides, "`"+header+"`: "+strings.TrimSuffix(w.doc.Components.Headers[header].Description, "."))
			}
		}
		for _, f := range fields(content.AllOf[1], "") {
			switch {
			case f.name == "details" && len(f.schema.OneOf) > 0:
				besides = append(besides, "`details`, if there are any: "+typeOf(f.schema))
			case f.name != "code" && f.name != "details":
				besides = append(besides, "`"+f.name+"`: "+typeOf(f.schema))
			}
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", r.Description, literal(content.AllOf[1].Properties["code"].Const), strings.Join(besides, "; ")))
	}
	slices.Sort(rows)
	w.line("%s", strings.Join(rows, "\n"))
	w.line("")
}

func (w *writer) operation(op *operation) {
	w.line("### %s", op.Summary)
	w.line("")
	w.line("```")
	w.line("%s %s", op.method, op.path)
	w.line("```")
	w.line("")
	about := op.Description
	if slices.ContainsFunc(op.Parameters, func(p parameter) bool { return p.Name == "Idempotency-Key" }) {
		about += " *Repeatable.*"
	}
	w.line("%s", about)
	w.line("")
	w.parameters(op.Parameters)
	w.body(op)
	w.answers(op)
}

func (w *writer) parameters(all []parameter) {
	shown := slices.DeleteFunc(slices.Clone(all), func(p parameter) bool {
		return p.Name == "organizationId" && p.In == "path" || p.Name == "Idempotency-Key" && p.In == "header"
	})
	if len(shown) == 0 {
		return
	}
	w.line("| parameter | in | |")
	w.line("|---|---|---|")
	for _, p := range shown {
		mark := ""
		if p.Required && p.In != "path" {
			mark = "**required**, "
		}
		w.line("| `%s` | %s | %s%s%s |", p.Name, p.In, mark, typeOf(p.Schema), said(p.Description))
	}
	w.line("")
}

// answers writes the statuses of success with their bodies, and those of errors.
func (w *writer) answers(op *operation) {
	var failures []string
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		if status == "default" {
			continue
		}
		if status >= "400" {
			failures = append(failures, status)
			continue
		}
		r := w.doc.answer(op.Responses[status])
		var says []string
		for _, name := range slices.Sorted(maps.Keys(r.Content)) {
			switch s := r.Content[name].Schema; {
			case name == "application/json" && s != nil:
				says = append(says, typeOf(s))
			case s != nil && s.Ref != "":
				says = append(says, typeOf(s)+" (`"+name+"`)")
			default:
				says = append(says, "`"+name+"`")
			}
		}
		text := strings.Join(says, ", or ")
		if text == "" {
			text = "no body"
		}
		if _, has := r.Headers["ETag"]; has {
			text += ", with `ETag`"
		}
		w.line("- **%s**: %s", status, text)
	}
	if len(failures) > 0 {
		w.line("- Errors: %s", strings.Join(failures, ", "))
	}
	w.line("")
}

func (w *writer) webhooks() {
	w.line("## What subscriptions are sent")
	w.line("")
	names := slices.Sorted(maps.Keys(w.doc.Webhooks))
	one := w.doc.Webhooks[names[0]]["post"]
	w.line("A `POST` for each event, as [webhooks.md](webhooks.md) describes, with a [DeliveredEvent](#%s) as its body.", anchor("DeliveredEvent"))
	w.line("")
	w.line("Types of events: `%s`.", strings.Join(names, "`, `"))
	w.line("")
	w.parameters(one.Parameters)
}

// answered returns the names of the objects that answers have, sorted. Inputs are
// written with their operations.
func (d *document) answered() []string {
	seen := map[string]bool{}
	var look func(*schema)
	look = func(s *schema) {
		if s == nil {
			return
		}
		if name := s.name(); name != "" && !seen[name] {
			seen[name] = true
			look(d.Components.Schemas[name])
		}
		look(s.Items)
		for _, all := range [...][]*schema{s.OneOf, s.AllOf, slices.Collect(maps.Values(s.Properties))} {
			for _, one := range all {
				look(one)
			}
		}
	}
	for _, items := range [...]map[string]map[string]*operation{d.Paths, d.Webhooks} {
		for _, item := range items {
			for _, op := range item {
				for _, r := range op.Responses {
					for _, m := range d.answer(r).Content {
						look(m.Schema)
					}
				}
				if op.path == "" { // what a subscription is sent
					look(op.RequestBody.Content["application/json"].Schema)
				}
			}
		}
	}
	delete(seen, "Error") // has a section of its own
	return slices.Sorted(maps.Keys(seen))
}
