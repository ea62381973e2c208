package webhook

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// snippet returns the code that docs/webhooks.md shows for a language.
func snippet(t *testing.T, language string) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(doc), "\n```"+language+"\n")
	code, _, ended := strings.Cut(rest, "\n```\n")
	if !found || !ended {
		t.Fatalf("docs/webhooks.md has no %s", language)
	}
	return code + "\n"
}

// request is a receiver's request, and whether its signature is valid.
type request struct {
	name                         string
	timestamp, signature, secret string
	body                         string
	good                         bool
}

func requests() []request {
	const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
	const other = "whsec_YW5vdGhlciBzZWNyZXQgb2YgMjQgYnl0"
	const body = `{"id":"x","data":{"title":"it's ünïcode \"$(id)\" %s \\"}}`
	now := strconv.FormatInt(time.Now().Unix(), 10)
	late := strconv.FormatInt(time.Now().Add(-6*time.Minute).Unix(), 10)
	early := strconv.FormatInt(time.Now().Add(6*time.Minute).Unix(), 10)
	good := Signature(secret, now, []byte(body))
	return []request{
		{"good", now, good, secret, body, true},
		{"rotating, the new secret", now, good + "," + Signature(other, now, []byte(body)), secret, body, true},
		{"rotating, the old secret", now, Signature(other, now, []byte(body)) + "," + good, secret, body, true},
		{"another body", now, good, secret, body + " ", false},
		{"another secret", now, Signature(other, now, []byte(body)), secret, body, false},
		{"another time", strconv.FormatInt(time.Now().Unix()-1, 10), good, secret, body, false},
		{"old", late, Signature(secret, late, []byte(body)), secret, body, false},
		{"of the future", early, Signature(secret, early, []byte(body)), secret, body, false},
		{"cut short", now, good[:62], secret, body, false},
		{"no signature", now, "", secret, body, false},
	}
}

// run runs a program and reports whether it accepted the request.
func run(t *testing.T, program string, args ...string) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	switch text := strings.TrimSpace(string(out)); {
	case err == nil && text == "true":
		return true
	case err == nil && text == "false":
		return false
	default:
		t.Fatalf("%s: %v\n%s", program, err, out)
		return false
	}
}

var update = flag.Bool("update", false, "note in testdata that the examples of the documents were run")

// ranBy runs an example's program with an interpreter, if that is installed, and notes
// the program's hash in testdata (with -update). The tests need nothing but Go: without
// the interpreter, the program must be one that was run before. So a changed example
// can't pass anywhere before it was run.
func ranBy(t *testing.T, language, program string, interpreters []string, run func(paths []string)) {
	t.Helper()
	hash := fmt.Sprintf("%x\n", sha256.Sum256([]byte(program)))
	note := filepath.Join("testdata", "ran."+language)
	noted, err := os.ReadFile(note)
	if err != nil && !*update {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range interpreters {
		path, err := exec.LookPath(name)
		if err != nil {
			if string(noted) != hash {
				t.Fatalf("the %s in docs/webhooks.md has changed and must be run: install %s, and run the test with -update", language, name)
			}
			t.Skipf("needs %s, which is not installed; the example is unchanged since it was run", name)
		}
		paths = append(paths, path)
	}
	run(paths)
	switch {
	case t.Failed() || string(noted) == hash:
	case *update:
		if err := os.WriteFile(note, []byte(hash), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the %s in docs/webhooks.md has changed: run the test with -update to note that it was run", language)
	}
}

// inFile writes a text to a temporary file.
func inFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func check(t *testing.T, believe func(t *testing.T, r request) bool) {
	t.Helper()
	for _, r := range requests() {
		if got := believe(t, r); got != r.good {
			t.Errorf("%s: believed is %t", r.name, got)
		}
	}
}

func TestDocs_Go(t *testing.T) {
	t.Parallel()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	source := `package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

` + snippet(t, "go") + `
func main() {
	for i := 1; i+3 < len(os.Args); i += 4 {
		fmt.Println(verify(os.Args[i], http.Header{"X-Tracker-Timestamp": {os.Args[i+1]}, "X-Tracker-Signature": {os.Args[i+2]}}, []byte(os.Args[i+3]), time.Now()))
	}
}
`
	if _, err := parser.ParseFile(token.NewFileSet(), "main.go", source, parser.AllErrors); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", inFile(t, "main.go", source)}
	for _, r := range requests() {
		args = append(args, r.secret, r.timestamp, r.signature, r.body)
	}
	cmd := exec.CommandContext(t.Context(), goTool, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Fields(string(out))
	for i, r := range requests() {
		if i >= len(lines) || lines[i] != strconv.FormatBool(r.good) {
			t.Errorf("%s: believed is %v", r.name, lines)
		}
	}
}

func TestDocs_TypeScript(t *testing.T) {
	t.Parallel()
	// Old versions of node don't strip types, so the test removes the annotations of
	// one signature.
	program := strings.NewReplacer(
		"secret: string", "secret", "headers: Record<string, string>", "headers", "body: Buffer", "body", "now: number = ", "now = ", "): boolean {", ") {",
	).Replace(snippet(t, "typescript")) + `
const [secret, timestamp, signature, body] = process.argv.slice(2);
console.log(verify(secret, { "x-tracker-timestamp": timestamp, "x-tracker-signature": signature }, Buffer.from(body)));
`
	ranBy(t, "typescript", program, []string{"node"}, func(paths []string) {
		file := inFile(t, "verify.mjs", program)
		check(t, func(t *testing.T, r request) bool {
			return run(t, paths[0], file, r.secret, r.timestamp, r.signature, r.body)
		})
	})
}

func TestDocs_Python(t *testing.T) {
	t.Parallel()
	program := snippet(t, "python") + `

import sys
secret, timestamp, signature, body = sys.argv[1:]
print("true" if verify(secret, {"x-tracker-timestamp": timestamp, "x-tracker-signature": signature}, body.encode()) else "false")
`
	ranBy(t, "python", program, []string{"python3"}, func(paths []string) {
		file := inFile(t, "verify.py", program)
		check(t, func(t *testing.T, r request) bool {
			return run(t, paths[0], file, r.secret, r.timestamp, r.signature, r.body)
		})
	})
}

func TestDocs_Shell(t *testing.T) {
	t.Parallel()
	program := snippet(t, "sh") + "\nif verify \"$1\" \"$2\" \"$3\" \"$4\"; then echo true; else echo false; fi\n"
	ranBy(t, "sh", program, []string{"sh", "openssl"}, func(paths []string) {
		file := inFile(t, "verify.sh", program)
		check(t, func(t *testing.T, r request) bool {
			return run(t, paths[0], file, r.secret, r.timestamp, r.signature, inFile(t, "body", r.body))
		})
	})
}
