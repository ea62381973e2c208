package httpscript

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", `"7"`)
	if r.URL.Path == "/empty" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"method":"`+r.Method+`","path":"`+r.URL.RequestURI()+`","type":"`+r.Header.Get("Content-Type")+`","id":"01931f6e-7a3c-7def-8123-456789abcdef","at":"2026-11-20T21:30:00.123Z","n":12,"list":[1,2,3],"none":null,"body":`+string(body)+`}`)
}

const passing = `# a comment
POST /things/{{who}}?u={{unique}}
X-Other: {{who}}

# another
{"a": [1, {"b": "{{who}}"}]}

> 201
> ETag: {{tag=any}}
> Missing: {{absent}}
> {"method": "POST", "path": "{{~^/things/ada\\?u=[0-9a-f]{8}$}}", "type": "application/json", "id": "{{id=uuid}}", "at": "{{time}}", "n": 12.0,
>   "list": [1, 2, "..."], "none": "{{any}}", "gone": "{{absent}}", "body": {"a": [1, {"b": "ada"}]}}

for x | y as name
PUT /things/{{id}}/{{name}}
Content-Type: text/plain

{"tag": {{n}}}
> 201
> {"path": "/things/01931f6e-7a3c-7def-8123-456789abcdef/{{name}}", "type": "text/plain", "body": {"tag": 5}}

DELETE /empty

> 204
> {{none}}
`

func TestScript_Passes(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	s, err := Parse("passing.txt", passing)
	if err != nil {
		t.Fatal(err)
	}
	vars, err := s.Run(t.Context(), Target{BaseURL: server.URL, Vars: map[string]string{"who": "ada", "n": "5"}})
	if err != nil {
		t.Fatal(err)
	}
	if vars["tag"] != `"7"` || vars["name"] != "y" {
		t.Errorf("variables %v", vars)
	}
}

func TestScript_Fails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(server.Close)
	for want, text := range map[string]string{
		"expected status 200":             "GET /x\n\n{}\n\n> 200\n",
		"is missing, expected \"x\"":      "GET /x\n\n{}\n\n> 201\n> {\"gone\": \"x\"}\n",
		"body.n: is 12, expected 13":      "GET /x\n\n{}\n\n> 201\n> {\"n\": 13}\n",
		"expected nothing":                "GET /x\n\n{}\n\n> 201\n> {\"n\": \"{{absent}}\"}\n",
		"expected uuid":                   "GET /x\n\n{}\n\n> 201\n> {\"at\": \"{{uuid}}\"}\n",
		"expected time":                   "GET /x\n\n{}\n\n> 201\n> {\"id\": \"{{time}}\"}\n",
		"body.none: is null":              "GET /x\n\n{}\n\n> 201\n> {\"none\": \"{{some}}\"}\n",
		"has 3 elements, expected 2":      "GET /x\n\n{}\n\n> 201\n> {\"list\": [1, 2]}\n",
		"body.list[1]: is 2, expected 3":  "GET /x\n\n{}\n\n> 201\n> {\"list\": [1, 3, \"...\"]}\n",
		"header ETag: is \"\\\"7\\\"\"":   "GET /x\n\n{}\n\n> 201\n> ETag: 8\n",
		"header Gone: is missing":         "GET /x\n\n{}\n\n> 201\n> Gone: {{any}}\n",
		"no variable \"nobody\"":          "GET /{{nobody}}\n\n> 201\n",
		"the expected body is not JSON":   "GET /x\n\n{}\n\n> 201\n> {oops\n",
		"expected no body":                "GET /x\n\n{}\n\n> 201\n> {{none}}\n",
		"f.txt:3: GET /x":                 "\n\nGET /x\n\n{}\n\n> 500\n",
		"with name = \"b\": expected sta": "for a | b as name\nGET /x\n\n{}\n\n> 201\n> {\"path\": \"/x\"}\n\nfor b as name\nGET /{{name}}\n\n{}\n\n> 404\n",
	} {
		s, err := Parse("f.txt", text)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if _, err := s.Run(t.Context(), Target{BaseURL: server.URL}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nonsense\n", "get /x\n> 200\n", "GET /x\nno header\n> 200\n", "GET /x\n\n> two\n", "GET /x\n", "for a b\nGET /x\n> 200\n", "GET /x\n\nGET /y\n"} {
		if _, err := Parse("f.txt", text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
