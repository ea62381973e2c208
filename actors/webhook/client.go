package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

const (
	// wholeTime limits an attempt, from the look-up of the name to the response's
	// header.
	wholeTime = 10 * time.Second
	// A response's body is not used. This much of it is read, for so long, so that the
	// connection can be used again.
	bodyBytes = 64 << 10
	bodyTime  = 500 * time.Millisecond
	headBytes = 32 << 10

	idleTime    = 30 * time.Second
	idleMost    = 512
	idlePerHost = 128

	userAgent = "Switchyard-Webhooks/1"
)

// Delivery is one attempt of one delivery.
type Delivery struct {
	URL string
	// ID is the delivery's, the same for every attempt; Type is the event's.
	ID, Type string
	Body     []byte
	// Secrets sign the request, the current one first.
	Secrets []string
	At      time.Time
	// Traceparent is the header of the same name (W3C Trace Context); empty: there is none.
	// It is not signed.
	Traceparent string
}

// Result is the result of an attempt.
type Result struct {
	// StatusCode is that of the response; 0 without one.
	StatusCode int
	// Failure is the reason of a failure, for the subscriber's admins; empty for success.
	// It reveals nothing of the service's own network.
	Failure string
	// Gone is set if the receiver wants no more deliveries.
	Gone bool
}

// Config configures a client.
type Config struct {
	// Permits reports whether an address may be dialed. It is called for every
	// connection, with the address about to be dialed, after the look-up of the name.
	Permits func(netip.Addr) bool
	// AllowHTTP allows http URLs, too.
	AllowHTTP bool
	// Resolver looks up names; nil means the default one.
	Resolver *net.Resolver
}

// Client sends deliveries. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	allowHTTP bool
	limit     time.Duration // wholeTime, except in tests
}

// NewClient returns a client. Close ends its idle connections.
func NewClient(cfg Config) *Client {
	dialer := &net.Dialer{
		Timeout:        wholeTime,
		Resolver:       cfg.Resolver,
		ControlContext: guard(cfg.Permits),
	}
	return &Client{limit: wholeTime, allowHTTP: cfg.AllowHTTP, transport: &http.Transport{
		// No Proxy: a proxy would dial where the guard does not see it.
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    wholeTime,
		MaxIdleConns:           idleMost,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: headBytes,
		DisableCompression:     true,
	}}
}

// guard returns a function that refuses to connect to addresses that are not permitted.
// The dialer calls it for each socket with the address itself, so the name can't change
// its meaning between the check and the connection.
func guard(permits func(netip.Addr) bool) func(context.Context, string, string, syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" || !permits(to.Addr()) {
			return errForbidden
		}
		return nil
	}
}

// Close ends the idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Send makes one attempt. Any 2xx within wholeTime is a success, even if the body can't
// be read; a redirect is a failure.
func (c *Client) Send(ctx context.Context, d *Delivery) Result {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return Result{Failure: "The URL can't be used."}
	}
	if req.URL.Scheme != "https" && !c.allowHTTP { // it was allowed once
		return Result{Failure: "The URL is not an https URL, and this service sends to https URLs only."}
	}
	sign(req.Header, d)
	answer, err := c.transport.RoundTrip(req) // http.Client would follow redirects
	if err != nil {
		return Result{Failure: describe(err)}
	}
	if answer.ContentLength != 0 {
		stop := time.AfterFunc(bodyTime, cancel)
		_, _ = io.CopyN(io.Discard, answer.Body, bodyBytes)
		stop.Stop()
	}
	_ = answer.Body.Close()
	return judge(answer)
}

func sign(h http.Header, d *Delivery) {
	timestamp := strconv.FormatInt(d.At.Unix(), 10)
	var ours, standard string
	for i, secret := range d.Secrets {
		if i > 0 {
			ours += ","
			standard += " "
		}
		ours += Signature(secret, timestamp, d.Body)
		standard += StandardSignature(secret, d.ID, timestamp, d.Body)
	}
	h["Content-Type"] = []string{"application/json"}
	h["User-Agent"] = []string{userAgent}
	h["X-Tracker-Timestamp"] = []string{timestamp}
	h["X-Tracker-Signature"] = []string{ours}
	h["X-Tracker-Event"] = []string{d.Type}
	h["X-Tracker-Delivery"] = []string{d.ID}
	h["Webhook-Id"] = []string{d.ID}
	h["Webhook-Timestamp"] = []string{timestamp}
	h["Webhook-Signature"] = []string{standard}
	if d.Traceparent != "" {
		h["Traceparent"] = []string{d.Traceparent}
	}
	// The header is not sent; it tells net/http that a request may be repeated when an
	// idle connection turns out to be closed. A repeat has the same id.
	h["Idempotency-Key"] = nil
}

func judge(answer *http.Response) Result {
	r := Result{StatusCode: answer.StatusCode}
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
	case code == http.StatusGone:
		r.Failure, r.Gone = "The receiver answered 410: it wants no more deliveries.", true
	case code >= 300 && code < 400:
		r.Failure = fmt.Sprintf("The receiver answered with a redirect (%d), which is not followed.", code)
	default:
		r.Failure = fmt.Sprintf("The receiver answered with status %d.", code)
	}
	return r
}

var errForbidden = errors.New("address not permitted")
