package systemtest

import (
	"fmt"
	"strings"
	"testing"
)

// The watch of all logs finds what it is there to find.
func TestSecretWatch_FindsSecrets(t *testing.T) {
	t.Parallel()
	token := "swy_" + strings.Repeat("Ab3_", 20)
	for name, c := range map[string]struct {
		answer, log string
		faults      int
	}{
		"nothing":              {`{"token":"` + token + `"}`, "level=INFO msg=ready request=01931f6e-7a3c-7def-8123-456789abcdef\n", 0},
		"a token":              {"", "level=INFO credential=" + token + "\n", 1},
		"a secret of webhooks": {"", "level=INFO url=\"https://h/?whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\"\n", 1},
		"the operator's token": {"", "level=WARN auth=\"Bearer operator/of+the=test\"\n", 1},
		"a key":                {"", "AGE-SECRET-KEY-1QQQQ\n", 1},
		"the token of a share": {`{"share": {"token": "AAAABBBBCCCCDDDD-_AAAABBBBCCCCDD"}}`, "path=/shared/issues/AAAABBBBCCCCDDDD-_AAAABBBBCCCCDD?x\n", 1},
		"two lines":            {`{"secret":"hush-hush-hush-hush"}`, "a hush-hush-hush-hush\nb " + token + "\n", 2},
		"no whole line":        {"", token, 0},
	} {
		w := NewSecretWatch()
		w.Give("operator/of+the=test", "short")
		log := w.Log()
		for _, part := range strings.SplitAfter(c.log, "_") { // lines arrive in parts
			if _, err := fmt.Fprint(log, part); err != nil {
				t.Fatal(err)
			}
		}
		w.Answer([]byte(c.answer))
		if faults := w.Faults(); len(faults) != c.faults {
			t.Errorf("%s: %q, want %d", name, faults, c.faults)
		}
	}
}
