package httpapi

import (
	"strings"
	"testing"
)

// The body of an operation without properties may be left out. One that is sent is held to the rules of all bodies.
func TestBody_OfAnOperationWithoutProperties(t *testing.T) {
	t.Parallel()
	const json, text = "Content-Type: application/json", "Content-Type: text/plain"
	for name, row := range map[string]struct {
		body, header string
		status       int
		fault        string
	}{
		"none":             {"", "X: y", 200, ""},
		"none, but a type": {"", text, 200, ""},
		"spaces":           {" \n", json, 200, ""},
		"empty":            {"{}", json, 200, ""},
		"unknown property": {`{"a":[1]}`, "X: y", 200, ""},
		"cut":              {"{", json, 400, `"path":"","message":"The body is not valid JSON`},
		"trailing":         {"{} {}", json, 400, `"path":"","message":"The body has something`},
		"twice":            {`{"a":1,"a":2}`, json, 400, `"path":"a","message":"Is given more than once.`},
		"array":            {"[]", json, 400, `"path":"","message":"The body must be a JSON object, not an array.`},
		"null":             {"null", json, 400, `"path":"","message":"The body must be a JSON object, not null.`},
		"no UTF-8":         {"{\"a\":\"\xff\"}", json, 400, `"path":"","message":"The body is not valid JSON`},
		"NUL":              {`{"a":"\u0000"}`, json, 400, `"path":"a","message":"Must not contain NUL.`},
		"number":           {`{"a":1e999}`, json, 400, `"path":"","message":"Has a number out of the range`},
		"deep":             {`{"a":` + strings.Repeat("[", 100), json, 400, `"path":"","message":"The body is nested`},
		"type":             {"{}", text, 415, ""},
		"encoding":         {"{}", "Content-Encoding: gzip", 415, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.do(t, "POST", watch, row.body, row.header)
			if a.StatusCode != row.status {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			if !strings.Contains(a.body, row.fault) {
				t.Errorf("%s, want %s", a.body, row.fault)
			}
			if _, _, calls := b.engine.seen(); (calls != 0) != (row.status == 200) {
				t.Errorf("the engine was asked %d times", calls)
			}
		})
	}
	if a := setup(t).do(t, "DELETE", things+"/x", "{", text); a.StatusCode != 204 && a.StatusCode != 200 {
		t.Errorf("a body of DELETE: %d %s", a.StatusCode, a.body)
	}
}
