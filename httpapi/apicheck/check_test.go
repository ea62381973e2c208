package apicheck

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const description = `{
	"openapi": "3.1.0",
	"paths": {
		"/things/{id}": {"get": {"responses": {
			"200": {"headers": {"X-Request-Id": {"$ref": "#/components/headers/Id"}, "Retry-After": {"schema": {"type": "integer", "minimum": 1}}},
				"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
			"204": {},
			"404": {"$ref": "#/components/responses/NotFound"},
			"default": {"$ref": "#/components/responses/Error"}}}},
		"/things/first": {"get": {"responses": {"200": {"content": {"text/plain": {"schema": {"type": "string"}}}}}}},
		"/routes/{kind}/{key}": {"put": {"responses": {"204": {}}}}
	},
	"components": {
		"headers": {"Id": {"required": true, "schema": {"type": "string", "pattern": "^[a-z]+$"}}},
		"responses": {
			"Error": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}},
			"NotFound": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/Error"}, {"type": "object", "properties": {"code": {"const": "NOT_FOUND"}}}]}}}}},
		"schemas": {
			"Thing": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "next": {"$ref": "#/components/schemas/Thing"}, "at": {"type": "string", "format": "date-time"}, "free": {"type": "object", "additionalProperties": true}}},
			"Error": {"type": "object", "required": ["code"], "properties": {"code": {"type": "string"}, "hint": {"type": "string"}}}}
	}
}`

func TestChecker_Check(t *testing.T) {
	t.Parallel()
	c, err := New([]byte(description))
	if err != nil {
		t.Fatal(err)
	}
	id, inJSON := "X-Request-Id: a", "Content-Type: application/json; charset=utf-8"
	for _, row := range []struct {
		name, method, path string
		status             int
		headers            []string
		body, fault        string
	}{
		{"good", "GET", "/things/x", 200, []string{id, inJSON}, `{"id":"x","next":{"id":"y"},"at":"2026-11-20T21:30:00Z","free":{"a":1}}`, ""},
		{"a head has no body", "HEAD", "/things/x", 200, []string{id, inJSON}, "", ""},
		{"other status", "GET", "/things/x", 201, []string{id}, "", "201 is not declared"},
		{"missing header", "GET", "/things/x", 200, []string{inJSON}, `{"id":"x"}`, "X-Request-Id is missing"},
		{"header that is not declared", "GET", "/things/x", 200, []string{id, inJSON, `ETag: "1"`}, `{"id":"x"}`, "ETag is not declared"},
		{"header of another form", "GET", "/things/x", 200, []string{"X-Request-Id: 7", inJSON}, `{"id":"x"}`, "X-Request-Id"},
		{"header of another type", "GET", "/things/x", 200, []string{id, inJSON, "Retry-After: 0"}, `{"id":"x"}`, "Retry-After"},
		{"other content type", "GET", "/things/x", 200, []string{id, "Content-Type: text/html"}, `{"id":"x"}`, "text/html is not declared"},
		{"unknown property", "GET", "/things/x", 200, []string{id, inJSON}, `{"id":"x","titel":1}`, "titel"},
		{"unknown property below", "GET", "/things/x", 200, []string{id, inJSON}, `{"id":"x","next":{"id":"y","titel":1}}`, "titel"},
		{"missing property", "GET", "/things/x", 200, []string{id, inJSON}, `{}`, "id"},
		{"other type", "GET", "/things/x", 200, []string{id, inJSON}, `{"id":1}`, "got number"},
		{"other format", "GET", "/things/x", 200, []string{id, inJSON}, `{"id":"x","at":"today"}`, "date-time"},
		{"no JSON", "GET", "/things/x", 200, []string{id, inJSON}, `{`, "body"},
		{"body where there is none", "GET", "/things/x", 204, []string{id}, `{}`, "none is declared"},
		{"declared failure", "GET", "/things/x", 404, []string{inJSON}, `{"code":"NOT_FOUND","hint":"h"}`, ""},
		{"declared failure with another code", "GET", "/things/x", 404, []string{inJSON}, `{"code":"GONE"}`, "NOT_FOUND"},
		{"declared failure with more", "GET", "/things/x", 404, []string{inJSON}, `{"code":"NOT_FOUND","more":1}`, "more"},
		{"other failure", "GET", "/things/x", 500, []string{inJSON}, `{"code":"INTERNAL"}`, ""},
		{"other failure of another shape", "GET", "/things/x", 500, []string{inJSON}, `{"error":"x"}`, "error"},
		{"a fixed segment wins", "GET", "/things/first", 200, []string{"Content-Type: text/plain"}, `x`, ""},
		{"a last parameter of two segments", "PUT", "/routes/vcs/octo/hump", 200, nil, ``, "200 is not declared"},
		{"no such path", "GET", "/nowhere", 404, []string{inJSON}, `{"code":"NOT_FOUND"}`, ""},
		{"no such path, head", "HEAD", "/nowhere", 404, []string{inJSON}, ``, ""},
		{"no such path, another shape", "GET", "/nowhere", 404, []string{inJSON}, `{"error":"x"}`, "error"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			for _, h := range row.headers {
				name, value, _ := strings.Cut(h, ": ")
				header.Set(name, value)
			}
			err := c.Check(row.method, row.path, row.status, header, []byte(row.body))
			if row.fault == "" && err != nil || row.fault != "" && (err == nil || !strings.Contains(err.Error(), row.fault)) {
				t.Errorf("%v, want %q", err, row.fault)
			}
		})
	}
}

func TestWatch_KeepsFaults(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "a")
		_, _ = io.WriteString(w, map[bool]string{true: `{"id":"x"}`, false: `{"titel":"x"}`}[r.URL.Path == "/things/good"])
	}))
	t.Cleanup(server.Close)
	w, err := NewWatch([]byte(description))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: w.Over(http.DefaultTransport)}
	for i, path := range []string{"/things/good", "/things/bad", "/things/bad", "/elsewhere"} {
		res, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if n := len(w.Faults()); n != min(i, 1) {
			t.Errorf("after %s there are %d faults: %v", path, n, w.Faults())
		}
	}
}

// A watch takes a failure that an operation does not declare only from the server itself.
func TestWatch_WantsFailuresDeclared(t *testing.T) {
	t.Parallel()
	w, err := NewWatch([]byte(description))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"a"}}
	if err := w.checker.Check("GET", "/things/x", http.StatusMethodNotAllowed, header, []byte(`{"code":"METHOD_NOT_ALLOWED"}`)); err != nil {
		t.Error(err)
	}
	if err := w.checker.Check("GET", "/things/x", http.StatusConflict, header, []byte(`{"code":"CONFLICT"}`)); err == nil || !strings.Contains(err.Error(), "409 is not declared") {
		t.Errorf("a conflict that is not declared: %v", err)
	}
}
