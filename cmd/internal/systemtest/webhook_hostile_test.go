package systemtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/internal/testkit"
)

// hookView is what the tests look at of a webhook.
type hookView struct {
	ID             string
	IsActive       bool
	DisabledReason *string
}

type deliveryView struct {
	ID, Status     string
	Attempts       int
	LastStatusCode *int
	LastError      *string
}

// speaks is a receiver that answers each connection in its own way.
func speaks(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					answer(conn)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// Receivers that misbehave get what is promised, and the one beside them does not
// notice.
func TestWebhooks_ReceiversOfEveryKind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	n := inProcess(t, func(c *node.Config) { c.WebhooksAllowHTTP, c.WebhooksAllowCIDR = true, []string{"127.0.0.0/8"} })
	c := NewClient("http://"+n.HTTPAddr(), "", 4)
	o, err := c.Onboard(ctx, "Hostile", "hostile")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	base := "/workspaces/" + o.Workspace.ID
	var secret atomic.Int64 // requests that reached what must not be reached
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { secret.Add(1) }))
	defer inside.Close()
	says := func(text string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, text) }
	}
	kinds := []struct {
		name   string
		answer func(net.Conn)
		status string // of the first delivery, soon
		error  string // a part of it
	}{
		{"fails", says("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), "pending", "status 500"},
		{"hangs", func(c net.Conn) { _, _ = io.ReadAll(c) }, "pending", ""},
		{"redirects", says("HTTP/1.1 302 There\r\nLocation: " + inside.URL + "\r\nContent-Length: 0\r\n\r\n"), "pending", "redirect"},
		{"is gone", says("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), "failed", "410"},
		{"closes mid-body", says("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"), "succeeded", ""},
		{"lies about length", says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nmuch more than it said"), "succeeded", ""},
		{"closes at once", func(net.Conn) {}, "pending", "closed before"},
	}
	subscribe := func(url string) (h hookView) {
		if err := c.Decode(ctx, "POST", base+"/webhook-subscriptions", map[string]any{"url": url}, http.StatusCreated, &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	var good atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("User-Agent") == "Switchyard-Webhooks/1" {
			good.Add(1)
		}
	}))
	defer receiver.Close()
	subscribe(receiver.URL)
	ids := make([]string, len(kinds))
	for i, k := range kinds {
		ids[i] = subscribe(speaks(t, k.answer)).ID
	}
	const events = 20
	began := time.Now()
	for i := range events {
		if err := c.Decode(ctx, "POST", base+"/issues", map[string]any{"title": fmt.Sprint("issue ", i)}, http.StatusCreated, nil); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Await(ctx, t, "deliveries to the good one", func() bool { return good.Load() == events })
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("the good one waited %s", took)
	}
	first := func(id string) (d deliveryView) {
		var list struct {
			Deliveries []deliveryView
			NextCursor string
		}
		if err := c.Decode(ctx, "GET", base+"/webhook-subscriptions/"+id+"/deliveries?limit=100", nil, http.StatusOK, &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Deliveries) == 0 || list.NextCursor != "" {
			t.Fatalf("%d deliveries", len(list.Deliveries))
		}
		return list.Deliveries[len(list.Deliveries)-1]
	}
	for i, k := range kinds {
		if k.name == "hangs" {
			continue
		}
		var d deliveryView
		testkit.Await(ctx, t, k.name, func() bool { d = first(ids[i]); return d.Attempts > 0 })
		said := ""
		if d.LastError != nil {
			said = *d.LastError
		}
		if d.Status != k.status || k.error == "" && said != "" || !strings.Contains(said, k.error) || strings.Contains(said, "127.0.0.1") {
			t.Errorf("%s: %+v, %q", k.name, d, said)
		}
		var h hookView
		if err := c.Decode(ctx, "GET", base+"/webhook-subscriptions/"+ids[i], nil, http.StatusOK, &h); err != nil {
			t.Fatal(err)
		}
		if gone := k.name == "is gone"; h.IsActive == gone || gone && *h.DisabledReason != "gone" {
			t.Errorf("%s: %+v", k.name, h)
		}
	}
	if secret.Load() != 0 {
		t.Error("a redirect was followed")
	}
	if answer, err := c.Do(ctx, "POST", base+"/webhook-subscriptions", map[string]any{"url": "http://10.0.0.1/"}); err != nil || answer.Status != http.StatusBadRequest {
		t.Errorf("a private address: %d, %v", answer.Status, err)
	}
}

// A delivery is judged by its address at the time of sending: an address that was
// allowed once, or that a name has come to mean, is not reached where the node's
// flags say no.
func TestWebhooks_AddressesAreJudgedWhenDialed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var reached atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inside.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(inside.URL, "http://"))

	data := t.TempDir()
	lax, stop := stoppable(t, func(c *node.Config) { c.Data, c.WebhooksAllowHTTP, c.WebhooksAllowPrivate = data, true, true })
	c := NewClient("http://"+lax.HTTPAddr(), "", 4)
	o, err := c.Onboard(ctx, "Judged", "judged")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	base := "/workspaces/" + o.Workspace.ID
	ids := map[string]string{}
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "localhost"} {
		var h hookView
		if err := c.Decode(ctx, "POST", base+"/webhook-subscriptions", map[string]any{"url": "http://" + host + ":" + port}, http.StatusCreated, &h); err != nil {
			t.Fatal(err)
		}
		ids[host] = h.ID
	}
	if err := c.Decode(ctx, "POST", base+"/issues", map[string]any{"title": "Before"}, http.StatusCreated, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Await(ctx, t, "the deliveries that are allowed", func() bool { return reached.Load() >= int64(len(ids)) })
	stop()

	strict := inProcess(t, func(c *node.Config) { c.Data, c.WebhooksAllowHTTP = data, true })
	c.URL = "http://" + strict.HTTPAddr()
	before := reached.Load()
	for _, host := range []string{
		"127.0.0.1", "127.0.0.1.", "localhost", "x.localhost", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "0.0.0.0", "169.254.169.254",
		"2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.1", "10.1.2.3", "[fd00::1]", "[fe80::1]",
	} {
		answer, err := c.Do(ctx, "POST", base+"/webhook-subscriptions", map[string]any{"url": "http://" + host + ":" + port})
		if err != nil || answer.Status != http.StatusBadRequest || !strings.Contains(string(answer.Body), `"path":"url"`) {
			t.Errorf("%s: %v, %d %s", host, err, answer.Status, answer.Body)
		}
	}
	if err := c.Decode(ctx, "POST", base+"/issues", map[string]any{"title": "After"}, http.StatusCreated, nil); err != nil {
		t.Fatal(err)
	}
	for host, id := range ids {
		var list struct{ Deliveries []deliveryView }
		testkit.Await(ctx, t, "a try to reach "+host, func() bool {
			if err := c.Decode(ctx, "GET", base+"/webhook-subscriptions/"+id+"/deliveries?limit=1", nil, http.StatusOK, &list); err != nil {
				t.Fatal(err)
			}
			return list.Deliveries[0].Attempts > 0 && list.Deliveries[0].Status != "succeeded"
		})
		if d := list.Deliveries[0]; d.LastError == nil || !strings.Contains(*d.LastError, "does not send to") || d.LastStatusCode != nil {
			t.Errorf("%s: %+v", host, d)
		}
	}
	if reached.Load() != before {
		t.Error("a private address was reached")
	}
}
