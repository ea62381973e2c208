package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

func TestRaw_TheBodyComesAsItWasSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for contentType, body := range map[string]string{
		"":                                  `{"a": 1, "a": 2}` + "\n\t ",
		"application/json":                  "not JSON, \x00 \xff",
		"application/x-www-form-urlencoded": "a=%2F+b&a",
		"Application/X-WWW-Form-Urlencoded; charset=UTF-8": "",
	} {
		headers := []string{"X-Signature: s1", "X-Signature: s2"}
		if contentType != "" {
			headers = append(headers, "Content-Type: "+contentType)
		}
		if a := b.do(t, "POST", "/signed", body, headers...); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", contentType, a.StatusCode, a.body)
		}
		_, in, _ := b.engine.seen()
		if got := in.(*signedIn); string(got.Body) != body || got.Signature != "s1, s2" {
			t.Errorf("%s: body %q, signature %q", contentType, got.Body, got.Signature)
		}
	}
}

// Commands outlive their request, whose buffer the next one fills.
func TestRaw_TheBodyIsTheOperationsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var kept [][]byte
	b.engine.set(func(_ *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
		kept = append(kept, in.(*signedIn).Body)
		return tracker.Reply{Outcome: tracker.Accepted, Body: []byte("{}")}, nil
	})
	one := "POST /signed HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
	if answers := b.raw(t, 2, one+"abc"+one+"xyz"); answers[0].StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", answers[0].StatusCode, answers[0].body)
	}
	if string(kept[0]) != "abc" || string(kept[1]) != "xyz" {
		t.Errorf("%q", kept)
	}
}

func TestRaw_RefusesWhatItDoesNotTake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, header := range []string{"Content-Type: text/plain", "Content-Type: multipart/form-data; boundary=x", "Content-Encoding: gzip"} {
		if a := b.do(t, "POST", "/signed", "x", header); a.StatusCode != http.StatusUnsupportedMediaType || header[8] == 'T' && !strings.Contains(a.failure.Hint, "x-www-form-urlencoded") {
			t.Errorf("%s: %d %s", header, a.StatusCode, a.body)
		}
	}
	if a := b.do(t, "POST", "/signed", strings.Repeat("x", defaultMaxBody+1)); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := b.do(t, "POST", things, "a=b", "Content-Type: application/x-www-form-urlencoded"); a.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form where JSON is wanted: %d %s", a.StatusCode, a.body)
	}
}

// An operation that first judges the signature gets every body, and is told which it is
// not to take.
func TestRaw_TellsTheOperationOfOtherTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for header, want := range map[string]bool{"Content-Type: text/plain": true, "Content-Encoding: gzip": true, "Content-Type: application/json": false} {
		if a := b.do(t, "POST", "/typed", "x", header); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s", header, a.StatusCode, a.body)
		}
		_, in, _ := b.engine.seen()
		got := in.(*typedIn)
		if refused := got.Refused != nil && got.Refused.Code == tracker.CodeUnsupportedMediaType; refused != want || string(got.Body) != "x" {
			t.Errorf("%s: told %v, body %q", header, got.Refused, got.Body)
		}
	}
}

// Nobody is to fill the memory with bodies whose signature can't be right: the answer
// comes before any of the body does.
func TestSigned_IsRefusedByItsHeaders(t *testing.T) {
	t.Parallel()
	head := "POST /signed HTTP/1.1\r\nHost: h\r\nX-Signature: malformed\r\nContent-Type: text/plain\r\n"
	for name, row := range map[string]struct {
		sent   string
		closes bool
	}{
		"a large body to come":  {head + "Content-Length: 1048576\r\n\r\n", true},
		"one that is too large": {head + "Content-Length: 104857600\r\n\r\n", true},
		"chunks to come":        {head + "Transfer-Encoding: chunked\r\n\r\n", true},
		"it asks first":         {head + "Expect: 100-continue\r\nContent-Length: 1048576\r\n\r\n", true},
		"a small body":          {head + "Content-Length: 2\r\n\r\n{}", false},
		"no body":               {head + "Content-Length: 0\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.raw(t, 1, row.sent)[0]
			if a.StatusCode != http.StatusUnauthorized || a.failure.Code != tracker.CodeUnauthorized || a.Close != row.closes {
				t.Errorf("%d, close %t, %s", a.StatusCode, a.Close, a.body)
			}
			if _, _, calls := b.engine.seen(); calls != 0 {
				t.Errorf("the engine was asked %d times", calls)
			}
		})
	}
}

// An operation that takes no key ignores one, a broken one too.
func TestUnkeyed_IgnoresTheKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if a := b.do(t, "POST", "/signed", "x", "Idempotency-Key: one", "Idempotency-Key: two"); a.StatusCode != http.StatusOK {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if req, _, _ := b.engine.seen(); req.Idempotency != nil {
		t.Errorf("the key got through: %+v", req.Idempotency)
	}
}

// The sum of a credential is kept with a connection, whose requests may come with others.
func TestCredential_SumsOfAConnection(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all strings.Builder
	want := []int{}
	for range 3 {
		for _, row := range []struct {
			header string
			status int
		}{{"Authorization: Bearer " + token + "\r\n", http.StatusOK}, {"", http.StatusUnauthorized}, {"Authorization: Bearer " + rootToken + "\r\n", http.StatusOK}, {"Authorization: Bearer wrong\r\n", http.StatusUnauthorized}} {
			all.WriteString("GET " + things + " HTTP/1.1\r\nHost: x\r\n" + row.header + "\r\n")
			want = append(want, row.status)
		}
	}
	for i, a := range b.raw(t, len(want), all.String()) {
		if a.StatusCode != want[i] {
			t.Errorf("request %d: %d %s", i, a.StatusCode, a.body)
		}
	}
}
