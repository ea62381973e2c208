package httpapi

import (
	"strings"
	"testing"
	"time"
)

// A header that the client announces as a trailer reaches the owner all the same, and so do
// the headers between nodes: without the client's address nothing would count for it.
func TestForward_TrailerHidesNoHeaders(t *testing.T) {
	t.Parallel()
	at := newAtlas("b")
	entry, owner := at.join(t, "a", func(c *Config) { c.RequestTimeout = 2 * time.Second }), at.join(t, "b")
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
	if left := time.Until(req.Deadline); left > 2*time.Second {
		t.Errorf("the owner has %s left", left)
	}
}
