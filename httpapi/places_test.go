package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// dialFrom connects from an address of the loopback network.
func dialFrom(t *testing.T, from, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Skipf("connect from %s: %v", from, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

// ask sends a request on a connection and reads its answer.
func ask(t *testing.T, c net.Conn, r *bufio.Reader, path, credential string) *answer {
	t.Helper()
	text := "GET " + path + " HTTP/1.1\r\nHost: h\r\n"
	if credential != "" {
		text += "Authorization: Bearer " + credential + "\r\n"
	}
	if _, err := io.WriteString(c, text+"\r\n"); err != nil {
		t.Fatal(err)
	}
	a, err := readAnswer(r, "GET")
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

// refusals reads the metric of refusals for a bound.
func (b *bundle) refusals(t *testing.T, bound string) (n float64) {
	t.Helper()
	families, err := b.cfg.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "switchyard_http_refused_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == bound {
				n = m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// However many connections idle without a credential, they lock nobody out: those
// idle longest are closed, and those of known callers stay.
func TestPlaces_IdleStrangersGiveWay(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.MaxConnections = 64 })
	known, knownReader := dial(t, b.addr)
	if a := ask(t, known, knownReader, things, token); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for i := range 300 {
		c, r := dial(t, b.addr)
		if i%3 == 0 {
			continue // says nothing at all
		}
		if a := ask(t, c, r, "/healthz", ""); a.StatusCode != 200 {
			t.Fatalf("connection %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", things} {
		c, r := dial(t, b.addr)
		if a := ask(t, c, r, path, token); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	if a := ask(t, known, knownReader, things, token); a.StatusCode != 200 {
		t.Errorf("the connection of a known caller: %d %s", a.StatusCode, a.body)
	}
	if n := b.connections(); n > 64 {
		t.Errorf("%v connections", n)
	}
	if n := b.refusals(t, boundConnections); n < 200 {
		t.Errorf("%v closed connections are counted", n)
	}
}

// Of more idle connections than there is memory for, those idle longest are closed. Those
// whose requests wait don't count, and stay.
func TestPlaces_TooManyIdle(t *testing.T) {
	t.Parallel()
	const most = 20
	b := setup(t, func(c *Config) { c.MaxConnections, c.Limits.IdleConnections = 2000, most })
	all := sleepy(b, 0)
	var sleepers []*sleeper
	var waiting []*bufio.Reader
	for range 2 * most {
		c, r := dial(t, b.addr)
		if _, err := io.WriteString(c, takeRequest("w")); err != nil {
			t.Fatal(err)
		}
		sleepers, waiting = append(sleepers, <-all), append(waiting, r)
	}
	open := func() *bufio.Reader {
		c, r := dial(t, b.addr)
		if a := ask(t, c, r, things, token); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		return r
	}
	first := open()
	for range most - 1 {
		open()
	}
	if n := b.refusals(t, boundIdle); n != 0 {
		t.Errorf("%v of %d idle connections were closed", n, most)
	}
	testkit.Eventually(t, "idle connections to be closed", func() bool {
		open() // how many are idle is not counted each time
		return b.refusals(t, boundIdle) > 0
	})
	if n := b.connections(); n > 1000 {
		t.Errorf("idle connections are closed once there are %v", n)
	}
	if _, err := first.ReadByte(); err != io.EOF {
		t.Errorf("the connection that was idle longest: %v", err)
	}
	for i, s := range sleepers {
		(<-s.armed)()
		wantBody(t, waiting[i], 200, `{"id":"w"}`)
	}
}

// Where nothing can be closed the last places are for known callers, and the very
// last for the operator.
func TestPlaces_KeptBack(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.MaxConnections, c.RootToken = 32, rootToken })
	all := sleepy(b, 0)
	wait := func() {
		c, _ := dial(t, b.addr)
		if _, err := io.WriteString(c, takeRequest("w")); err != nil {
			t.Fatal(err)
		}
		<-(<-all).armed
	}
	try := func(path, credential string) *answer {
		before := b.connections()
		c, r := dial(t, b.addr)
		a := ask(t, c, r, path, credential)
		_ = c.Close()
		testkit.Eventually(t, "the connection to end", func() bool { return b.connections() == before })
		return a
	}
	for range 30 {
		wait()
	}
	if a := try(things, ""); a.StatusCode != 401 || !a.Close {
		t.Errorf("no credential near the limit: %d %s", a.StatusCode, a.body)
	}
	if a := try("/docs", ""); a.StatusCode != 503 || !a.Close || !strings.Contains(a.failure.Message, "--max-connections") {
		t.Errorf("a stranger near the limit: %d %s", a.StatusCode, a.body)
	}
	if a := try(things, "swy_bad"); a.StatusCode != 401 || !a.Close {
		t.Errorf("a false credential near the limit: %d %s", a.StatusCode, a.body)
	}
	if a := try(things, token); a.StatusCode != 200 || a.Close {
		t.Errorf("a known caller near the limit: %d %s", a.StatusCode, a.body)
	}
	wait()
	if a := try(things, token); a.StatusCode != 503 || !strings.Contains(a.failure.Message, "--max-connections") {
		t.Errorf("a known caller in the last place: %d %s", a.StatusCode, a.body)
	}
	if a := try(things, rootToken); a.StatusCode != 200 {
		t.Errorf("the operator in the last place: %d %s", a.StatusCode, a.body)
	}
}

// An address has so many connections and no more; a trusted proxy's has no bound.
func TestPlaces_PerAddress(t *testing.T) {
	t.Parallel()
	proxies, err := ParseProxies([]string{"127.0.0.3"}, "")
	if err != nil {
		t.Fatal(err)
	}
	b := setup(t, func(c *Config) { c.Limits = Limits{AddressConnections: 3, Proxies: proxies} })
	for range 3 {
		c, r := dial(t, b.addr)
		if a := ask(t, c, r, things, token); a.StatusCode != 200 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	a := b.raw(t, 1, "GET "+things+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer "+token+"\r\n\r\n")[0]
	refusedWith(t, a, "--address-connections")
	for _, from := range []string{"127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.3", "127.0.0.3"} {
		c, r := dialFrom(t, from, b.addr)
		if a := ask(t, c, r, things, token); a.StatusCode != 200 {
			t.Errorf("from %s: %d %s", from, a.StatusCode, a.body)
		}
	}
}

// Waiting requests and streams count for the client's address, as the trusted proxy
// says it, at the owner as at the node that was asked.
func TestWaiting_PerAddress(t *testing.T) {
	t.Parallel()
	proxies, err := ParseProxies([]string{"127.0.0.0/8"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"owner", "another"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			limits := func(c *Config) { c.Limits = Limits{AddressWaiting: 2, Proxies: proxies} }
			at := newAtlas("b")
			entry, owner := at.join(t, "a", limits), at.join(t, "b", limits)
			node := owner
			if where == "another" {
				// The owner counts too: with the entry's own count off.
				entry.waits.limit = 0
				node = entry
			}
			all := sleepy(owner, 0)
			send := func(from string) *bufio.Reader {
				c, r := dial(t, node.addr)
				request := strings.Replace(takeRequest("w"), "Host: x\r\n", "Host: x\r\nSwitchyard-Client: 9.9.9.9\r\nX-Forwarded-For: 1.1.1.1, "+from+"\r\n", 1)
				if _, err := io.WriteString(c, request); err != nil {
					t.Fatal(err)
				}
				return r
			}
			var wakes []func()
			var readers []*bufio.Reader
			for _, from := range []string{"10.0.0.1", "10.0.0.1", "10.0.0.2"} {
				readers = append(readers, send(from))
				wakes = append(wakes, <-(<-all).armed)
			}
			a, err := readAnswer(send("10.0.0.1"), "POST")
			if err != nil || a.StatusCode != 429 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.failure.Message, "--address-waiting") {
				t.Fatalf("%v %+v", err, a)
			}
			if w := <-all; !w.left {
				t.Error("the refused request still waits")
			}
			wakes[0]()
			wantBody(t, readers[0], 200, `{"id":"w"}`)
			send("10.0.0.1")
			<-(<-all).armed // its place was free again
		})
	}
}

func TestProxies_Client(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ header, direct, values, want string }{
		{"X-Forwarded-For", "192.0.2.1", "1.2.3.4", "192.0.2.1"}, // no proxy of ours
		{"X-Forwarded-For", "10.0.0.1", "", "10.0.0.1"},
		{"X-Forwarded-For", "10.0.0.1", "6.6.6.6, 1.2.3.4", "1.2.3.4"},
		{"X-Forwarded-For", "10.0.0.1", "6.6.6.6, 1.2.3.4,10.0.0.9", "1.2.3.4"},
		{"X-Forwarded-For", "10.0.0.1", "10.0.0.7, 10.0.0.9", "10.0.0.7"},
		{"X-Forwarded-For", "10.0.0.1", "1.2.3.4, unknown, 10.0.0.9", "10.0.0.9"},
		{"X-Forwarded-For", "10.0.0.1", "1.2.3.4:567", "1.2.3.4"},
		{"X-Forwarded-For", "10.0.0.1", "::ffff:1.2.3.4", "1.2.3.4"},
		{"X-Forwarded-For", "10.0.0.1", "2001:db8::7", "2001:db8::7"},
		{"Forwarded", "10.0.0.1", `for=6.6.6.6, for="[2001:db8::7]:99";proto=https;by=10.0.0.1`, "2001:db8::7"},
		{"Forwarded", "10.0.0.1", `proto=http;For=1.2.3.4`, "1.2.3.4"},
		{"Forwarded", "10.0.0.1", `for=_hidden`, "10.0.0.1"},
		{"Forwarded", "10.0.0.1", `1.2.3.4`, "10.0.0.1"},
	} {
		p, err := ParseProxies([]string{"10.0.0.0/8"}, row.header)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.client(netip.MustParseAddr(row.direct), []byte(row.values)); got.String() != row.want {
			t.Errorf("%+v: got %s", row, got)
		}
	}
	for _, text := range []string{"10.0.0.1/8", "10.0.0.0/33", "proxy", ""} {
		if _, err := ParseProxies([]string{text}, ""); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if _, err := ParseProxies(nil, "X-Real-IP"); err == nil {
		t.Error("another header was taken")
	}
	if a, b := sharer(netip.MustParseAddr("2001:db8::1")), sharer(netip.MustParseAddr("2001:db8::ffff:0:0:1")); a != b {
		t.Errorf("%s and %s are of one network", a, b)
	}
}

// The connection of a request that waits, or of a stream, at another node counts as that of a
// known caller before the answer has ended.
func TestPlaces_ForwardedCallersThatWait(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	known := func(what string) {
		t.Helper()
		for _, l := range entry.ears() {
			for _, c := range l.all() {
				if !l.peers && !c.known.Load() {
					t.Errorf("%s: the caller counts as unknown", what)
				}
			}
		}
	}
	f := newFakeStream()
	owner.engine.stream = f
	listenTo(t, entry) // the first request with the credential
	known("a stream")
	(<-f.started).End()

	all := sleepy(owner, 0)
	c, r := dial(t, entry.addr)
	if _, err := io.WriteString(c, takeRequest("mine")); err != nil {
		t.Fatal(err)
	}
	wake := <-(<-all).armed
	known("a long poll")
	wake()
	wantBody(t, r, 200, "")
}

// HEAD of a stream, or of lines, is refused where the address has as many as it may, as GET is.
func TestWaiting_HeadOfAStream(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"owner", "another"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			a := newAtlas("b")
			nodes := map[string]*bundle{"owner": a.join(t, "b"), "another": a.join(t, "a")}
			f, node := newFakeStream(), nodes[where]
			nodes["owner"].engine.stream, nodes["owner"].engine.lines = f, newFakeLines(io.EOF)
			node.waits.limit = 1
			if listenTo(t, node); t.Failed() {
				return
			}
			defer (<-f.started).End()
			for _, path := range []string{streamPath, linesPath} {
				for _, method := range []string{"GET", "HEAD"} {
					if got := node.do(t, method, path, "", "Accept: text/event-stream"); got.StatusCode != 429 {
						t.Errorf("%s %s: %d", method, path, got.StatusCode)
					}
				}
			}
		})
	}
}
