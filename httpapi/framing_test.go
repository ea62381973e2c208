package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const plainGet = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

// sound are requests, some behind others, with nothing to refuse.
var sound = map[string]string{
	"one":                      plainGet,
	"three":                    plainGet + plainGet + plainGet,
	"empty lines in front":     "\r\n\r\n" + plainGet,
	"version 1.0":              "GET / HTTP/1.0\r\n\r\n" + plainGet,
	"body of line feeds":       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n\n\n \n\n" + plainGet,
	"body like a header":       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 22\r\n\r\nGET / HTTP/9.9\nX A: b\n" + plainGet,
	"body of a GET":            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n\n\n" + plainGet,
	"chunks":                   "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\n\n\n\r\n000A;a=\"b c\"\r\n0\r\n\r\n\n\n\n\n\n\r\n0\r\n\r\n" + plainGet,
	"trailer":                  "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked \r\n\r\n1\r\n\n\r\n0;x\r\nX: y\r\nZ:\r\n\r\n" + plainGet,
	"credentials of each":      strings.Repeat("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a\r\n\r\n", 3),
	"extensions up to the end": strings.Repeat("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", maxChunkExtensions-1)+"\r\n\n\r\n0;\r\n\r\n", 2),
}

// inParts has the bytes arrive in parts of a length.
func inParts(sent string, size int) (passed string, fault error) {
	var f framing
	var got bytes.Buffer
	for len(sent) > 0 && fault == nil {
		part := []byte(sent[:min(size, len(sent))])
		sent = sent[len(part):]
		var n int
		n, fault = f.scan(part)
		got.Write(part[:n])
	}
	if fault == nil && f.state != atRequestLine {
		fault = errors.New("ends within a request")
	}
	return got.String(), fault
}

func TestFraming_PassesSoundRequestsHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	for name, sent := range sound {
		for size := 1; size < 100; size++ {
			if passed, fault := inParts(sent, size*(1+size/20)); fault != nil || passed != sent {
				t.Errorf("%s in parts of %d: %v after %q", name, size*(1+size/20), fault, passed[max(0, len(passed)-40):])
			}
		}
	}
}

// The line with the fault is never complete, however it arrives, and a sound request
// in front of it is.
func TestFraming_StopsWithinTheLineAtFault(t *testing.T) {
	t.Parallel()
	post := "POST / HTTP/1.1\r\nHost: h\r\n"
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n"
	for _, row := range []struct{ passed, rest string }{
		{"", "\n" + plainGet},
		{"GET / HTTP/1.1", "\nHost: h\r\n\r\n"},
		{"GET / HTTP/2.0\r", "\nHost: h\r\n\r\n"},
		{post + "X: y", "\n\r\n"},
		{post + "X A: y\r", "\n\r\n"},
		{post + "X: y\r\n z\r", "\n\r\n"},
		{post + "X: y\r\n\tz\r", "\n\r\n"},
		{post, "\n"},
		{post + "Content-Length: 1\r\ntransfer-encoding: identity\r\n\r", "\n"},
		{post + "Transfer-Encoding: identity\r\n\r", "\n" + plainGet},
		{post + "Transfer-Encoding: gzip\r\n\r", "\n" + plainGet},
		{post + "Authorization: a\r\nauthorization: a\r", "\n\r\n"},
		{chunked, "\r\n"},
		{chunked, ";\r\n"},
		{chunked, "-1\r\n"},
		{chunked, "g\r\n"},
		{chunked + "1", " \r\n"},
		{chunked + "1", "\n"},
		{chunked + "1\r", "\r\n"},
		{chunked + "1\r\nx", "\n"},
		{chunked + "1\r\nx\r", "0\r\n"},
		{chunked + strings.Repeat("0", maxSizeDigits), "0\r\n"},
		{chunked + "0\r\n", "\n"},
		{chunked + "0\r\nX Y: z\r", "\n\r\n"},
	} {
		for size := range 40 {
			passed, fault := inParts(plainGet+row.passed+row.rest, size+1)
			var told *failure
			if !errors.As(fault, &told) || !told.unframed || passed != plainGet+row.passed {
				t.Errorf("%q in parts of %d: %v after %q", row.rest, size+1, fault, passed)
			}
		}
	}
}

func TestFraming_BoundsExtensions(t *testing.T) {
	t.Parallel()
	head := "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, body := range map[string]string{
		"one":  "1;" + strings.Repeat("x", maxChunkExtensions+1) + "\r\n",
		"many": strings.Repeat("1;"+strings.Repeat("x", 99)+"\r\n\n\r\n", maxChunkExtensions/100*2),
	} {
		for _, size := range []int{1, 100, 4096, 1 << 20} {
			if passed, fault := inParts(head+body, size); fault == nil || len(passed) > 2*maxChunkExtensions {
				t.Errorf("%s in parts of %d: %v after %d bytes", name, size, fault, len(passed))
			}
		}
	}
}

// A newer minor version is read as 1.1.
func TestFraming_MinorVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, version := range []string{"HTTP/1.2", "HTTP/1.9"} {
		sent := strings.Replace(postHead, "HTTP/1.1", version, 1) + "Transfer-Encoding: chunked\r\n\r\nd\r\n{\"title\":\"t\"}\r\n0\r\n\r\n"
		for _, a := range b.raw(t, 2, sent+sent) {
			if a.StatusCode != 200 || a.Proto != "HTTP/1.1" || a.Close {
				t.Errorf("%s: %d %s %s", version, a.StatusCode, a.Proto, a.body)
			}
		}
	}
}

// However the request line arrives. What is no version stays as it is.
func TestFraming_MinorVersionsInParts(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"GET /a HTTP/1.2\r\nHost: h\r\n\r\nGET /b HTTP/1.9\r\nHost: h\r\n\r\n":              "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n",
		"\r\nGET /a?HTTP/1.2 HTTP/1.0\r\nA: a b HTTP/1.2\r\n\r\n":                           "\r\nGET /a?HTTP/1.2 HTTP/1.0\r\nA: a b HTTP/1.2\r\n\r\n",
		"POST / HTTP/1.3\r\nContent-Length: 17\r\n\r\nGET /a HTTP/1.2\r\n":                  "POST / HTTP/1.1\r\nContent-Length: 17\r\n\r\nGET /a HTTP/1.2\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b c HTTP/1.2\r\n\r\n": "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b c HTTP/1.2\r\n\r\n",
	} {
		for size := 1; size <= len(sent); size++ {
			if passed, fault := inParts(sent, size); fault != nil || passed != want {
				t.Errorf("%q in parts of %d: %q, %v", sent, size, passed, fault)
			}
		}
	}
}

// A refusal of the second request comes after the answer to the first.
func TestFraming_AnswersInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		sent   string
		status int
	}{
		{"GET /healthz HTTP/1.1\nHost: h\r\n\r\n", 400},
		{"GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n", 505},
		{"GET /healthz HTTP/1.1\r\nHost: h\r\nX A: b\r\n\r\n", 400},
		{postHead + "Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n", 400},
	} {
		answers := b.raw(t, 2, plainGet+row.sent)
		if first, second := answers[0], answers[1]; first.StatusCode != 200 || second.StatusCode != row.status || !second.Close {
			t.Errorf("%q: %d, then %d %s", row.sent, first.StatusCode, second.StatusCode, second.body)
		}
	}
}

// Framing and fasthttp agree on where requests end. The server never answers more
// requests than framing has seen end. The exception is a last request that the server
// refuses, or whose body it doesn't read: it closes the connection then.
func TestFraming_EndsRequestsWhereTheServerDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	pieces := slices.Sorted(maps.Values(sound))
	for i := range pieces {
		pieces[i] = strings.ReplaceAll(pieces[i], "POST / ", "POST /signed ") // reads its body, whatever it is
	}
	rapid.Check(t, func(r *rapid.T) {
		sent := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 3).Draw(r, "pieces"), ""))
		for range rapid.IntRange(0, 2).Draw(r, "changes") {
			at := rapid.IntRange(0, min(len(sent)-1, 400)).Draw(r, "at")
			put := rapid.SampledFrom([]string{"", "\r", "\n", "\r\n", " ", "\t", ":", ";", "0", "1", "a", "Content-Length: 1\r\n", "Transfer-Encoding: chunked\r\n"}).Draw(r, "put")
			sent = slices.Replace(sent, at, at+rapid.IntRange(0, min(2, len(sent)-at)).Draw(r, "cut"), []byte(put)...)
		}
		var f framing
		complete := 0
		for _, c := range slices.Clone(sent) {
			before := f.state
			if _, fault := f.scan([]byte{c}); fault != nil {
				break
			}
			if f.state == atRequestLine && before != atRequestLine {
				complete++
			}
		}
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		go func() {
			_, _ = c.Write(sent)
			_ = c.(*net.TCPConn).CloseWrite()
		}()
		answers, reader := 0, bufio.NewReader(c)
		for {
			resp, err := http.ReadResponse(reader, nil)
			if err != nil {
				break
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				break
			}
			_ = resp.Body.Close()
			if answers++; answers > complete && (resp.StatusCode < 400 && !resp.Close || answers > complete+1) {
				r.Fatalf("answer %d is %d, but %d requests have ended in %q", answers, resp.StatusCode, complete, sent)
			}
		}
	})
}
