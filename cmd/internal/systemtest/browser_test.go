package systemtest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"switchyard/cmd/internal/node"
)

// TestBrowser_ReadsAListOfIssues does what a page of an allowed origin has its visitor's
// browser do: a preflight, a read of a large list, and a change with the list's tag.
func TestBrowser_ReadsAListOfIssues(t *testing.T) {
	t.Parallel()
	const page = "https://app.example"
	n := inProcess(t, func(c *node.Config) { c.CORSOrigins = []string{page} })
	c := NewClient("http://"+n.HTTPAddr(), "", 1)
	o, err := c.Onboard(t.Context(), "Browsers", "browsers")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	path := "/workspaces/" + o.Workspace.ID + "/issues"
	var last struct{ ID string }
	for range 5 {
		answer, err := c.Do(t.Context(), "POST", path, map[string]string{"title": "A page", "description": strings.Repeat("It is slow. ", 50)})
		if err != nil || answer.Status != http.StatusCreated {
			t.Fatalf("%v %v", answer, err)
		}
		if err := json.Unmarshal(answer.Body, &last); err != nil {
			t.Fatal(err)
		}
	}
	browser := http.Client{Transport: &http.Transport{DisableCompression: true}} // as browsers, it asks by itself
	t.Cleanup(browser.CloseIdleConnections)
	send := func(method, path string, headers ...string) Answer {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.HTTPAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", page)
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			req.Header.Set(name, value)
		}
		resp, err := browser.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != page {
			t.Errorf("%s %s: Access-Control-Allow-Origin is %q", method, path, got)
		}
		return Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}
	}
	if resp := send("OPTIONS", path, "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: authorization"); resp.Status != http.StatusNoContent {
		t.Errorf("the preflight: %d", resp.Status)
	}
	if resp := send("GET", path); resp.Status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", resp.Status)
	}
	credential := "Authorization: Bearer " + c.Token
	resp := send("GET", path, credential, "Accept-Encoding: gzip, deflate, br")
	if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Origin, Accept-Encoding" {
		t.Fatalf("%v", resp.Header)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(resp.Body))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Issues []struct{ ID string } }
	if err := json.NewDecoder(unpacked).Decode(&list); err != nil || len(list.Issues) != 5 {
		t.Errorf("%d issues, %v", len(list.Issues), err)
	}
	issue := path + "/" + last.ID
	packed, plain := send("GET", issue, credential, "Accept-Encoding: zstd"), send("GET", issue, credential)
	tag := packed.Header.Get("ETag")
	if packed.Header.Get("Content-Encoding") != "zstd" || plain.Header.Get("Content-Encoding") != "" || tag == "" || strings.HasPrefix(tag, "W/") || plain.Header.Get("ETag") != tag {
		t.Errorf("packed %v, plain %v", packed.Header, plain.Header)
	}
	if resp := send("GET", issue, credential, "If-None-Match: "+tag, "Accept-Encoding: gzip"); resp.Status != http.StatusNotModified {
		t.Errorf("with the tag of another coding: %d", resp.Status)
	}
	if resp := send("DELETE", issue, credential, "If-Match: "+tag); resp.Status >= 300 {
		t.Errorf("a change with the tag of a compressed answer: %d", resp.Status)
	}
}
