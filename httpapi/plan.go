package httpapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchyard/actors/tracker"
)

// inputSchema says how the input of an operation is filled from a request. It is built
// once, when the server is made, from the tags of the input's struct:
//
//	path:"id"          a parameter of the route
//	query:"limit"      a query parameter
//	header:"If-Match"  a header
//	json:"title"       a property of the body, or of a form
//	raw:"json,form"    the body's bytes as sent, in one of these media types
//	raw:"value"        the body, which may be any JSON value, as sent
//	raw:"refused"      why the body is of none of them, for an operation that first
//	                   judges the signature; without this field the body is refused
//	service:"baseUrl"  where the client reaches the service
//	rules:"..."        required, nullable, min=, max=, uri, datetime, object, strings, strict
//	items:"..."        the rules of an array's items or a map's values
//	form:"slug"        one of tracker.Forms, of items where the field is an array
//	enum:"a,b"         the values allowed, of items where the field is an array; for a
//	                   tracker.Enumerated, instead of the values of the type
//	default:"50"       the value when absent
//
// In a nested struct json:"*" is the object itself, as it is written, also what it
// has beside the known properties.
type inputSchema struct {
	path, query, header []*field
	service             []*field // what the service itself fills in
	body                *object  // nil when the operation reads no body, or reads it raw
	// raw is the field, of type []byte, that gets the body as it was sent, for
	// signatures over it; media are the types it may have.
	raw *field
	// anyValue is set if the raw body must be one JSON value.
	anyValue  bool
	media     []media
	refused   []int // the field, of type *tracker.Error, for a body of another type
	strict    bool
	validates bool
	narrows   bool
}

// field is one place to fill.
type field struct {
	name  string
	index []int
	fieldSchema
	bit      int // its place among the fields of an object
	required bool
	// preset is the text of the default; empty for none.
	preset string
	// absent is the JSON of the value that the operation puts in place of an absent field; empty for none.
	absent string
}

type kind uint8

const (
	kindText kind = iota
	kindBool
	kindInt
	kindFloat
	kindList
	kindObject
	kindDict // map[string]string
	kindRaw  // json.RawMessage
)

// fieldSchema has the rules for a value.
type fieldSchema struct {
	kind     kind
	optional bool // an Opt, which distinguishes absent, null and a value
	nullable bool
	min, max bound
	uri      bool
	datetime bool
	// onlyObject and onlyStrings narrow a raw value to an object, or to a string or
	// an array of strings.
	onlyObject, onlyStrings bool
	enum                    []string
	form                    *tracker.Form // nil for none
	items                   *fieldSchema
	object                  *object
	typ                     reflect.Type
}

// bound is a limit, of characters for text, of items for lists, of the value for
// numbers.
type bound struct {
	set bool
	n   float64
}

// object is a JSON object with known properties.
type object struct {
	fields []*field
	byName map[string]*field
	// whole is the field that keeps the object as it is written; nil for none.
	whole []int
	// strict objects take no unknown properties.
	strict bool
	// anyCase is set if the case of names does not count; see bind_case.go.
	anyCase bool
}

// maxFields bounds the properties of one object, for the set of those seen.
const maxFields = 128

var (
	optPackage   = reflect.TypeFor[tracker.Opt[int]]().PkgPath()
	rawType      = reflect.TypeFor[json.RawMessage]()
	validateType = reflect.TypeFor[validator]()
	narrowType   = reflect.TypeFor[narrower]()
)

// validator is an input that checks across its fields.
type validator interface {
	Validate(*tracker.Faults)
}

// callValidator is an input with faults that depend on the caller or the time. Its operation
// looks for them. The binder does so only beside other faults, so that an answer has all of
// them: a repeat with an idempotency key gets the first answer also when a time in it has
// passed.
type callValidator interface {
	ValidateFor(caller *tracker.Caller, now time.Time, faults *tracker.Faults)
}

// narrower is an input of which some fields decide which others it uses. Unused returns
// the paths of the others, such as "payload.title". Each is then a property that the
// object doesn't know.
type narrower interface {
	Unused() []string
}

// newPlan builds the plan of an operation's input. params are the parameters of
// its route; that of the workspace is bound by the server itself.
func newPlan(op *tracker.Op, params []string) (*inputSchema, error) {
	p := &inputSchema{strict: op.Strict, validates: reflect.PointerTo(op.In).Implements(validateType), narrows: reflect.PointerTo(op.In).Implements(narrowType)}
	if op.In.Kind() != reflect.Struct {
		return nil, fmt.Errorf("input %v is not a struct", op.In)
	}
	body := &object{byName: map[string]*field{}}
	if err := p.collect(op.In, nil, body); err != nil {
		return nil, err
	}
	if len(body.fields) > 0 {
		p.body = body
	}
	if op.Strict {
		body.makeStrict() // the description goes by it
	}
	if op.SCIM != 0 {
		body.foldNames()
	}
	if p.raw != nil && p.body != nil {
		return nil, fmt.Errorf("input %v wants the body both raw and by its properties", op.In)
	}
	if len(p.query) > maxFields {
		return nil, fmt.Errorf("input %v has more than %d query parameters", op.In, maxFields)
	}
	for _, f := range p.path {
		if !slices.Contains(params, f.name) {
			return nil, fmt.Errorf("input %v wants path parameter %q, which the route lacks", op.In, f.name)
		}
	}
	for _, name := range params {
		if name != workspaceParam && !slices.ContainsFunc(p.path, func(f *field) bool { return f.name == name }) {
			return nil, fmt.Errorf("input %v has no field for path parameter %q", op.In, name)
		}
	}
	return p, nil
}

// collect goes through the fields of a struct, those of embedded ones as if they
// were its own.
func (p *inputSchema) collect(t reflect.Type, at []int, body *object) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(slices.Clone(at), i)
		if sf.Anonymous && sf.Type.Kind() == reflect.Struct {
			if err := p.collect(sf.Type, index, body); err != nil {
				return err
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if types, ok := sf.Tag.Lookup("raw"); ok {
			if err := p.wantRaw(sf, index, types); err != nil {
				return err
			}
			continue
		}
		if sf.Type == rawType && tagName(sf, "json") == "*" {
			body.whole = index
			continue
		}
		f, err := newField(sf, index)
		if err != nil {
			return fmt.Errorf("field %s of %v: %w", sf.Name, t, err)
		}
		switch source := tagOf(sf); source {
		case "path":
			p.path = append(p.path, f)
		case "query":
			p.query = append(p.query, f)
		case "header":
			p.header = append(p.header, f)
		case "service":
			if f.name != "baseUrl" || f.kind != kindText || f.optional {
				return fmt.Errorf("field %s of %v: the service knows its baseUrl, a text", sf.Name, t)
			}
			p.service = append(p.service, f)
		case "json":
			if err := body.add(f); err != nil {
				return fmt.Errorf("%v: %w", t, err)
			}
			continue
		default:
			continue
		}
		if f.kind > kindFloat {
			return fmt.Errorf("field %s of %v: only text, numbers and booleans stand outside the body", sf.Name, t)
		}
	}
	return nil
}

// wantRaw notes the field for the body as it was sent, or the field for the reason why the
// body is not taken.
func (p *inputSchema) wantRaw(sf reflect.StructField, index []int, types string) error {
	if types == "refused" && sf.Type == reflect.TypeFor[*tracker.Error]() {
		p.refused = index
		return nil
	}
	if p.raw != nil || sf.Type != reflect.TypeFor[[]byte]() {
		return fmt.Errorf("field %s: one field of type []byte can have the raw body", sf.Name)
	}
	p.raw = &field{index: index}
	for name := range strings.SplitSeq(types, ",") {
		p.anyValue = name == "value"
		m, known := rawMedia[name]
		if !known {
			return fmt.Errorf("field %s: unknown media type %q", sf.Name, name)
		}
		p.media = append(p.media, m)
	}
	return nil
}

func tagOf(sf reflect.StructField) string {
	for _, source := range [...]string{"path", "query", "header", "json", "service"} {
		if name := tagName(sf, source); name != "" && name != "-" {
			return source
		}
	}
	return ""
}

func tagName(sf reflect.StructField, source string) string {
	name, _, _ := strings.Cut(sf.Tag.Get(source), ",")
	return name
}

func (o *object) add(f *field) error {
	if o.byName[f.name] != nil {
		return fmt.Errorf("two fields named %q", f.name)
	}
	if len(o.fields) == maxFields {
		return fmt.Errorf("more than %d fields", maxFields)
	}
	f.bit = len(o.fields)
	o.fields = append(o.fields, f)
	o.byName[f.name] = f
	return nil
}

// makeStrict lets the object, and all objects in it, take no unknown properties.
func (o *object) makeStrict() {
	o.strict = true
	for _, f := range o.fields {
		for s := &f.fieldSchema; s != nil; s = s.items {
			if s.object != nil {
				s.object.makeStrict()
			}
		}
	}
}

func newField(sf reflect.StructField, index []int) (*field, error) {
	f := &field{index: index, preset: sf.Tag.Get("default"), absent: sf.Tag.Get("absent")}
	if source := tagOf(sf); source != "" {
		f.name = tagName(sf, source)
	} else {
		return f, nil
	}
	s, err := newShape(sf.Type)
	if err != nil {
		return nil, err
	}
	f.fieldSchema = *s
	if enum := sf.Tag.Get("enum"); enum != "" {
		values := strings.Split(enum, ",")
		if f.items != nil {
			f.items.enum = values
		} else {
			f.enum = values
		}
	}
	if name := sf.Tag.Get("form"); name != "" {
		form := tracker.Forms()[name]
		if form == nil {
			return nil, fmt.Errorf("unknown form %q", name)
		}
		if f.items != nil {
			f.items.form = form
		} else {
			f.form = form
		}
	}
	if f.required, err = f.fieldSchema.apply(sf.Tag.Get("rules")); err != nil {
		return nil, err
	}
	if rules := sf.Tag.Get("items"); rules != "" {
		if f.items == nil {
			return nil, fmt.Errorf("items rules on %v", sf.Type)
		}
		if _, err := f.items.apply(rules); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// enumValues are the values of an enumerated type; nil for other types.
func enumValues(t reflect.Type) []string {
	if e, ok := reflect.Zero(t).Interface().(tracker.Enumerated); ok {
		return e.EnumValues()
	}
	return nil
}

func newShape(t reflect.Type) (*fieldSchema, error) {
	s := &fieldSchema{typ: t}
	if t.Kind() == reflect.Struct && t.PkgPath() == optPackage && strings.HasPrefix(t.Name(), "Opt[") {
		value, _ := t.FieldByName("Value")
		inner, err := newShape(value.Type)
		if err != nil {
			return nil, err
		}
		inner.optional = true
		return inner, nil
	}
	var err error
	switch {
	case t == rawType:
		s.kind = kindRaw
	case t.Kind() == reflect.String:
		s.kind = kindText
		s.enum = enumValues(t)
	case t.Kind() == reflect.Bool:
		s.kind = kindBool
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		s.kind = kindInt
	case t.Kind() == reflect.Float64:
		s.kind = kindFloat
	case t.Kind() == reflect.Slice:
		s.kind = kindList
		s.items, err = newShape(t.Elem())
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		s.kind = kindDict
		s.items = &fieldSchema{kind: kindText, typ: t.Elem()}
	case t.Kind() == reflect.Struct:
		s.kind = kindObject
		s.object, err = newObject(t)
	default:
		err = fmt.Errorf("can't bind a %v", t)
	}
	return s, err
}

// newObject is the plan of a nested struct.
func newObject(t reflect.Type) (*object, error) {
	nested, o := &inputSchema{}, &object{byName: map[string]*field{}}
	if err := nested.collect(t, nil, o); err != nil {
		return nil, err
	}
	if len(nested.path)+len(nested.query)+len(nested.header)+len(nested.service) > 0 || nested.raw != nil {
		return nil, fmt.Errorf("%v is nested and can only have json fields", t)
	}
	return o, nil
}

// apply reads the text of a rules tag into the shape.
func (s *fieldSchema) apply(rules string) (required bool, err error) {
	if rules == "" {
		return false, nil
	}
	for rule := range strings.SplitSeq(rules, ",") {
		name, value, _ := strings.Cut(rule, "=")
		switch name {
		case "required":
			required = true
		case "nullable":
			s.nullable = true
		case "notnull":
			s.nullable = false
		case "uri":
			s.uri = true
		case "datetime":
			s.datetime = true
		case "object":
			s.onlyObject = true
		case "strings":
			s.onlyStrings = true
		case "strict":
			if s.object == nil {
				return false, fmt.Errorf("rule %q on %v", rule, s.typ)
			}
			s.object.makeStrict()
		case "min", "max":
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return false, fmt.Errorf("rule %q: %w", rule, err)
			}
			if name == "min" {
				s.min = bound{true, n}
			} else {
				s.max = bound{true, n}
			}
		default:
			return false, fmt.Errorf("unknown rule %q", rule)
		}
	}
	return required, nil
}
