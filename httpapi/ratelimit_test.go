package httpapi

import (
	"fmt"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{
		"": {}, "off": {}, "100/s": {100, time.Second}, "600/m": {600, time.Minute}, "1/h": {1, time.Hour},
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"100", "0/s", "-1/s", "1.5/s", "100/d", "s", "/s", "2000000/s", "100/s/s"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q was taken as %v", text, got)
		}
	}
}

func TestRateLimits_RefillsAndTellsWhen(t *testing.T) {
	t.Parallel()
	l := newRateLimits(Rate{Requests: 2, Per: time.Second})
	now := time.Unix(1000, 0)
	for want := 1; want >= 0; want-- {
		if v := l.take("a", now); v.retry != 0 || v.remaining != want || v.limit != 2 {
			t.Fatalf("with %d left to come: %+v", want, v)
		}
	}
	v := l.take("a", now)
	if v.retry != 500*time.Millisecond || v.remaining != 0 || v.reset != 1 {
		t.Errorf("past the limit: %+v", v)
	}
	if v := l.take("b", now); v.retry != 0 {
		t.Errorf("another credential was refused: %+v", v)
	}
	if v := l.take("a", now.Add(500*time.Millisecond)); v.retry != 0 {
		t.Errorf("refused after the wait: %+v", v)
	}
}

// However many credentials there are, the buckets are bounded, those that are
// full again go, and nobody is locked out.
func TestRateLimits_Bounded(t *testing.T) {
	t.Parallel()
	l := newRateLimits(Rate{Requests: 1, Per: time.Second})
	l.maxCount, l.sweepAt = 100, 10
	now := time.Unix(1000, 0)
	for i := range 1000 {
		if v := l.take(fmt.Sprint(i), now); v.retry != 0 {
			t.Fatalf("credential %d was refused its first request", i)
		}
	}
	if n := len(l.byToken); n > 100 {
		t.Errorf("%d buckets", n)
	}
	l.take("later", now.Add(2*time.Second))
	if n := len(l.byToken); n != 1 {
		t.Errorf("%d buckets after all were full again", n)
	}
}

// The first large request of a caller by way of another node counts once, although that node asks first
// whether it is admitted.
func TestRateLimits_CountLargeRequestsOnce(t *testing.T) {
	t.Parallel()
	limit := func(c *Config) { c.Rate = Rate{Requests: 1, Per: time.Hour} }
	a := newAtlas("b")
	entry := a.join(t, "a", limit)
	a.join(t, "b", limit)
	body := largeBody()
	if got := entry.raw(t, 1, largeHead(body)+body)[0]; got.StatusCode != 201 || got.Header.Get("RateLimit-Remaining") != "0" {
		t.Errorf("%d %v %s", got.StatusCode, got.Header, got.body)
	}
}

// Clients can't ask whether a request is admitted: each of their requests counts, at each node.
func TestRateLimits_CountClientsThatSayTheyAreNodes(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	limit := func(c *Config) { c.Rate = Rate{Requests: 4, Per: time.Hour} }
	entry, owner := a.join(t, "a", limit), a.join(t, "b", limit)
	for n, node := range []*bundle{entry, owner, entry, owner} {
		got := node.do(t, "POST", things, thingBody, "Switchyard-Introduces: 1", "Trailer: Switchyard-Introduces")
		if want := itoa(3 - n); got.StatusCode != 201 || got.Header.Get("RateLimit-Remaining") != want {
			t.Errorf("request %d: %d %v %s", n+1, got.StatusCode, got.Header, got.body)
		}
	}
	for _, node := range []*bundle{entry, owner} {
		tooMany(t, node.do(t, "POST", things, thingBody, "Switchyard-Introduces: 1"), "--rate-limit")
	}
}
