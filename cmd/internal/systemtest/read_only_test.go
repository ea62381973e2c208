package systemtest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestReadOnly_OfTheService: every node refuses changes as soon as the mode is answered, also
// after the nodes were killed and started again, and takes them when it has ended.
func TestReadOnly_OfTheService(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	root := func(m *Member, method string, body any, want int) {
		t.Helper()
		a, err := m.Client(f.Root).Do(ctx, method, "/cluster/read-only", body)
		if err != nil || a.Status != want {
			t.Fatalf("%s: %v, %d %s", method, err, a.Status, a.Body)
		}
	}
	c := f.members[0].Client("")
	var homes []Onboarded
	for _, slug := range []string{"one", "two", "three", "four"} { // in several shards
		o, err := c.onboardInsisting(ctx, slug, slug)
		if err != nil {
			t.Fatal(err)
		}
		homes = append(homes, o)
	}
	create := func(want int) {
		t.Helper()
		for _, m := range f.members {
			for _, o := range homes {
				a, err := createAt(ctx, m, &o)
				if err != nil || a.Status != want || want == http.StatusServiceUnavailable && !strings.Contains(string(a.Body), "Maintenance") {
					t.Errorf("%s at %s: %v, %d %s, want %d", o.Workspace.ID, m.Name, err, a.Status, a.Body, want)
				}
			}
		}
	}
	create(http.StatusCreated)
	root(f.members[1], "PUT", object{"reason": "Maintenance"}, http.StatusOK)
	create(http.StatusServiceUnavailable)
	if a, err := c.Do(ctx, "POST", "/workspaces/onboard", object{"name": "n", "slug": "meanwhile"}); err != nil || a.Status != http.StatusServiceUnavailable {
		t.Errorf("onboarding: %v, %d %s", err, a.Status, a.Body)
	}
	for _, m := range f.members {
		m.Kill()
	}
	for _, m := range f.members {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.stand(ctx, 3); err != nil {
		t.Fatal(err)
	}
	if err := f.members[0].Await(ctx, "leaderships are shared out", Shared); err != nil {
		t.Fatal(err)
	}
	create(http.StatusServiceUnavailable)
	root(f.members[2], "DELETE", nil, http.StatusNoContent)
	create(http.StatusCreated)
}

func createAt(ctx context.Context, m *Member, o *Onboarded) (Answer, error) {
	return m.Client(o.Token.Token).Do(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", object{"title": "x"})
}

// TestReadOnly_TimersAndDeliveriesWait: what is due in a read-only workspace comes when the mode
// has ended.
func TestReadOnly_TimersAndDeliveriesWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, time.Minute)
	defer cancel()
	p, err := Launch(ctx, binary(t), t.TempDir(), []string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}, "--webhooks-allow-http", "--webhooks-allow-private")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	o, err := NewClient(p.URL, "", 2).Onboard(ctx, "Quiet", "quiet")
	if err != nil {
		t.Fatal(err)
	}
	received := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		received <- string(body)
	}))
	defer receiver.Close()
	c, operator := NewClient(p.URL, o.Token.Token, 2), NewClient(p.URL, rootToken, 2)
	home := "/workspaces/" + o.Workspace.ID
	mode := "/cluster" + home + "/read-only"
	for _, call := range []struct {
		c            *Client
		method, path string
		body         any
		want         int
	}{
		{c, "POST", home + "/webhook-subscriptions", object{"url": receiver.URL}, 201},
		{operator, "PUT", mode, object{"reason": "Quiet"}, 200},
		{operator, "POST", home + "/issues", object{"title": "While it waits"}, 201},
	} {
		if err := call.c.Decode(ctx, call.method, call.path, call.body, call.want, nil); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case body := <-received:
		t.Errorf("delivered in read-only mode: %s", body)
	case <-time.After(300 * time.Millisecond):
	}
	if err := operator.Decode(ctx, "DELETE", mode, nil, 204, nil); err != nil {
		t.Fatal(err)
	}
	select {
	case body := <-received:
		if !strings.Contains(body, "While it waits") {
			t.Errorf("delivered: %s", body)
		}
	case <-ctx.Done():
		t.Error("not delivered after the mode has ended")
	}
}
