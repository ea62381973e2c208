package tracker

import (
	"reflect"
	"strings"

	json "github.com/goccy/go-json"
)

// readBody fills an input from a body, as far as tests need it: without any checks.
func readBody(t tester, in any, body string) {
	t.Helper()
	fillBody(t, reflect.ValueOf(in).Elem(), json.RawMessage(body))
}

func fillBody(t tester, dst reflect.Value, raw json.RawMessage) {
	t.Helper()
	into := func(v any) {
		t.Helper()
		if err := json.Unmarshal(raw, v); err != nil {
			t.Fatalf("read %s: %v", raw, err)
		}
	}
	isOpt := dst.Kind() == reflect.Struct && strings.HasPrefix(dst.Type().Name(), "Opt[")
	switch {
	case isOpt:
		dst.FieldByName("Set").SetBool(true)
		if string(raw) == "null" {
			dst.FieldByName("Null").SetBool(true)
			return
		}
		fillBody(t, dst.FieldByName("Value"), raw)
	case dst.Kind() == reflect.Struct:
		var fields map[string]json.RawMessage
		into(&fields)
		fillFields(t, dst, fields)
	case dst.Kind() == reflect.Slice && dst.Type().Elem().Kind() == reflect.Struct:
		var items []json.RawMessage
		into(&items)
		dst.Set(reflect.MakeSlice(dst.Type(), len(items), len(items)))
		for i := range items {
			fillBody(t, dst.Index(i), items[i])
		}
	default:
		into(dst.Addr().Interface())
	}
}

func fillFields(t tester, dst reflect.Value, fields map[string]json.RawMessage) {
	t.Helper()
	for i := range dst.NumField() {
		f := dst.Type().Field(i)
		if f.Anonymous {
			fillFields(t, dst.Field(i), fields)
		} else if raw, given := fields[f.Tag.Get("json")]; given {
			fillBody(t, dst.Field(i), raw)
		}
	}
}
