package testkit

import (
	"math"
	"testing"
)

func TestParseInput(t *testing.T) {
	t.Parallel()
	got, err := ParseInput("[]byte(\"\\x00a\\\"\\xff\")\nstring(\"\\u00e9\\n\")\nbyte('\\x05')\nbyte('a')\nbyte('\\'')\nbyte('ÿ')\nint(-7)\nuint64(18446744073709551615)\nbool(true)\n\n")
	if err != nil {
		t.Fatal(err)
	}
	Equal(t, "values", got, []any{[]byte("\x00a\"\xff"), "é\n", byte(5), byte('a'), byte('\''), byte(255), -7, uint64(math.MaxUint64), true})
	for _, bad := range []string{"", "\n", "string(5)", "float32(1)", "byte('€')", "byte(\"a\")", "int(x)", "uint64(-1)", "bool(yes)", "string(\"a\", \"b\")", "[]byte(\"", "f.g(1)"} {
		if got, err := ParseInput(bad); err == nil {
			t.Errorf("%q gives %v", bad, got)
		}
	}
}
