package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"switchyard/actors/tracker"
)

var deliveredType = reflect.TypeFor[tracker.DeliveredEvent]()

// schema describes what a field takes.
func (s *fieldSchema) schema(d *describer) doc {
	schema := s.bare(d)
	if !s.nullable {
		return schema
	}
	if s.enum != nil {
		schema["enum"] = append(asAny(s.enum), nil)
	}
	if t, ok := schema["type"].(string); ok {
		schema["type"] = []string{t, "null"}
		return schema
	}
	return schema
}

func (s *fieldSchema) bare(d *describer) doc {
	limits := func(schema doc, min, max string) doc {
		if s.min.set {
			schema[min] = s.min.n
		}
		if s.max.set {
			schema[max] = s.max.n
		}
		return schema
	}
	switch s.kind {
	case kindText:
		schema := limits(doc{"type": "string"}, "minLength", "maxLength")
		if s.enum != nil {
			schema["enum"] = asAny(s.enum)
		}
		if s.uri {
			schema["format"] = "uri"
		}
		if s.datetime {
			schema["format"] = "date-time"
		}
		if s.form != nil {
			maps.Copy(schema, s.form.Schema)
		}
		return schema
	case kindBool:
		return doc{"type": "boolean"}
	case kindInt:
		return limits(doc{"type": "integer"}, "minimum", "maximum")
	case kindFloat:
		return limits(doc{"type": "number"}, "minimum", "maximum")
	case kindList:
		return limits(doc{"type": "array", "items": s.items.schema(d)}, "minItems", "maxItems")
	case kindDict:
		return limits(doc{"type": "object", "additionalProperties": s.items.schema(d)}, "minProperties", "maxProperties")
	case kindObject:
		return d.object(s.object, s.object.strict)
	}
	switch {
	case s.form != nil:
		return maps.Clone(s.form.Schema)
	case s.onlyObject:
		return doc{"type": "object", "additionalProperties": true}
	case s.onlyStrings:
		return doc{"oneOf": []doc{{"type": "string"}, {"type": "array", "items": doc{"type": "string"}}}}
	}
	return doc{}
}

func asAny(texts []string) []any {
	values := make([]any, 0, len(texts)+1)
	for _, text := range texts {
		values = append(values, text)
	}
	return values
}

// addDefault adds the value that a field has where it is absent.
func addDefault(schema doc, f *field) {
	switch {
	case f.preset != "":
		schema["default"] = presetValue(f)
	case f.absent != "":
		schema["default"] = json.RawMessage(f.absent)
	}
}

func presetValue(f *field) any {
	switch f.kind {
	case kindInt, kindFloat:
		if n, err := strconv.ParseFloat(f.preset, 64); err == nil {
			return n
		}
	case kindBool:
		return f.preset == "true"
	}
	return f.preset
}

// object describes the object a plan takes.
func (d *describer) object(o *object, strict bool) doc {
	properties := doc{}
	var required []string
	for _, f := range o.fields {
		schema := f.schema(d)
		addDefault(schema, f)
		properties[f.name] = schema
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := doc{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	switch {
	case o.whole != nil:
		schema["additionalProperties"] = true
	case strict:
		schema["additionalProperties"] = false
	}
	return schema
}

// input puts the body of an operation among the schemas.
func (d *describer) input(name string, p *inputSchema) doc {
	d.schemas[name] = d.object(p.body, p.strict)
	return doc{"$ref": "#/components/schemas/" + name}
}

// output describes the answer of an operation from its Go type: named structs
// become schemas of their own, pointers are nullable, and every field is required
// unless it is left out when empty.
func (d *describer) output(t reflect.Type) (doc, error) {
	switch {
	case t == rawType: // any value, and null is one
		return doc{}, nil
	case t == reflect.TypeFor[tracker.Timestamp]():
		return doc{"type": "string", "format": "date-time"}, nil
	}
	switch t.Kind() {
	case reflect.String:
		if enum := enumValues(t); enum != nil {
			return doc{"type": "string", "enum": asAny(enum)}, nil
		}
		return doc{"type": "string"}, nil
	case reflect.Bool:
		return doc{"type": "boolean"}, nil
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Uint64, reflect.Uint32, reflect.Uint:
		return doc{"type": "integer"}, nil
	case reflect.Float64:
		return doc{"type": "number"}, nil
	case reflect.Pointer:
		schema, err := d.output(t.Elem())
		if err != nil {
			return nil, err
		}
		return orNull(schema), nil
	case reflect.Slice, reflect.Array:
		items, err := d.output(t.Elem())
		return doc{"type": "array", "items": items}, err
	case reflect.Map:
		values, err := d.output(t.Elem())
		return doc{"type": "object", "additionalProperties": values}, err
	case reflect.Struct:
		return d.named(t)
	}
	return nil, fmt.Errorf("can't describe a %v", t)
}

func orNull(schema doc) doc {
	if t, ok := schema["type"].(string); ok {
		schema["type"] = []string{t, "null"}
		if enum, ok := schema["enum"].([]any); ok {
			schema["enum"] = append(enum, nil)
		}
		return schema
	}
	return doc{"oneOf": []doc{schema, {"type": "null"}}}
}

func (d *describer) named(t reflect.Type) (doc, error) {
	name := t.Name()
	if name == "" {
		return d.fields(t)
	}
	ref := doc{"$ref": "#/components/schemas/" + name}
	if _, known := d.schemas[name]; known {
		return ref, nil
	}
	d.schemas[name] = doc{} // for types that hold themselves
	schema, err := d.fields(t)
	d.schemas[name] = schema
	return ref, err
}

func (d *describer) fields(t reflect.Type) (doc, error) {
	properties := doc{}
	var required []string
	if err := d.collect(t, properties, &required); err != nil {
		return nil, fmt.Errorf("%v: %w", t, err)
	}
	schema := doc{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema, nil
}

func (d *describer) collect(t reflect.Type, properties doc, required *[]string) error {
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			if err := d.collect(sf.Type, properties, required); err != nil {
				return err
			}
			continue
		}
		if !sf.IsExported() || name == "-" || name == "" {
			continue
		}
		schema, err := d.output(sf.Type)
		if err != nil {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		}
		if form := tracker.Forms()[sf.Tag.Get("form")]; form != nil {
			maps.Copy(schema, form.Schema)
		}
		if enum := enumOf(sf); enum != nil {
			schema["enum"] = enum
		}
		_, replaces := properties[name] // a field of an embedded struct
		properties[name] = schema
		if !replaces && !slices.Contains(strings.Split(options, ","), "omitempty") && !slices.Contains(strings.Split(options, ","), "omitzero") {
			*required = append(*required, name)
		}
	}
	return nil
}

// enumOf gives the values of a field of an answer: those of its enum tag, and null
// where it may be.
func enumOf(sf reflect.StructField) []any {
	tag := sf.Tag.Get("enum")
	if tag == "" {
		return nil
	}
	values := asAny(strings.Split(tag, ","))
	if sf.Type.Kind() == reflect.Pointer {
		values = append(values, nil)
	}
	return values
}
