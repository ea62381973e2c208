package httpapi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"switchyard/actors/tracker"
)

// Rate is how many requests a credential may send in a period on one node; the
// zero Rate is no limit (Decision 50).
type Rate struct {
	Requests int
	Per      time.Duration
}

// maxRate bounds the requests of a Rate.
const maxRate = 1_000_000

// ParseRate reads "100/s", "600/m" or "10000/h"; the empty text and "off" are no
// limit.
func ParseRate(text string) (Rate, error) {
	if text == "" || text == "off" {
		return Rate{}, nil
	}
	count, period, _ := strings.Cut(text, "/")
	per, known := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[period]
	n, err := strconv.Atoi(count)
	if err != nil || !known || n < 1 || n > maxRate {
		return Rate{}, fmt.Errorf("rate %q: want a number from 1 to %d and s, m or h, such as 100/s", text, maxRate)
	}
	return Rate{Requests: n, Per: per}, nil
}

// rateLimits holds a token bucket per credential that sent something lately. A
// whole period's requests may come at once.
type rateLimits struct {
	rate   Rate
	refill rate.Limit // per second

	mu      sync.Mutex
	byToken map[string]*rate.Limiter
	shared  *rate.Limiter // of all without a bucket; nil: they have no limit
	sweepAt int           // number of buckets at which the full ones are dropped
	// nextSweep is when a table that stays full is swept again.
	nextSweep time.Time
	maxCount  int
}

// newAddressRates is newRateLimits for rates by address. Addresses are free to make
// up: past the bound on buckets those without one share one.
func newAddressRates(r Rate) *rateLimits {
	l := newRateLimits(r)
	l.shared = rate.NewLimiter(l.refill, r.Requests)
	return l
}

// maxBuckets bounds the buckets held at once. Past it a credential without one is
// let through: the limit protects the service, and must not be a way to lock
// anyone out.
const maxBuckets = 1 << 16

// sweepEvery is the time between sweeps of a table that stays full. A sweep takes
// milliseconds, and any request with a new key could ask for one.
const sweepEvery = time.Second

func newRateLimits(r Rate) *rateLimits {
	return &rateLimits{
		rate: r, refill: rate.Limit(float64(r.Requests) / r.Per.Seconds()),
		byToken: map[string]*rate.Limiter{}, sweepAt: maxBuckets / 16, maxCount: maxBuckets,
	}
}

// verdict is the limit's decision on a request, for the answer's headers.
type verdict struct {
	limit     int
	remaining int
	reset     int           // seconds until the whole limit is there again
	retry     time.Duration // when a refused one may come again; 0: it was not refused
}

// take counts a request of a credential.
func (l *rateLimits) take(token string, now time.Time) verdict {
	bucket := l.bucket(token, now)
	if bucket == nil {
		return verdict{limit: l.rate.Requests, remaining: l.rate.Requests}
	}
	return takeFrom(bucket, now)
}

// takeFrom counts a request in a bucket.
func takeFrom(bucket *rate.Limiter, now time.Time) verdict {
	taken := bucket.AllowN(now, 1)
	left, most, refill := bucket.TokensAt(now), bucket.Burst(), float64(bucket.Limit())
	v := verdict{limit: most, remaining: max(0, int(left)), reset: int(math.Ceil((float64(most) - left) / refill))}
	if !taken {
		v.retry = max(time.Millisecond, time.Duration((1-left)/refill*float64(time.Second)))
	}
	return v
}

// rate notes what a limit has decided about the request, for the answer's headers. Of several
// limits that count it, the headers are about the one that leaves the least.
func (x *exchange) rate(v verdict) {
	if !x.rated || v.retry > x.verdict.retry || x.verdict.retry == 0 && v.remaining < x.verdict.remaining {
		x.rated, x.verdict = true, v
	}
}

func (l *rateLimits) bucket(token string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.byToken[token]; b != nil {
		return b
	}
	if len(l.byToken) >= l.sweepAt && (l.sweepAt < l.maxCount || !now.Before(l.nextSweep)) {
		l.sweep(now)
	}
	if len(l.byToken) >= l.maxCount {
		return l.shared
	}
	b := rate.NewLimiter(l.refill, l.rate.Requests)
	l.byToken[token] = b
	return b
}

// sweep drops the buckets that are full again, which say no more than a new one,
// and waits for twice what is left before the next, so that its cost is spread.
func (l *rateLimits) sweep(now time.Time) {
	for token, b := range l.byToken {
		if b.TokensAt(now) >= float64(l.rate.Requests) {
			delete(l.byToken, token)
		}
	}
	l.nextSweep = now.Add(sweepEvery)
	l.sweepAt = min(l.maxCount, max(maxBuckets/16, 2*len(l.byToken)))
}

// limit counts the request against its credential's rate. The operator has none,
// and requests without a credential have nobody to count them for.
func (s *Server) limit(x *exchange, caller *tracker.Caller) error {
	if s.rates == nil || caller.Token == "" || caller.Root {
		return nil
	}
	if x.rate(s.rates.take(caller.Token, x.start)); x.verdict.retry > 0 {
		return &tracker.Error{
			Code: tracker.CodeTooManyRequests, Message: "The credential has sent too many requests (--rate-limit).",
			Hint: "Wait as long as Retry-After says, and spread the requests.", RetryAfter: x.verdict.retry,
		}
	}
	return nil
}

// appendRate appends the headers of describeRate to the head of a stream. Where another node sends the
// stream they are those that it has sent.
func (x *exchange) appendRate(b []byte) []byte {
	v := &x.verdict
	for i, name := range rateHeaders {
		value := x.ctx.Response.Header.PeekBytes(name)
		if x.rated {
			value = strconv.AppendInt(nil, int64([...]int{v.limit, v.remaining, v.reset}[i]), 10)
		}
		if len(value) > 0 {
			b = append(append(append(append(b, "\r\n"...), name...), ": "...), value...)
		}
	}
	return b
}

// describeRate tells the client where it stands, in the headers of
// draft-ietf-httpapi-ratelimit-headers-06.
func (x *exchange) describeRate() {
	if !x.rated {
		return
	}
	header := &x.ctx.Response.Header
	header.SetCanonical(headerRateLimit, strconv.AppendInt(nil, int64(x.verdict.limit), 10))
	header.SetCanonical(headerRateRemaining, strconv.AppendInt(nil, int64(x.verdict.remaining), 10))
	header.SetCanonical(headerRateReset, strconv.AppendInt(nil, int64(x.verdict.reset), 10))
}
