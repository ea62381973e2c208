package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A header that the client announces as a trailer reaches the owner all the same, and so do
// the headers between nodes: without the client's address nothing would count for it.
func TestForward_TrailerHidesNoHeaders(t *testing.T) {
	t.Parallel()
	at := newAtlas("b")
	entry := at.join(t, "a")
	owner := at.join(t, "b", func(c *Config) { c.RequestTimeout = time.Hour })
	announced := "Trailer: " + strings.Join([]string{headerClient, headerTimeLeft, headerIntroduces, "X-Request-Id", idempotencyKey}, ", ")
	// The owner is asked about the caller of a large body first, and does nothing then.
	large := `{"wait":0,"note":"` + strings.Repeat("x", 2*freeBytes) + `"}`
	if got := entry.do(t, "POST", "/w/"+workspaceID+"/take", large, announced); got.StatusCode != 201 {
		t.Fatalf("%d %s", got.StatusCode, got.body)
	}
	if _, _, calls := owner.engine.seen(); calls != 1 {
		t.Errorf("%d calls for one request", calls)
	}
	got := entry.do(t, "POST", things, thingBody, announced, "X-Request-Id: mine", "Idempotency-Key: k")
	if got.StatusCode != 201 || got.Header.Get("X-Request-Id") != "mine" {
		t.Fatalf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
	req, _, _ := owner.engine.seen()
	if req.ID != "mine" || req.Address.String() != "127.0.0.1" || req.Idempotency == nil || req.Idempotency.Key != "k" {
		t.Errorf("the request is from %v with id %s and key %v", req.Address, req.ID, req.Idempotency)
	}
	if left := time.Until(req.Deadline); left > entry.cfg.RequestTimeout {
		t.Errorf("the owner has %s left", left)
	}
}

// The owner takes the host of a forwarded request for one that was checked, so the request has
// no other host in its target.
func TestForward_HostOfTheTarget(t *testing.T) {
	t.Parallel()
	at := newAtlas("b")
	type sent struct{ uri, host string }
	seen := make(chan sent, 1)
	at.haunt(t, "b", func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			seen <- sent{req.RequestURI, req.Host}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
				return
			}
		}
	})
	entry := at.join(t, "a") // its connections end before those of the other node
	const asked = things + "?limit=2&search=a%20b"
	for _, row := range []struct{ uri, host, want string }{
		{"", "localhost:9", "localhost:9"},
		{"", "evil.example", entry.addr},
		{"http://evil.example", "localhost:9", entry.addr},
		{"HTTPS://localhost:8", "evil.example", "localhost:8"},
	} {
		got := entry.raw(t, 1, "GET "+row.uri+asked+" HTTP/1.1\r\nHost: "+row.host+"\r\nAuthorization: Bearer "+token+"\r\n\r\n")[0]
		if got.StatusCode != 200 {
			t.Fatalf("%s: %d %s", row.uri, got.StatusCode, got.body)
		}
		if one := <-seen; one != (sent{asked, row.want}) {
			t.Errorf("%s with Host %s is sent on as %v", row.uri, row.host, one)
		}
	}
	entry.raw(t, 1, "GET http://evil.example"+things+"? HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	if one := <-seen; one.uri != things+"?" {
		t.Errorf("an empty query: %s", one.uri)
	}
}

// The headers of a request may be as large on a node that forwards it as on the owner.
func TestForward_LargestHeaders(t *testing.T) {
	t.Parallel()
	at := newAtlas("b")
	entry, owner := at.join(t, "a"), at.join(t, "b")
	request := func(size int) string {
		head := "GET " + things + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nTraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nX-Filler: "
		return head + strings.Repeat("x", size-len(head)-4) + "\r\n\r\n"
	}
	for _, node := range []*bundle{entry, owner} {
		if got := node.raw(t, 1, request(node.cfg.MaxHeaderBytes))[0]; got.StatusCode != 201 {
			t.Errorf("as large as they may be: %d %s", got.StatusCode, got.body)
		}
		if got := node.raw(t, 1, request(node.cfg.MaxHeaderBytes+1))[0]; got.StatusCode != 431 {
			t.Errorf("a byte more: %d %s", got.StatusCode, got.body)
		}
	}
}
