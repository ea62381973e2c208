package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"switchyard/actors/tracker"
)

// bindBody reads the body's object into dst. It runs before the other places are
// bound, so that all faults so far are the body's. It returns false if the body could not
// be read to its end, and its fields can't be judged.
func (b *binder) bindBody(dst reflect.Value, body []byte) bool {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		body = []byte("{}") // Decision 3: an absent body counts as an empty object.
	}
	if at := tracker.TooDeep(body, maxDepth); at >= 0 {
		b.faults.Add("", "The body is nested more than "+strconv.Itoa(maxDepth)+" levels deep at byte "+strconv.Itoa(at)+".")
		return false
	}
	b.unused = nil
	err := b.read(dst, body)
	if err == nil && b.plan.narrows && !b.faults.Empty() {
		// The faults may be those of properties that the input doesn't use, which is
		// known only now.
		if b.unused = dst.Addr().Interface().(narrower).Unused(); len(b.unused) > 0 {
			b.forget(dst)
			err = b.read(dst, body)
		}
	}
	if errors.Is(err, errNoObject) {
		return false
	}
	if err != nil {
		b.faults = tracker.Faults{}
		b.faults.Add("", describeSyntax(err))
		return false
	}
	b.reportNUL(body)
	return true
}

// read decodes the body, and names every property that is given twice.
func (b *binder) read(dst reflect.Value, body []byte) error {
	b.lax = false
	err := b.decode(dst, body)
	if errors.Is(err, jsontext.ErrDuplicateName) {
		// Rare, so only now are the names looked at one by one; the rest of the body
		// is then bound as if nothing were given twice.
		b.lax = true
		b.forget(dst)
		err = errors.Join(b.reportNames(body), b.decode(dst, body))
	}
	return err
}

// forget empties dst and the faults, for another run over the body.
func (b *binder) forget(dst reflect.Value) {
	for _, f := range b.plan.body.fields {
		dst.FieldByIndex(f.index).SetZero()
	}
	b.faults = tracker.Faults{}
}

// checkValue checks a body that may be any JSON value, and reports whether it can be
// read.
func (b *binder) checkValue(body []byte) bool {
	if at := tracker.TooDeep(body, maxDepth); at >= 0 {
		b.faults.Add("", "The body is nested more than "+strconv.Itoa(maxDepth)+" levels deep at byte "+strconv.Itoa(at)+".")
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	_, err := dec.ReadValue()
	if err == nil {
		if _, more := dec.ReadToken(); !errors.Is(more, io.EOF) {
			err = errTrailing
		}
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		if broken := b.reportNames(body); broken != nil {
			b.faults = tracker.Faults{}
			b.faults.Add("", describeSyntax(broken))
		}
	case err != nil && len(bytes.TrimSpace(body)) == 0:
		b.faults.Add("", "The body must be a JSON value.")
	case err != nil:
		b.faults.Add("", describeSyntax(err))
	case !numbersFit(body):
		b.faults.Add("", hugeNumber)
	}
	if !b.faults.Empty() {
		return false
	}
	b.reportNUL(body)
	return true
}

// decode runs over the body once.
func (b *binder) decode(dst reflect.Value, body []byte) error {
	b.where = b.where[:0]
	b.body, b.reader = body, *bytes.NewBuffer(body)
	b.dec.Reset(&b.reader, jsontext.AllowDuplicateNames(b.lax))
	defer func() {
		// Let go of the body: it goes back to its pool.
		b.body, b.reader = nil, bytes.Buffer{}
		if len(body) > keptDecoder {
			b.dec = jsontext.Decoder{} // it keeps the names of the body
			return
		}
		b.dec.Reset(&b.reader)
	}()
	kind := b.dec.PeekKind()
	var err error
	if kind == '{' {
		err = b.object(dst, b.plan.body)
	} else {
		err = b.dec.SkipValue()
	}
	if err != nil {
		return err
	}
	if _, err := b.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	if kind != '{' {
		b.faults = tracker.Faults{}
		b.fault("The body must be a JSON object, not " + nounOf(kind) + ".")
		return errNoObject
	}
	return nil
}

const hugeNumber = "Has a number out of the range of a double-precision number."

var (
	errTrailing = errors.New("there is something after the object")
	errNoObject = errors.New("the body is not an object")
)

func (b *binder) object(dst reflect.Value, o *object) error {
	if _, err := b.dec.ReadToken(); err != nil {
		return err
	}
	start := b.dec.InputOffset() - 1
	var seen fieldSet
	for b.dec.PeekKind() != '}' {
		raw, err := b.dec.ReadValue()
		if err != nil {
			return err
		}
		f := o.field(b.name(raw))
		if f == nil || b.ignores(f.name) {
			if b.plan.strict || o.strict {
				b.where = append(b.where, step{raw: b.name(raw)})
				b.fault("Is not a known property.")
				b.where = b.where[:len(b.where)-1]
			}
			if err := b.unknown(raw); err != nil {
				return err
			}
			continue
		}
		b.where = append(b.where, step{name: f.name})
		if seen.has(f.bit) {
			b.repeated()
		}
		seen.add(f.bit)
		if err := b.value(dst.FieldByIndex(f.index), &f.fieldSchema); err != nil {
			return err
		}
		b.where = b.where[:len(b.where)-1]
	}
	if _, err := b.dec.ReadToken(); err != nil {
		return err
	}
	if o.whole != nil {
		dst.FieldByIndex(o.whole).SetBytes(bytes.Clone(b.body[start:b.dec.InputOffset()]))
	}
	for _, f := range o.fields {
		if !seen.has(f.bit) && (f.required || f.preset != "") {
			b.where = append(b.where, step{name: f.name})
			b.absent(dst.FieldByIndex(f.index), f)
			b.where = b.where[:len(b.where)-1]
		}
	}
	return nil
}

// unknown passes over the value of a property that the object doesn't know. Its numbers
// must fit all the same (Decision 3).
func (b *binder) unknown(name []byte) error {
	name = bytes.Clone(b.name(name)) // the next value takes its place
	value, err := b.dec.ReadValue()
	if err == nil && !numbersFit(value) {
		b.where = append(b.where, step{raw: name})
		b.fault(hugeNumber)
		b.where = b.where[:len(b.where)-1]
	}
	return err
}

// ignores reports whether the input doesn't use a property of the object being read.
func (b *binder) ignores(name string) bool {
	if len(b.unused) == 0 {
		return false
	}
	b.where = append(b.where, step{name: name})
	path := b.path()
	b.where = b.where[:len(b.where)-1]
	return slices.Contains(b.unused, path)
}

// name gives the text of a quoted property name, valid until the next call.
func (b *binder) name(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 && len(raw) >= 2 {
		return raw[1 : len(raw)-1]
	}
	b.text, _ = jsontext.AppendUnquote(b.text[:0], raw) // the decoder has checked it
	return b.text
}

func (b *binder) absent(dst reflect.Value, f *field) {
	if f.required {
		b.fault("Is required.")
		return
	}
	dst = f.open(dst)
	switch f.kind {
	case kindText:
		dst.SetString(f.preset)
	case kindBool:
		dst.SetBool(f.preset == "true")
	case kindInt:
		n, _ := strconv.ParseInt(f.preset, 10, 64)
		dst.SetInt(n)
	}
}

// value reads one value into dst, or notes what is wrong with it. The error is
// the body's syntax, never the value.
func (b *binder) value(dst reflect.Value, s *fieldSchema) error {
	kind := b.dec.PeekKind()
	if kind == 'n' {
		if !s.nullable && s.kind != kindRaw {
			b.fault("Must not be null.")
			return b.dec.SkipValue()
		}
		if s.optional {
			dst.Field(optSet).SetBool(true)
			dst.Field(optNull).SetBool(true)
		} else if s.kind == kindRaw {
			return b.raw(dst, s)
		}
		return b.dec.SkipValue()
	}
	if s.kind == kindRaw {
		return b.raw(s.open(dst), s)
	}
	if !s.kind.accepts(kind) {
		if kind == jsontext.KindInvalid {
			return b.dec.SkipValue() // which tells the error
		}
		b.fault("Must be " + s.kind.noun() + ", not " + nounOf(kind) + ".")
		return b.dec.SkipValue()
	}
	switch s.kind {
	case kindList:
		return b.list(s.open(dst), s)
	case kindObject:
		return b.object(s.open(dst), s.object)
	case kindDict:
		return b.dict(s.open(dst), s)
	}
	raw, err := b.dec.ReadValue()
	if err != nil {
		return err
	}
	var wrong fieldError
	switch s.kind {
	case kindBool:
		s.open(dst).SetBool(kind == 't')
	case kindText:
		var text string
		if text, err = unquote(raw); err != nil {
			return err
		}
		if wrong = s.checkText(text); wrong == "" {
			s.open(dst).SetString(text)
		}
	case kindInt:
		var n int64
		if n, wrong = parseInteger(string(raw)); wrong == "" {
			if wrong = s.checkNumber(float64(n)); wrong == "" {
				s.open(dst).SetInt(n)
			}
		}
	case kindFloat:
		var n float64
		if n, wrong = parseFloat(string(raw)); wrong == "" {
			if wrong = s.checkNumber(n); wrong == "" {
				s.open(dst).SetFloat(n)
			}
		}
	}
	if wrong != "" {
		b.fault(wrong)
	}
	return nil
}

// unquote copies the text out of a JSON string.
func unquote(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return string(text), err
}

func (b *binder) list(dst reflect.Value, s *fieldSchema) error {
	if _, err := b.dec.ReadToken(); err != nil {
		return err
	}
	dst.Set(reflect.MakeSlice(s.typ, 0, 4))
	n := 0
	for ; b.dec.PeekKind() != ']'; n++ {
		if b.passesOver(s, n) {
			// Too many already: only the syntax of the rest matters.
			if err := b.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		dst.Grow(1)
		dst.SetLen(n + 1)
		dst.Index(n).SetZero()
		b.where = append(b.where, step{index: n})
		if err := b.value(dst.Index(n), s.items); err != nil {
			return err
		}
		b.where = b.where[:len(b.where)-1]
	}
	if wrong := s.checkCount(n); wrong != "" {
		b.fault(wrong)
	}
	_, err := b.dec.ReadToken()
	return err
}

func (b *binder) dict(dst reflect.Value, s *fieldSchema) error {
	if _, err := b.dec.ReadToken(); err != nil {
		return err
	}
	entries := reflect.MakeMap(s.typ)
	n := 0
	for ; b.dec.PeekKind() != '}'; n++ {
		raw, err := b.dec.ReadValue()
		if err != nil {
			return err
		}
		if b.passesOver(s, n) {
			if err := b.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		name, err := unquote(raw)
		if err != nil {
			return err
		}
		entry := reflect.New(s.typ.Elem()).Elem()
		b.where = append(b.where, step{raw: []byte(name)})
		if err := b.value(entry, s.items); err != nil {
			return err
		}
		b.where = b.where[:len(b.where)-1]
		entries.SetMapIndex(reflect.ValueOf(name).Convert(s.typ.Key()), entry)
	}
	if wrong := s.checkCount(n); wrong != "" {
		b.fault(wrong)
	}
	dst.Set(entries)
	_, err := b.dec.ReadToken()
	return err
}

// raw keeps a value as it is written.
func (b *binder) raw(dst reflect.Value, s *fieldSchema) error {
	kind := b.dec.PeekKind()
	raw, err := b.dec.ReadValue()
	if err != nil {
		return err
	}
	switch {
	case kind == 'n' && !s.nullable && (s.onlyObject || s.onlyStrings):
		b.fault("Must not be null.")
	case s.onlyObject && kind != '{' && kind != 'n':
		b.fault("Must be an object, not " + nounOf(kind) + ".")
	case s.onlyStrings && kind != '"' && kind != 'n' && !isStrings(raw):
		b.fault("Must be a string or an array of strings.")
	case !numbersFit(raw):
		b.fault(hugeNumber)
	default:
		dst.SetBytes(json.RawMessage(bytes.Clone(raw)))
	}
	return nil
}

// fault notes what is wrong at the place being read.
func (b *binder) fault(message string) {
	b.faultAt(b.path, message)
}

func (b *binder) path() string {
	var path strings.Builder
	for _, s := range b.where {
		switch {
		case s.name == "" && s.raw == nil:
			path.WriteByte('[')
			path.WriteString(strconv.Itoa(s.index))
			path.WriteByte(']')
			continue
		case path.Len() > 0:
			path.WriteByte('.')
		}
		path.WriteString(s.name)
		path.WriteString(shorten(s.raw))
	}
	return path.String()
}
