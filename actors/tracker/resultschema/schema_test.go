package resultschema

import (
	"strings"
	"testing"
)

func compile(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// Each fault has the place in the value and the requirement.
func TestCheck_Tells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		schema, value string
		want          []string
	}{
		{`{"type":"object"}`, `{}`, nil},
		{`{"type":"object"}`, `[]`, []string{"Must be an object, not an array."}},
		{`{"type":["string","null"]}`, `7`, []string{"Must be null or a string, not a number."}},
		{`{"type":"integer"}`, `1.0`, nil},
		{`{"type":"integer"}`, `15e-1`, []string{"Must be an integer, not a number."}},
		{`{"properties":{"a":{"items":{"required":["b"]}}}}`, `{"a":[{"b":1},{}]}`, []string{"a[1].b: is required."}},
		{`{"required":["a","b"]}`, `{}`, []string{"a: is required.", "b: is required."}},
		{`{"dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"c":1}`, []string{"b: is required beside a.", "d: is required."}},
		{`{"additionalProperties":false,"properties":{"a":true},"patternProperties":{"^x":{"type":"null"}}}`, `{"a":1,"x1":null,"x2":2,"c":3}`,
			[]string{"x2: must be null, not a number.", "c: is not a known property."}},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, []string{"abc: must not have this name, by the schema under propertyNames."}},
		{`{"minProperties":2}`, `{"a":1}`, []string{"Must have at least 2 properties."}},
		{`{"maxProperties":1}`, `{"a":1,"b":1}`, []string{"Must have at most 1 property."}},
		{`{"items":[{"type":"string"}],"additionalItems":false}`, `[1,2]`, []string{"[0]: must be a string, not a number.", "[1]: must not be there."}},
		{`{"minItems":1}`, `[]`, []string{"Must have at least 1 item."}},
		{`{"maxItems":1}`, `[1,2]`, []string{"Must have at most 1 item."}},
		{`{"uniqueItems":true}`, `[1,{"a":[1,2],"b":null},1.5,{"b":null,"a":[1.0,20e-1]}]`, []string{"Must not have equal items, and those at 1 and 3 are."}},
		{`{"uniqueItems":true}`, `[0,false,"",null,[],{},[0],[false],-1,1]`, nil},
		{`{"contains":{"const":2}}`, `[1]`, []string{"Must have an item that fits the schema under contains."}},
		{`{"enum":["a",1,null,[true],{"x":1}]}`, `"b"`, []string{`Must be one of "a", 1, null, [true], {"x": 1}.`}},
		{`{"enum":[1.50]}`, `15e-1`, nil},
		{`{"const":{"a":[1]}}`, `{"a":[1,2]}`, []string{`Must be {"a": [1]}.`}},
		{`{"minimum":1,"exclusiveMaximum":3}`, `0`, []string{"Must be at least 1."}},
		{`{"maximum":1.5,"multipleOf":0.1}`, `2.05`, []string{"Must be at most 1.5.", "Must be a multiple of 0.1."}},
		{`{"exclusiveMinimum":3}`, `3`, []string{"Must be greater than 3."}},
		{`{"minLength":2,"maxLength":3}`, `"日本語日"`, []string{"Must have at most 3 characters."}},
		{`{"pattern":"^[a-z]+$"}`, `"A"`, []string{"Must match the pattern ^[a-z]+$."}},
		{`{"format":"date"}`, `"2026-02-30"`, []string{"Must be of the format date."}},
		{`{"format":"regex"}`, `"("`, []string{"Must be of the format regex."}},
		{`{"format":"something of one's own"}`, `"x"`, nil},
		{`{"not":{"type":"string"}}`, `"x"`, []string{"Must not be as the schema under not says."}},
		{`{"anyOf":[{"type":"string"},{"properties":{"a":{"type":"null"}},"required":["a"]}]}`, `{"a":1}`,
			[]string{"Must fit at least one of 2 schemas: must be a string, not an object; or a must be null, not a number."}},
		{`{"oneOf":[{"type":"string"},{"maxLength":2}]}`, `"x"`, []string{"Must fit exactly one of the schemas under oneOf, and fits those at 0 and 1."}},
		{`{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"number"}}`, `[]`, []string{"Must be a number, not an array."}},
		{`{"if":{"type":"string"},"then":{"minLength":1},"else":{"type":"number"}}`, `""`, []string{"Must have at least 1 character."}},
		{`{"definitions":{"n":{"type":"object","properties":{"next":{"$ref":"#/definitions/n"}}}},"$ref":"#/definitions/n"}`, `{"next":{"next":[]}}`, []string{"next.next: must be an object, not an array."}},
		{`{"$defs":{"n":{"type":"null"}},"items":{"$ref":"#/$defs/n"}}`, `[null,1]`, []string{"[1]: must be null, not a number."}},
		{`{"$id":"http://example.com/a","definitions":{"n":{"$id":"b","type":"null"}},"items":{"$ref":"b"}}`, `[1]`, []string{"[0]: must be null, not a number."}},
		{`{"properties":{"a":false}}`, `{"a":1}`, []string{"a: must not be there."}},
		{`{}`, `{"a":1,"a":2}`, []string{`Is not JSON: jsontext: duplicate object member name "a".`}},
		{`{}`, `1e999`, []string{"Can't be checked: a number with an exponent beyond 400."}},
		{`{}`, strings.Repeat("[", 65) + strings.Repeat("]", 65), []string{"Can't be checked: nested more than 64 levels deep."}},
		{`{}`, "[" + strings.Repeat("1,", maxValues) + "1]", []string{"Can't be checked: more values than can be checked."}},
	} {
		got := compile(t, c.schema).Check([]byte(c.value))
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s against %.80s\n got %q\nwant %q", c.schema, c.value, got, c.want)
		}
	}
}

func TestCheck_TellsSoMuchAndNoMore(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"type":"string","enum":["`+strings.Repeat("x", 1000)+`"]},"propertyNames":{"maxLength":1}}`)
	got := s.Check([]byte("[" + strings.Repeat("1,", 1000) + "1]"))
	if len(got) != maxFaults+1 || got[maxFaults] != "There may be more." {
		t.Errorf("%d faults, the last %q", len(got), got[len(got)-1])
	}
	for _, value := range []string{`["y"]`, `{"` + strings.Repeat("é", 5000) + `":1}`} {
		for _, text := range s.Check([]byte(value)) {
			if len(text) > 3*maxFaultText {
				t.Errorf("a fault of %d bytes", len(text))
			}
		}
	}
}

func TestCompile_Refuses(t *testing.T) {
	t.Parallel()
	list := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	for _, c := range []struct{ name, schema, want string }{
		{"array", `[]`, "must be an object"},
		{"text", `{`, "unexpected EOF"},
		{"names twice", `{"type":"string","type":"null"}`, "duplicate"},
		{"type", `{"properties":{"x":{"type":"strin"}}}`, "properties.x.type: "},
		{"keyword", `{"minLength":"1"}`, "minLength: got string, want integer"},
		{"behind a ref", `{"$ref":"#/x/y","x":{"y":{"type":7}}}`, "x.y.type: "},
		{"remote", `{"$ref":"https://example.com/a.json"}`, "refers to https://example.com/a.json: a schema can only refer to itself"},
		{"relative", `{"$ref":"a.json"}`, "a schema can only refer to itself"},
		{"file", `{"$ref":"file:///etc/passwd"}`, "a schema can only refer to itself"},
		{"base", `{"$id":"file:///etc/","items":{"$ref":"passwd"}}`, "a schema can only refer to itself"},
		{"meta-schema", `{"$ref":"http://json-schema.org/draft-07/schema#"}`, "a schema can only refer to itself"},
		{"nowhere", `{"$ref":"#/definitions/a"}`, "not found"},
		{"dialect", `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, "$schema: must be"},
		{"dialect within", `{"definitions":{"a":{"$id":"http://a/","$schema":"https://json-schema.org/draft/2020-12/schema"}},"items":{"$ref":"http://a/"}}`, "another dialect"},
		{"dialect elsewhere", `{"definitions":{"a":{"$id":"http://a/","$schema":"http://b/schema"}}}`, "a schema can only refer to itself"},
		{"ring", `{"$ref":"#"}`, "refers to itself"},
		{"wide ring", `{"definitions":{"a":{"allOf":[{"$ref":"#/definitions/b"}]},"b":{"not":{"$ref":"#/definitions/a"}}}, "items":{"$ref":"#/definitions/a"}}`, "refers to itself"},
		{"pattern", `{"pattern":"(?=a)"}`, "not in the syntax of RE2"},
		{"pattern of a property", `{"patternProperties":{"(":true}}`, "not in the syntax of RE2"},
		{"long pattern", `{"pattern":"` + strings.Repeat("a", maxPattern+1) + `"}`, "a pattern has at most 512 bytes"},
		{"repetition", `{"pattern":"(ab|c{100}){10}"}`, "repetitions written out"},
		{"repetition of classes", `{"pattern":"\\pL{100}"}`, "repetitions written out"},
		{"more repetition than Go takes", `{"pattern":"a{1001}"}`, "invalid repeat count"},
		{"one pattern often", `{"allOf":[` + list(20, `{"pattern":"a{500}"}`) + `]}`, ""},
		{"large", `{"title":"` + strings.Repeat("x", MaxSchema) + `"}`, "at most 32768 bytes"},
		{"deep", strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40), "nested at most 32 levels"},
		{"values", `{"enum":[` + list(maxSchemaValues, "1") + `]}`, "more values"},
		{"parts", `{"allOf":[` + list(maxSchemaParts, "{}") + `]}`, "subschemas"},
		{"references", `{"allOf":[` + list(maxNames+1, `{"$ref":"#/definitions/a"}`) + `],"definitions":{"a":{}}}`, "$id and $ref"},
		{"digits", `{"minimum":` + strings.Repeat("1", maxDigits+1) + `}`, "a number of more than"},
		{"exponent", `{"minimum":1e-401}`, "exponent"},
	} {
		_, err := Compile([]byte(c.schema))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		case err != nil && (len(err.Error()) > maxFaultText+3 || strings.Contains(err.Error(), home)):
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

func TestCompile_PatternsTogether(t *testing.T) {
	t.Parallel()
	var list []string
	for _, c := range "abcdef" {
		list = append(list, `{"pattern":"`+string(c)+`{900}"}`)
	}
	if _, err := Compile([]byte(`{"allOf":[` + strings.Join(list, ",") + `]}`)); err == nil || !strings.Contains(err.Error(), "taken together") {
		t.Errorf("error %v", err)
	}
}

// A schema, with its patterns and formats, is safe for concurrent use.
func TestSchema_ManyAtOnce(t *testing.T) {
	t.Parallel()
	s := compile(t, `{"items":{"format":"regex","pattern":"a"},"uniqueItems":true}`)
	done := make(chan []string)
	for range 8 {
		go func() { done <- s.Check([]byte(`["a","ab","b"]`)) }()
	}
	for range 8 {
		if got := <-done; len(got) != 1 {
			t.Errorf("got %q", got)
		}
	}
}
