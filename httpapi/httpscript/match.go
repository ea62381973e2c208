package httpscript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	uuidText = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	timeText = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
)

// patterns are the placeholders for values that are not known beforehand.
var patterns = []string{"any", "some", "uuid", "time", "absent"}

// matchBody compares a response's body with the expected one.
func matchBody(want string, body []byte, vars map[string]string) error {
	switch want {
	case "":
		return nil
	case "{{none}}":
		if len(body) > 0 {
			return fmt.Errorf("expected no body")
		}
		return nil
	}
	expected, err := decode([]byte(want))
	if err != nil {
		return fmt.Errorf("the expected body is not JSON: %w", err)
	}
	got, err := decode(body)
	if err != nil {
		return fmt.Errorf("the body is not JSON: %w", err)
	}
	return match("body", expected, got, true, vars)
}

// decode keeps numbers as they are written.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("something follows the value")
	}
	return v, nil
}

// match compares the value at a place with the expected one.
func match(place string, want, got any, present bool, vars map[string]string) error {
	if text, ok := want.(string); ok {
		if p, ok := patternOf(text); ok {
			return p.match(place, got, present, vars)
		}
		expanded, err := expand(text, vars)
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		want = expanded
	}
	if !present {
		return fmt.Errorf("%s: is missing, expected %s", place, show(want))
	}
	switch want := want.(type) {
	case map[string]any:
		return matchObject(place, want, got, vars)
	case []any:
		return matchArray(place, want, got, vars)
	case json.Number:
		if n, ok := got.(json.Number); ok && sameNumber(want, n) {
			return nil
		}
	default:
		if reflect.DeepEqual(want, got) {
			return nil
		}
	}
	return fmt.Errorf("%s: is %s, expected %s", place, show(got), show(want))
}

func matchObject(place string, want map[string]any, got any, vars map[string]string) error {
	object, ok := got.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: is %s, expected an object", place, show(got))
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value, present := object[name]
		if err := match(place+"."+name, want[name], value, present, vars); err != nil {
			return err
		}
	}
	return nil
}

func matchArray(place string, want []any, got any, vars map[string]string) error {
	array, ok := got.([]any)
	if !ok {
		return fmt.Errorf("%s: is %s, expected an array", place, show(got))
	}
	open := len(want) > 0 && want[len(want)-1] == "..."
	if open {
		want = want[:len(want)-1]
	}
	if len(array) < len(want) || !open && len(array) > len(want) {
		return fmt.Errorf("%s: has %d elements, expected %d", place, len(array), len(want))
	}
	for i := range want {
		if err := match(place+"["+strconv.Itoa(i)+"]", want[i], array[i], true, vars); err != nil {
			return err
		}
	}
	return nil
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// pattern is a placeholder, and the name of the variable that keeps the value.
type pattern struct {
	keep, word string
	re         string
}

func patternOf(text string) (pattern, bool) {
	inner, ok := strings.CutPrefix(text, "{{")
	if !ok || !strings.HasSuffix(inner, "}}") || strings.Count(text, "{{") > 1 {
		return pattern{}, false
	}
	inner = strings.TrimSuffix(inner, "}}")
	if re, ok := strings.CutPrefix(inner, "~"); ok {
		return pattern{re: re}, true
	}
	keep, word, named := strings.Cut(inner, "=")
	if !named {
		keep, word = "", inner
	}
	if re, ok := strings.CutPrefix(word, "~"); ok && named {
		return pattern{keep: keep, re: re}, true
	}
	return pattern{keep: keep, word: word}, slices.Contains(patterns, word)
}

func (p pattern) match(place string, got any, present bool, vars map[string]string) error {
	if p.word == "absent" {
		if present {
			return fmt.Errorf("%s: is %s, expected nothing", place, show(got))
		}
		return nil
	}
	if !present {
		return fmt.Errorf("%s: is missing", place)
	}
	text, isText := got.(string)
	ok := true
	switch {
	case p.re != "":
		re, err := regexp.Compile(p.re)
		if err != nil {
			return fmt.Errorf("%s: %w", place, err)
		}
		ok = isText && re.MatchString(text)
	case p.word == "some":
		ok = got != nil
	case p.word == "uuid":
		ok = isText && uuidText.MatchString(text)
	case p.word == "time":
		ok = isText && timeText.MatchString(text)
	}
	if !ok {
		return fmt.Errorf("%s: is %s, expected %s%s", place, show(got), p.word, p.re)
	}
	if p.keep != "" {
		if !isText {
			text = show(got)
		}
		vars[p.keep] = text
	}
	return nil
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
