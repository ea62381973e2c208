package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestParseHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		head           string
		status, length int
		fault          bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", 200, 12, false},
		{"HTTP/1.1 201 Created\r\nDate: x\r\ncontent-length: 0\r\nETag: \"1\"\r\n\r\n", 201, 0, false},
		{"HTTP/1.1 204 No Content\r\n\r\n", 204, 0, false},
		{"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n", 304, 0, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 0, 0, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", 0, 0, true},
		{"HTTP/1.1 2x0 OK\r\n\r\n", 0, 0, true},
		{"SSH-2.0-server\r\n\r\n", 0, 0, true},
		{"\r\n\r\n", 0, 0, true},
	} {
		status, length, err := parseHead([]byte(c.head))
		if (err != nil) != c.fault || status != c.status && !c.fault || length != c.length {
			t.Errorf("%q: %d, %d, %v", c.head, status, length, err)
		}
	}
}

// serve answers every request of a connection with answer(n), byte for byte; empty
// hangs up.
func serve(t *testing.T, answer func(n int) string) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 0; ; {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				_ = r.Body.Close()
				text := answer(n)
				n++
				if text == "" {
					break
				}
				for _, part := range strings.SplitAfter(text, "|") { // in pieces
					_, _ = c.Write([]byte(strings.TrimSuffix(part, "|")))
				}
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = ln.Close(); <-ended })
	return "http://" + ln.Addr().String()
}

func TestConnection_ReadsAnswersInPiecesAndAnySize(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	base := serve(t, func(n int) string {
		return []string{
			"HTTP/1.1 200 OK\r|\nContent-Length: 5\r\n\r|\nhe|llo",
			fmt.Sprintf("HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s", len(long), long),
			"HTTP/1.1 204 No Content\r\n\r\n",
			"", // hangs up
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		}[n]
	})
	dial, host, err := dialer(base)
	if err != nil {
		t.Fatal(err)
	}
	d := dial()
	defer d.close()
	ask := request("GET", host, "/", "token", "")
	for i, want := range []struct {
		status int
		body   string
	}{{200, "hello"}, {201, long}, {204, ""}, {0, ""}, {200, "ok"}} {
		status, body, err := d.do(ask)
		if status != want.status || string(body) != want.body || (err != nil) != (want.status == 0) {
			t.Errorf("answer %d: %d, %.50q, %v", i, status, body, err)
		}
	}
}

func TestDialer_RefusesWhatIsNoNode(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:8080", "https://localhost", "http://", "http://localhost/path", "http://[::1"} {
		if _, _, err := dialer(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestParseCounters(t *testing.T) {
	t.Parallel()
	const text = `# HELP switchyard_batch_ops_total Keys.
# TYPE switchyard_batch_ops_total counter
switchyard_batch_ops_total{shard="1"} 100
switchyard_batch_ops_total{shard="2",odd="a } b"} 60
switchyard_batch_bytes_total 32000
switchyard_batch_commands_total 1e1
go_goroutines 7 1700000000
nonsense
`
	c, err := parseCounters(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if c["switchyard_batch_ops_total"] != 160 || c["go_goroutines"] != 7 || len(c) != 4 {
		t.Errorf("read %v", c)
	}
	if w, ok := perCommand(nil, c); !ok || w != (writes{Keys: 16, Bytes: 3200}) {
		t.Errorf("a command writes %+v, %v", w, ok)
	}
	if _, ok := perCommand(c, c); ok {
		t.Error("no commands, yet an average")
	}
}

func TestServeEmpty(t *testing.T) {
	t.Parallel()
	addrs, err := freeAddrs(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- ServeEmpty(ctx, addrs[0]) }()
	if err := awaitReady(t.Context(), "http://"+addrs[0], "/", nil); err != nil {
		t.Error(err)
	}
	dial, host, err := dialer("http://" + addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	d := dial()
	if status, body, err := d.do(emptyRequests(host)(0)()); status != 200 || len(body) != emptyBody || err != nil {
		t.Errorf("answered %d with %d bytes, %v", status, len(body), err)
	}
	d.close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
