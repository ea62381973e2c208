package tracker

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestTooMany(t *testing.T) {
	t.Parallel()
	for text, n := range map[string]int{
		`1`: 1, ` "a,b[{" `: 1, `[]`: 1, `{ }`: 1, `[ 1 ]`: 2, `[[],[]]`: 3, `{"a":{"b":[1,"\\",null]}, "c\"[": true}`: 7,
		`[{"a":1},{"a":1}]`: 5, `[[[[]]]]`: 4, "[\n1,\t\"]\"]": 3, `["\"",","]`: 3,
	} {
		if TooMany([]byte(text), n) || !TooMany([]byte(text), n-1) {
			t.Errorf("%s does not count as %d", text, n)
		}
	}
	for _, broken := range []string{"", "[", "]", `"`, `"\`, `[,,]`, `}{`} {
		TooMany([]byte(broken), 0) // does not panic
	}
}

func TestTooMany_CountsAsTheDecoderDoes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var text strings.Builder
		writeValue(&text, r, 4)
		var value any
		if err := json.Unmarshal([]byte(text.String()), &value); err != nil {
			t.Fatalf("%v in %s", err, text.String())
		}
		if n := valuesIn(value); TooMany([]byte(text.String()), n) || !TooMany([]byte(text.String()), n-1) {
			t.Fatalf("%s does not count as %d", text.String(), n)
		}
	}
}

// writeValue writes a value without a name that is given twice.
func writeValue(b *strings.Builder, r *rand.Rand, depth int) {
	space := func() { b.WriteString([]string{"", "", " ", "\n\t"}[r.IntN(4)]) }
	space()
	defer space()
	kind := r.IntN(6)
	if depth == 0 {
		kind = r.IntN(4)
	}
	if kind < 4 {
		b.WriteString([]string{`"[,\\\"{"`, "-1.5e3", "null", `""`}[kind])
		return
	}
	b.WriteByte("[{"[kind-4])
	for i := range r.IntN(4) {
		if i > 0 {
			b.WriteByte(',')
		}
		if kind == 5 {
			space()
			b.WriteString([]string{`"a"`, `"{b,"`, `"\""`}[i] + ":")
		}
		writeValue(b, r, depth-1)
	}
	space()
	b.WriteByte("]}"[kind-4])
}

func valuesIn(value any) int {
	n := 1
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			n += valuesIn(one)
		}
	case map[string]any:
		for _, one := range v {
			n += valuesIn(one)
		}
	}
	return n
}

func TestEachProperty(t *testing.T) {
	t.Parallel()
	var got []string
	use := func(name string, value []byte) error {
		got = append(got, name+"="+string(value))
		return nil
	}
	if err := eachProperty([]byte(` {"a": 1,"b\"" :{"c":[2]}, "a":null} `), use); err != nil || strings.Join(got, " ") != `a=1 b"={"c":[2]} a=null` {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"", "[]", "5", "null", "{", `{"a"`, `{"a":}`} {
		if err := eachProperty([]byte(text), func(string, []byte) error { return nil }); err == nil {
			t.Errorf("%s passes", text)
		}
	}
	if err := eachProperty([]byte(`{"a":1,"b":2}`), func(name string, _ []byte) error { return errors.New(name) }); err == nil || err.Error() != "a" {
		t.Errorf("the error of a use is %v", err)
	}
}

// Nothing is kept of the parts of a request that have no effect, of which there may be any number.
func TestRequests_KeepWhatTheyUse(t *testing.T) {
	t.Parallel()
	var faults Faults
	patch := readConfigPatch([]byte(`{`+names("x", 1000)+`,"y":"z","color":"red","botToken":null}`), &faults)
	if len(patch) != 2 || *patch["color"] != "red" || patch["botToken"] != nil || !faults.Has("config.x1") {
		t.Errorf("a config of %d keys", len(patch))
	}
	var c helpdeskConversation
	parts := strings.Repeat(`{},{"body":"<br>"},{"body":"a","author":{"type":"admin"}},`, 100) + strings.Repeat(`{"body":"b"},`, maxParts) + `{"body":"c"}`
	if err := json.Unmarshal([]byte(`{"id":1,"conversation_parts":{"conversation_parts":[`+parts+`]}}`), &c); err != nil || len(c.Parts.List) != maxParts || c.Parts.List[maxParts-1].Body != "b" {
		t.Errorf("%d parts, %v", len(c.Parts.List), err)
	}
	for text, fits := range map[string]bool{"null": true, "[]": true, "{}": false, "5": false, `[5]`: false, `[{"body":5}]`: false} {
		if err := json.Unmarshal([]byte(text), new(helpdeskParts)); (err == nil) != fits {
			t.Errorf("parts of %s: %v", text, err)
		}
	}
	if _, err := parseLines([]byte(`{"type":"end","counts":{` + names("x", maxImportValues) + `}}`)); err == nil || !strings.Contains(err.Error(), "JSON values") {
		t.Errorf("a line of many values: %v", err)
	}
}
