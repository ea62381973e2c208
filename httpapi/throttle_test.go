package httpapi

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"switchyard/actors/tracker"
)

// tooMany reads a refusal for a rate, which names the flag.
func tooMany(t *testing.T, a *answer, flag string) {
	t.Helper()
	if a.StatusCode != 429 || a.failure.Code != tracker.CodeTooManyRequests || a.Header.Get("Retry-After") == "" ||
		a.Header.Get("RateLimit-Limit") == "" || !strings.Contains(a.failure.Message, flag) {
		t.Errorf("%d %v %s, want a refusal that names %s", a.StatusCode, a.Header, a.body, flag)
	}
}

// Requests without a valid credential have a rate for each address; those with one
// and health checks don't.
func TestThrottle_Anonymous(t *testing.T) {
	t.Parallel()
	const rate = 3
	limits := func(c *Config) {
		c.Limits = Limits{Anonymous: Rate{Requests: rate, Per: time.Hour}}
		c.Limits.Proxies, _ = ParseProxies([]string{"127.0.0.0/8"}, "")
	}
	at := newAtlas("b")
	entry, owner := at.join(t, "a", limits), at.join(t, "b", limits)
	client := 0
	for _, node := range []*bundle{owner, entry} {
		for name, request := range map[string]string{
			"public":    "POST /open HTTP/1.1\r\nHost: h\r\nContent-Length: 13\r\n",
			"no token":  "GET " + things + " HTTP/1.1\r\nHost: h\r\n",
			"bad token": "GET " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer swy_bad\r\n",
			"docs":      "GET /docs HTTP/1.1\r\nHost: h\r\n",
		} {
			client++
			body := ""
			if name == "public" {
				body = thingBody
			}
			send := func(request string) *answer {
				return node.raw(t, 1, request+fmt.Sprintf("X-Forwarded-For: 10.0.0.%d\r\n\r\n", client)+body)[0]
			}
			for i := range rate {
				if a := send(request); a.StatusCode >= 429 || name != "docs" && a.Header.Get("RateLimit-Remaining") != itoa(rate-1-i) {
					t.Fatalf("%s %d: %d %v", name, i, a.StatusCode, a.Header)
				}
			}
			tooMany(t, send(request), "--anonymous-rate")
			body = ""
			if a := send("GET " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n"); a.StatusCode >= 400 {
				t.Errorf("%s: a valid token: %d %s", name, a.StatusCode, a.body)
			}
			if a := send("GET /readyz HTTP/1.1\r\nHost: h\r\n"); a.StatusCode != 200 {
				t.Errorf("%s: readiness: %d %s", name, a.StatusCode, a.body)
			}
		}
	}
}

// Addresses beyond those that are remembered share one bucket: making up more of them
// gets nobody past the rate.
func TestThrottle_MadeUpAddresses(t *testing.T) {
	t.Parallel()
	l := newAddressRates(Rate{Requests: 5, Per: time.Hour})
	l.maxCount, l.sweepAt = 10, 10
	now := time.Unix(1000, 0)
	passed := 0
	for i := range 1000 {
		if l.take(fmt.Sprint(i), now).retry == 0 {
			passed++
		}
	}
	if passed != 10+5 || len(l.byToken) != 10 {
		t.Errorf("%d passed, %d buckets", passed, len(l.byToken))
	}
}

// A table that stays full is not swept with each request: a sweep looks at all buckets,
// and holds up everyone.
func TestThrottle_FullTableIsSweptSeldom(t *testing.T) {
	t.Parallel()
	l := newAddressRates(Rate{Requests: 5, Per: time.Minute})
	l.maxCount, l.sweepAt = 10, 10
	now := time.Unix(1000, 0)
	for i := range 20 {
		l.take(fmt.Sprint(i), now)
	}
	for i := range 5 { // a bucket that would be dropped shows a sweep
		l.byToken["0"] = rate.NewLimiter(l.refill, 5)
		l.take(fmt.Sprint("new", i), now.Add(sweepEvery/10*time.Duration(i+1)))
		if l.byToken["0"] == nil {
			t.Errorf("swept %v after the last time", sweepEvery/10*time.Duration(i+1))
		}
	}
	if l.take("last", now.Add(sweepEvery)); l.byToken["0"] != nil || l.byToken["last"] == nil {
		t.Error("not swept when it was time")
	}
}

// Strangers can use up neither the rates of known callers at their address, nor the
// places of the table for these.
func TestThrottle_StrangersLeaveOnboardingToKnownCallers(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits.Onboarding = Rate{Requests: 2, Per: time.Hour} })
	x := &exchange{ctx: &fasthttp.RequestCtx{}, conn: &conn{address: netip.MustParseAddr("192.0.2.1")}, start: time.Unix(1000, 0)}
	try := func(op *tracker.Op, caller tracker.Caller) error {
		x.route = &route{Route: Route{Op: op}}
		return b.Server.throttleCreation(x, &caller)
	}
	b.Server.onboarding.maxCount, b.Server.onboarding.sweepAt = 1, 1
	for i := range 4 {
		if err := try(tracker.OnboardWorkspace, tracker.Caller{}); (err != nil) != (i >= 2) {
			t.Fatalf("stranger's try %d: %v", i, err)
		}
	}
	x.account = workspaceAccount
	for i := range 4 {
		if err := try(tracker.CreateWorkspace, tracker.Caller{Principal: tracker.Principal{ID: "u"}}); (err != nil) != (i >= 2) {
			t.Errorf("known caller's try %d: %v", i, err)
		}
	}
}
