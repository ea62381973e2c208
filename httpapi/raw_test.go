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
		if a := b.do(t, "POST", "/signed", "x", header); a.StatusCode != http.StatusUnsupportedMediaType || header[8] == 'T' && !strings.Contains(a.told.Hint, "x-www-form-urlencoded") {
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
