package resultschema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"switchyard/internal/testkit"
)

// failer is a test, a benchmark or a rapid.T.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// holds checks a value against a schema, and that the search for the first fault has
// the same result as the search for all. It returns nil if the schema is not valid.
func holds(t failer, schema, value string) (s *Schema, fits bool) {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		return nil, false
	}
	collected := s.Check([]byte(value))
	n, err := parse([]byte(value), maxValues)
	if err != nil {
		if len(collected) == 0 {
			t.Fatalf("what can't be read fits: %s", value)
		}
		return nil, false
	}
	c := &check{left: maxSteps}
	if fits := c.fits(s.root, n, nil); fits != (len(collected) == 0) && !c.spent() && !slices.ContainsFunc(collected, func(text string) bool { return strings.HasPrefix(text, "Too much work") }) {
		t.Fatalf("%s against %s: fits %t, collected %q", schema, value, fits, collected)
	}
	return s, len(collected) == 0
}

// agrees checks a value here and with the library's own validation, which has no
// limits, so it is only for harmless schemas.
func agrees(t failer, schema, value string) {
	t.Helper()
	s, fits := holds(t, schema, value)
	if s == nil {
		return
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	lib := jsonschema.NewCompiler()
	lib.DefaultDraft(jsonschema.Draft7)
	lib.UseLoader(nowhere{})
	if err := lib.AddResource(home, doc); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	compiled, err := lib.Compile(home)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	if want := compiled.Validate(v); (want == nil) != fits {
		t.Fatalf("%s\nagainst %s\n collected %q\nwant %v", schema, value, s.Check([]byte(value)), want)
	}
}

// author generates related schemas and values.
type author struct{ *rapid.T }

func (a author) pick(list ...string) string { return rapid.SampledFrom(list).Draw(a.T, "pick") }
func (a author) number(most int) int        { return rapid.IntRange(0, most).Draw(a.T, "n") }

func (a author) list(most int, item func() string) string {
	list := make([]string, a.number(most))
	for i := range list {
		list[i] = item()
	}
	return strings.Join(list, ",")
}

func (a author) name() string { return a.pick("a", "b", "aa", "x1") }

func (a author) members(most int, of func() string) string {
	seen := map[string]bool{}
	var list []string
	for range a.number(most) {
		if name := a.name(); !seen[name] {
			seen[name] = true
			list = append(list, strconv.Quote(name)+":"+of())
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

func (a author) value(depth int) string {
	kind := a.number(7)
	if depth == 0 {
		kind = a.number(4)
	}
	switch kind {
	case 0:
		return a.pick("null", "true", "false")
	case 1, 2:
		return a.pick("0", "1", "1.0", "-1", "2", "1.5", "0.5", "10e-1", "15e-1", "3", "1e2", "100")
	case 3, 4:
		return a.pick(`""`, `"a"`, `"aa"`, `"b"`, `"é"`, `"2026-01-01"`, `"x1"`, `"10.0.0.1"`)
	case 5:
		return "[" + a.list(4, func() string { return a.value(depth - 1) }) + "]"
	}
	return a.members(4, func() string { return a.value(depth - 1) })
}

func (a author) schema(depth int) string {
	if depth == 0 {
		return a.pick("true", "false", "{}", `{"type":"string"}`, `{"type":"integer"}`, `{"type":"object"}`, `{"$ref":"#/definitions/d0"}`, `{"$ref":"#/definitions/d1"}`)
	}
	seen := map[string]bool{}
	var list []string
	for range 1 + a.number(3) {
		name, of := a.keyword(depth - 1)
		if !seen[name] {
			seen[name] = true
			list = append(list, strconv.Quote(name)+":"+of)
		}
	}
	return "{" + strings.Join(list, ",") + "}"
}

func (a author) keyword(depth int) (name, of string) {
	sub := func() string { return a.schema(depth) }
	some := func() string { return "[" + sub() + "," + sub() + "]" }
	switch k := a.number(15); k {
	case 0:
		return "type", a.pick(`"string"`, `"number"`, `"integer"`, `"object"`, `"array"`, `["null","boolean"]`, `["integer","string"]`)
	case 1:
		return a.pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), a.pick("0", "1", "1.5", "10e-1")
	case 2:
		return "multipleOf", a.pick("1", "0.5", "2", "15e-1")
	case 3:
		return a.pick("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), a.pick("0", "1", "2", "2.0")
	case 4:
		return "pattern", a.pick(`"^a"`, `"a$"`, `"."`, `"^[a-z0-9]*$"`)
	case 5:
		return a.pick("allOf", "anyOf", "oneOf"), some()
	case 6:
		return a.pick("not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems"), sub()
	case 7:
		return "items", sub()
	case 8:
		return "items", some()
	case 9:
		return "properties", a.members(3, sub)
	case 10:
		return "patternProperties", `{"^a":` + sub() + `,"1$":` + sub() + `}`
	case 11:
		return "required", a.pick(`[]`, `["a"]`, `["a","b"]`)
	case 12:
		return "dependencies", `{"a":["b"],"b":` + sub() + `}`
	case 13:
		return "uniqueItems", a.pick("true", "false")
	case 14:
		return a.pick("const", "default"), a.value(2)
	}
	if a.number(1) == 0 {
		return "format", a.pick(`"date"`, `"ipv4"`, `"email"`, `"no such"`)
	}
	return "enum", "[" + a.value(1) + `,"zz"]`
}

// For any schema the library accepts the same values.
func TestCheck_AgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := author{t}
		// The referenced schemas apply to parts of the value, so that none refers to
		// itself.
		schema := fmt.Sprintf(`{"definitions":{"d0":{"type":["array","string","object"],"items":%s,"properties":{"a":%s}},"d1":{"not":%s}},"allOf":[%s]}`,
			a.schema(1), a.schema(1), a.pick(`{"type":"null"}`, `{"$ref":"#/definitions/d0"}`), a.schema(3))
		if _, err := Compile([]byte(schema)); err != nil && !strings.Contains(err.Error(), "itself") && !strings.Contains(err.Error(), "enum") {
			t.Fatalf("%s: %v", schema, err)
		}
		for range 5 {
			agrees(t, schema, a.value(3))
		}
	})
}

// No schema and value make a check panic, or contradict itself. With -fuzz none makes
// it long, either, since the fuzzer stops at slow inputs.
func FuzzCheck(f *testing.F) {
	testkit.Corpus(f)
	for _, h := range hostiles() {
		f.Add(h.schema, h.value)
	}
	f.Add(`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/definitions/x"}},"definitions":{"x":{"enum":[1,"a"]}}}`, `{"a":1.0}`)
	f.Add(`{"$id":"http://a/b","items":{"$ref":"#c"},"definitions":{"c":{"$id":"#c","pattern":"^\\d+$"}}}`, `["12","x"]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		if len(value) > 256<<10 {
			return
		}
		holds(t, schema, value)
	})
}
