package tracker

import (
	"encoding/json"
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
