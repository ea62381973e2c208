package httpapi

import (
	"bytes"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"switchyard/actors/tracker"
)

// maxValue bounds a query parameter and a bound header in bytes, decoded.
const maxValue = 4 << 10

// source is where a request's values come from. Its slices need live only while
// bind runs: every value that is kept is copied.
type source struct {
	// params are the route's parameters by the order of names.
	names  []string
	params []string
	query  []byte
	header headers
	body   []byte
	form   bool   // the body is a form
	object bool   // the body must be an object or empty, though the operation has no properties
	base   string // where the client reaches the service
	// caller and now are for faults that depend on them.
	caller *tracker.Caller
	now    func() time.Time
	// refused says why the body is not of a type that the operation takes.
	refused *tracker.Error
	// wrongKey is the fault of the request's idempotency key, or empty.
	wrongKey fieldError
}

// headers are a request's: the value, and whether there is one.
type headers interface {
	header(name string) ([]byte, bool)
}

// binder fills inputs. It belongs to one request at a time; between requests it
// keeps its buffers.
type binder struct {
	dec    jsontext.Decoder
	reader bytes.Buffer
	body   []byte // what reader reads, while it does
	where  []step // the place in the body being read
	seen   fieldSet
	text   []byte
	lax    bool     // duplicate names were reported already
	unused []string // paths of properties that are read as unknown ones
	faults tracker.Faults
	plan   *inputSchema
}

// step is one part of a path in the body: a property, or an index.
type step struct {
	name  string
	raw   []byte // a name that is in no plan
	index int
}

// fieldSet holds places of fields.
type fieldSet [maxFields / 64]uint64

func (s *fieldSet) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s *fieldSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

const again = "Is given more than once."

// bind fills in from a request, noting every fault.
func (b *binder) bind(p *inputSchema, in any, src *source) error {
	b.plan, b.faults = p, tracker.Faults{}
	dst := reflect.ValueOf(in).Elem()
	readable := true
	switch {
	case src.object:
		readable = b.checkObject(src.body)
	case p.body == nil:
	case src.form:
		b.bindPairs(dst, src.body, p.body.fields, "")
	default:
		readable = b.bindBody(dst, src.body)
	}
	for _, f := range p.service {
		dst.FieldByIndex(f.index).SetString(src.base)
	}
	for _, f := range p.path {
		for i, name := range src.names {
			if name == f.name {
				b.setText(dst.FieldByIndex(f.index), f, "path.", src.params[i])
			}
		}
	}
	if len(p.query) > 0 {
		b.bindQuery(dst, src.query)
	}
	for _, f := range p.header {
		b.bindHeader(dst, f, src.header)
	}
	if p.raw != nil {
		dst.FieldByIndex(p.raw.index).SetBytes(bytes.Clone(src.body)) // src's is used again
		if p.anyValue {
			readable = b.checkValue(src.body)
		}
	}
	if p.refused != nil && src.refused != nil {
		dst.FieldByIndex(p.refused).Set(reflect.ValueOf(src.refused))
	}
	if src.wrongKey != "" {
		b.faults.Add("header."+idempotencyKey, src.wrongKey)
	}
	if p.validates && readable {
		in.(validator).Validate(&b.faults)
	}
	if readable && !b.faults.Empty() {
		if late, ok := in.(callValidator); ok {
			late.ValidateFor(src.caller, src.now().UTC(), &b.faults)
		}
	}
	return b.faults.Err()
}

func (b *binder) bindQuery(dst reflect.Value, query []byte) {
	b.bindPairs(dst, query, b.plan.query, "query.")
}

// bindPairs reads the pairs of a query or a form; at is the path in front of their
// names, for the faults.
func (b *binder) bindPairs(dst reflect.Value, pairs []byte, fields []*field, at string) {
	b.seen = fieldSet{}
	for rest := pairs; len(rest) > 0; {
		pair := rest
		if amp := bytes.IndexByte(rest, '&'); amp >= 0 {
			pair, rest = rest[:amp], rest[amp+1:]
		} else {
			rest = nil
		}
		key, value, _ := bytes.Cut(pair, []byte{'='})
		f, i := b.pairField(key, fields)
		if f == nil {
			continue
		}
		if b.seen.has(i) {
			b.faults.Add(at+f.name, again)
			continue
		}
		b.seen.add(i)
		var ok bool
		if b.text, ok = appendUnescaped(b.text[:0], value, true); !ok {
			b.faults.Add(at+f.name, "Has a broken percent-encoding.")
			continue
		}
		b.setBytes(dst.FieldByIndex(f.index), f, at, b.text)
	}
	for i, f := range fields {
		if !b.seen.has(i) {
			b.setAbsent(dst.FieldByIndex(f.index), f, at)
		}
	}
}

// pairField finds the field that a key names; unknown keys are ignored.
func (b *binder) pairField(key []byte, fields []*field) (*field, int) {
	if bytes.ContainsAny(key, "%+") {
		var ok bool
		if b.text, ok = appendUnescaped(b.text[:0], key, true); !ok {
			return nil, 0
		}
		key = b.text
	}
	for i, f := range fields {
		if string(key) == f.name {
			return f, i
		}
	}
	return nil, 0
}

func (b *binder) bindHeader(dst reflect.Value, f *field, header headers) {
	dst = dst.FieldByIndex(f.index)
	if value, ok := header.header(f.name); ok {
		b.setBytes(dst, f, "header.", value)
	} else {
		b.setAbsent(dst, f, "header.")
	}
}

func (b *binder) setBytes(dst reflect.Value, f *field, at string, value []byte) {
	switch {
	case len(value) > maxValue:
		b.faults.Add(at+f.name, "Must be at most "+strconv.Itoa(maxValue)+" bytes long.")
	case !isText(value):
		b.faults.Add(at+f.name, "Must be UTF-8 without NUL.")
	default:
		b.setText(dst, f, at, string(value))
	}
}

func (b *binder) setAbsent(dst reflect.Value, f *field, at string) {
	switch {
	case f.preset != "":
		b.setText(dst, f, at, f.preset)
	case f.required:
		b.faults.Add(at+f.name, "Is required.")
	}
}

// setText sets a field outside the body from its text.
func (b *binder) setText(dst reflect.Value, f *field, at, text string) {
	dst = f.open(dst)
	var wrong fieldError
	switch f.kind {
	case kindText:
		if wrong = f.checkText(text); wrong == "" {
			dst.SetString(text)
		}
	case kindBool:
		switch text {
		case "true", "false":
			dst.SetBool(text == "true")
		default:
			wrong = "Must be true or false."
		}
	case kindInt:
		n, err := strconv.ParseInt(text, 10, 64)
		if errors.Is(err, strconv.ErrRange) && isDigits(text) {
			err = nil // n is the nearest there is: past the end, or beyond the field's bound
		}
		switch {
		case err != nil || !isInteger(text):
			wrong = "Must be an integer."
		default:
			if wrong = f.checkNumber(float64(n)); wrong == "" {
				dst.SetInt(n)
			}
		}
	case kindFloat:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.ContainsAny(text, "nNxX_") { // NaN, Inf, 0x1p-2
			wrong = "Must be a number."
		} else if wrong = f.checkNumber(n); wrong == "" {
			dst.SetFloat(n)
		}
	}
	if wrong != "" {
		b.faults.Add(at+f.name, wrong)
	}
}

// isInteger reports whether a text that ParseInt takes is an integer in a body, too: +1 and 01 are none.
func isInteger(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text == "0" || text[0] != '0' && text[0] != '+'
}

func isDigits(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// open gives the place of the value: of an Opt, which is marked as set, its Value.
func (s *fieldSchema) open(dst reflect.Value) reflect.Value {
	if !s.optional {
		return dst
	}
	dst.Field(optSet).SetBool(true)
	return dst.Field(optValue)
}

// The fields of tracker.Opt.
const (
	optSet = iota
	optNull
	optValue
)
