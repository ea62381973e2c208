package systemtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"switchyard/actors/webhook"
	"switchyard/cmd/internal/node"
)

// A small change of a large issue is delivered without the issue, signed as it is sent,
// and says where the event can be read.
func TestWebhooks_LeaveOutWhatIsLarge(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.WebhooksAllowHTTP, c.WebhooksAllowPrivate = true, true })
	home, err := NewClient("http://"+n.HTTPAddr(), "", 1).Onboard(t.Context(), "Large", "large")
	if err != nil {
		t.Fatal(err)
	}
	f := &filled{T: t, c: NewClient("http://"+n.HTTPAddr(), home.Token.Token, 1), id: home.Workspace.ID}
	type delivery struct {
		header http.Header
		body   []byte
	}
	arrived := make(chan delivery, 4)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		arrived <- delivery{r.Header, body}
	}))
	t.Cleanup(receiver.Close)
	secret := f.do("POST", "/webhook-subscriptions", object{"url": receiver.URL, "events": []string{"issue.updated"}}, http.StatusCreated)["secret"].(string)
	issue := f.make("/issues", object{"title": "Large", "description": strings.Repeat("é<", 100_000)})
	f.do("PATCH", "/issues/"+issue, object{"priority": "high"}, http.StatusOK)

	got := <-arrived
	if want := webhook.Signature(secret, got.header.Get("X-Tracker-Timestamp"), got.body); got.header.Get("X-Tracker-Signature") != want {
		t.Errorf("signature %s, want %s", got.header.Get("X-Tracker-Signature"), want)
	}
	var told struct {
		toldEvent
		DataOmitted struct {
			Bytes int
			URL   string
		}
	}
	if err := json.Unmarshal(got.body, &told); err != nil {
		t.Fatal(err)
	}
	if len(got.body) > 4<<10 || told.Data != nil || told.DataOmitted.Bytes < 300_000 || fmt.Sprint(told.Changes) != "map[priority:map[from:medium to:high]]" {
		t.Errorf("%d bytes: %.500s", len(got.body), got.body)
	}
	path, local := strings.CutPrefix(told.DataOmitted.URL, f.c.URL)
	if !local {
		t.Fatalf("to be read at %s", told.DataOmitted.URL)
	}
	var page struct{ Events []toldEvent }
	if err := f.c.Decode(t.Context(), "GET", path, nil, http.StatusOK, &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Events) != 1 || page.Events[0].ID != told.ID || page.Events[0].Data["id"] != issue {
		t.Errorf("there are %d events there", len(page.Events))
	}
}
