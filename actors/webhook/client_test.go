package webhook

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func everywhere(netip.Addr) bool { return true }

func client(t testing.TB, cfg Config) *Client {
	t.Helper()
	if cfg.Permits == nil {
		cfg.Permits = everywhere
	}
	cfg.AllowHTTP = true
	c := NewClient(cfg)
	t.Cleanup(c.Close)
	return c
}

func delivery(url string) *Delivery {
	return &Delivery{
		URL: url, ID: "01935000-0000-7000-8000-0000000000aa", Type: "issue.created", Body: []byte(`{"id":"e"}`), At: time.Unix(1_800_000_000, 0),
		Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("the new key, of thirty-two bytes")), "whsec_" + base64.StdEncoding.EncodeToString([]byte("an older key of 24 bytes"))},
	}
}

func TestSend_HeadersAndSignatures(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	d := delivery(s.URL + "/hook?of=mine")
	if r := client(t, Config{}).Send(t.Context(), d); r != (Result{StatusCode: 204}) {
		t.Fatalf("result %+v", r)
	}
	want := map[string]string{
		"Content-Type": "application/json", "User-Agent": "Switchyard-Webhooks/1", "Content-Length": "10",
		"X-Tracker-Timestamp": "1800000000", "X-Tracker-Event": "issue.created", "X-Tracker-Delivery": d.ID,
		"X-Tracker-Signature": Signature(d.Secrets[0], "1800000000", d.Body) + "," + Signature(d.Secrets[1], "1800000000", d.Body),
		"Webhook-Id":          d.ID, "Webhook-Timestamp": "1800000000",
		"Webhook-Signature": StandardSignature(d.Secrets[0], d.ID, "1800000000", d.Body) + " " + StandardSignature(d.Secrets[1], d.ID, "1800000000", d.Body),
		"Idempotency-Key":   "", "Accept-Encoding": "",
	}
	for name, value := range want {
		if got.Header.Get(name) != value {
			t.Errorf("%s: %q, want %q", name, got.Header.Get(name), value)
		}
	}
	if got.Method != "POST" || got.URL.RequestURI() != "/hook?of=mine" || string(body) != string(d.Body) || got.ContentLength != int64(len(body)) {
		t.Errorf("request %s %s %q", got.Method, got.URL, body)
	}
	if s := Signature("whsec_a", "1", []byte("b")); len(s) != 64 || s != strings.ToLower(s) {
		t.Errorf("signature %q", s)
	}
	// This is the example of the Standard Webhooks specification.
	const example = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if s := StandardSignature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); s != example {
		t.Errorf("signature %q, want %q", s, example)
	}
}

func TestSend_Traceparent(t *testing.T) {
	t.Parallel()
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = append(got, strings.Join(r.Header.Values("Traceparent"), ","), r.Header.Get("X-Tracker-Signature"))
	}))
	defer s.Close()
	c, d := client(t, Config{}), delivery(s.URL)
	for _, d.Traceparent = range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		if r := c.Send(t.Context(), d); r != (Result{StatusCode: 200}) {
			t.Fatalf("result %+v", r)
		}
	}
	if len(got) != 4 || got[0] != "" || got[2] != d.Traceparent || got[1] != got[3] {
		t.Errorf("headers %q", got)
	}
}

// raw starts a receiver that sends any bytes.
func raw(t *testing.T, answer func(net.Conn)) (url string, accepted *atomic.Int64) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	accepted = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			go func() {
				defer func() { _ = conn.Close() }()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				answer(conn)
			}()
		}
	}()
	return "http://" + l.Addr().String(), accepted
}

func TestSend_BadReceivers(t *testing.T) {
	t.Parallel()
	forever := func(head, more string) func(net.Conn) {
		return func(c net.Conn) {
			_, err := io.WriteString(c, head)
			for err == nil {
				_, err = io.WriteString(c, more)
			}
		}
	}
	drip := func(c net.Conn) {
		_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
		for err == nil {
			<-time.After(50 * time.Millisecond)
			_, err = io.WriteString(c, ".")
		}
	}
	for name, row := range map[string]struct {
		answer  func(net.Conn)
		status  int
		failure string // a part of it; empty: success
	}{
		"closes at once":          {func(net.Conn) {}, 0, "closed before an answer"},
		"closes within the head":  {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le") }, 0, "no valid answer"},
		"speaks something else":   {func(c net.Conn) { _, _ = io.WriteString(c, "220 mail.example ESMTP\r\n") }, 0, "no valid answer"},
		"closes within the body":  {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort") }, 200, ""},
		"fails and closes":        {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nshort") }, 500, "status 500"},
		"sends more than it said": {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nfar too much") }, 200, ""},
		"sends a body for ever":   {forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n"), 200, ""},
		"sends a head for ever":   {forever("HTTP/1.1 200 OK\r\n", "X-More: and more\r\n"), 0, "no valid answer"},
		"drips":                   {drip, 200, ""},
		"hints for ever":          {forever("", "HTTP/1.1 103 Early Hints\r\n\r\n"), 0, "no valid answer"},
		"is gone":                 {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 410 Gone\r\n\r\n") }, 410, "410"},
		"hangs":                   {func(c net.Conn) { _, _ = io.ReadAll(c) }, 0, "within 10 seconds"},
		"switches protocols":      {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n") }, 101, "status 101"},
		"redirects to the private": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 307 See\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n")
		}, 307, "redirect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, accepted := raw(t, row.answer)
			c := client(t, Config{})
			c.limit = time.Hour // other bounds than that of the whole attempt end most of them
			if name == "hangs" {
				c.limit = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := c.Send(ctx, delivery(url))
			if r.StatusCode != row.status || (r.Failure == "") != (row.failure == "") || !strings.Contains(r.Failure, row.failure) || r.Gone != (row.status == 410) {
				t.Errorf("result %+v", r)
			}
			if ctx.Err() != nil {
				t.Error("nothing ended the attempt")
			}
			if strings.Contains(r.Failure, "127.0.0.1") {
				t.Errorf("%q names an address", r.Failure)
			}
			if n := accepted.Load(); n > 2 { // net/http repeats a request on a connection that was closed
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestSend_VerifiesCertificates(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") }))
	s.Config.ErrorLog = nil
	defer s.Close()
	if r := client(t, Config{}).Send(t.Context(), delivery(s.URL)); !strings.Contains(r.Failure, "certificate is not valid") {
		t.Errorf("result %+v", r)
	}
	plain, _ := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") })
	if r := client(t, Config{}).Send(t.Context(), delivery("https"+strings.TrimPrefix(plain, "http"))); r.Failure == "" {
		t.Errorf("result %+v", r)
	}
}

func TestSend_KeepsConnections(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thanks") }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	c := client(t, Config{})
	for range 20 {
		if r := c.Send(t.Context(), delivery(s.URL)); r.Failure != "" {
			t.Fatal(r)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	// A connection that was closed meanwhile is not a failure.
	s.CloseClientConnections()
	if r := c.Send(t.Context(), delivery(s.URL)); r.Failure != "" {
		t.Error(r)
	}
}

// names returns a resolver that answers with the next address of a list each time.
func names(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	var asked atomic.Int64
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			defer func() { _ = there.Close() }()
			answerNames(there, func() string { return addresses[min(int(asked.Add(1)), len(addresses))-1] })
		}()
		return here, nil
	}}
}

// answerNames answers DNS queries over a stream (RFC 1035, 4.2.2) with one address
// for A, and none for anything else.
func answerNames(conn net.Conn, next func() string) {
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		query := make([]byte, int(size[0])<<8|int(size[1]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		end := 12 // end of the question
		for query[end] != 0 {
			end += int(query[end]) + 1
		}
		end += 5
		answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
		if query[end-3] == 1 { // A
			answer[7] = 1
			ip := netip.MustParseAddr(next()).As4()
			answer = append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
		}
		if _, err := conn.Write(append([]byte{byte(len(answer) >> 8), byte(len(answer))}, answer...)); err != nil {
			return
		}
	}
}

// The guard checks the address that is dialed, not an earlier answer for the name.
func TestSend_NamesThatChangeTheirMeaning(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer s.Close()
	port := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://")).Port()
	url := "http://receiver.example:" + strconv.Itoa(int(port))

	// The first answers, which the test itself uses, are allowed; the last is private.
	resolver := names(t, "127.0.0.1", "127.0.0.1", "127.0.0.2")
	first := netip.MustParseAddr("127.0.0.1")
	if got, err := resolver.LookupNetIP(t.Context(), "ip4", "receiver.example"); err != nil || got[0].Unmap() != first {
		t.Fatal(got, err)
	}
	c := client(t, Config{Resolver: resolver, Permits: func(a netip.Addr) bool { return a.Unmap() == first }})
	if r := c.Send(t.Context(), delivery(url)); r.Failure != "" || calls.Load() != 1 {
		t.Fatalf("result %+v", r)
	}
	c.Close() // so that it dials again
	if r := c.Send(t.Context(), delivery(url)); !strings.Contains(r.Failure, "does not send to") || calls.Load() != 1 {
		t.Errorf("result %+v", r)
	}
}

func TestSend_AsksForEveryAddress(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost", "0.0.0.0", "[::]"} {
		var asked []netip.Addr
		c := client(t, Config{Permits: func(a netip.Addr) bool { asked = append(asked, a); return false }})
		r := c.Send(t.Context(), delivery("http://"+host+":9/"))
		if r.Failure == "" || len(asked) == 0 && !strings.Contains(r.Failure, "reached") {
			t.Errorf("%s: asked for %v, %+v", host, asked, r)
		}
	}
	for _, host := range []string{"2130706433", "0x7f000001", "017700000001", "127.1"} {
		c := client(t, Config{Resolver: names(t, "127.0.0.1"), Permits: func(netip.Addr) bool { return false }})
		if r := c.Send(t.Context(), delivery("http://"+host+":9/")); r.Failure == "" {
			t.Errorf("%s: %+v", host, r)
		}
	}
}

// Private names of the service's network must look the same as unknown names.
func TestSend_UnknownNamesAndPrivateAddressesLookAlike(t *testing.T) {
	t.Parallel()
	nobody := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no name server")
	}}
	none := func(netip.Addr) bool { return false }
	private := client(t, Config{Resolver: names(t, "10.0.0.1"), Permits: none}).Send(t.Context(), delivery("http://db.internal.example:9/"))
	literal := client(t, Config{Permits: none}).Send(t.Context(), delivery("http://10.0.0.1:9/"))
	unknown := Result{Failure: describe(&net.DNSError{Err: "no such host", Name: "db.internal.example", IsNotFound: true})}
	failing := client(t, Config{Resolver: nobody, Permits: none}).Send(t.Context(), delivery("http://db.internal.example:9/"))
	for name, r := range map[string]Result{"a literal": literal, "not known": unknown, "not looked up": failing} {
		if r != private {
			t.Errorf("%s: %+v; a name of a private address: %+v", name, r, private)
		}
	}
}

func TestSend_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	url, _ := raw(t, func(c net.Conn) { _, _ = io.ReadAll(c) })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if r := client(t, Config{}).Send(ctx, delivery(url)); !strings.Contains(r.Failure, "cut short") {
		t.Errorf("result %+v", r)
	}
}

func TestSend_PlainHTTPOnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	url, accepted := raw(t, func(net.Conn) {})
	c := NewClient(Config{Permits: everywhere})
	t.Cleanup(c.Close)
	if r := c.Send(t.Context(), delivery(url)); !strings.Contains(r.Failure, "https") || accepted.Load() != 0 {
		t.Errorf("result %+v", r)
	}
}
