package main

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The command writes the entries of all pages, each in a line, also behind a page without any.
func TestClusterAudit_WritesEveryPage(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"entries":[{"id":"4", "action":"node.drained"},{"id":"3","changes":{"a":{"from":null,"to":"x\ny"}}}],"nextCursor":"b"}`,
		"b": `{"entries":[],"nextCursor":"c"}`,
		"c": `{"entries":[{"id":"1"}]}`,
	}
	var asked []string
	c := asking(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+"?"+r.URL.RawQuery)
		_, _ = fmt.Fprint(w, pages[r.URL.Query().Get("cursor")])
	})
	var out bytes.Buffer
	if err := (clusterAuditCmd{Action: "node.*", From: "2026-01-01T00:00:00Z"}).run(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"4","action":"node.drained"}` + "\n" + `{"id":"3","changes":{"a":{"from":null,"to":"x\ny"}}}` + "\n" + `{"id":"1"}` + "\n"; out.String() != want {
		t.Errorf("got %q\nwant %q", &out, want)
	}
	if len(asked) != 3 || asked[1] != "/cluster/audit?action=node.%2A&cursor=b&from=2026-01-01T00%3A00%3A00Z&limit=100" {
		t.Errorf("asked %q", asked)
	}
	out.Reset()
	asked = nil
	if err := (clusterAuditCmd{Workspace: new("a/b")}).run(t.Context(), c, &out); err != nil || asked[0] != "/workspaces/a/b/audit?limit=100" {
		t.Errorf("of a workspace: %v, asked %q", err, asked)
	}
}

func TestClusterAudit_EndsWhenPagesRepeat(t *testing.T) {
	t.Parallel()
	c := asking(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"entries":[],"nextCursor":"x"}`) })
	err := clusterAuditCmd{}.run(t.Context(), c, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "same page") {
		t.Error(err)
	}
}

// A variable that is not set must not turn the audit of one workspace into that of all.
func TestClusterAudit_RefusesAnEmptyWorkspace(t *testing.T) {
	t.Parallel()
	for workspace, refused := range map[string]bool{"": true, "01931f6e-7a3c-7def-8123-456789abcdef": false} {
		_, err := parse(t, "cluster", "audit", "--workspace", workspace)
		if is := err != nil && strings.Contains(err.Error(), "--workspace"); is != refused {
			t.Errorf("%q: %v", workspace, err)
		}
	}
	if _, err := parse(t, "cluster", "audit"); err != nil {
		t.Error(err)
	}
}
