package httpapi

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

const postHead = "POST " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n"

// For any bytes that arrive the answer is an error of the one shape, and nothing reaches
// the engine.
func TestHostile_OneRequest(t *testing.T) {
	t.Parallel()
	body := `{"title":"t"}`
	for name, row := range map[string]struct {
		sent   string
		status int
		code   tracker.Code
		closes bool
	}{
		"no request":                {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "BAD_REQUEST", true},
		"no version":                {"GET /healthz\r\n\r\n", 400, "BAD_REQUEST", true},
		"bad version":               {"GET /healthz HTTP/x.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", true},
		"HTTP/0.9":                  {"GET /healthz HTTP/0.9\r\nHost: h\r\n\r\n", 505, "BAD_REQUEST", true},
		"HTTP/2.0":                  {"GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n", 505, "BAD_REQUEST", true},
		"HTTP/2 by prior knowledge": {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "BAD_REQUEST", true},
		"HTTP/3.1":                  {"GET /healthz HTTP/3.1\r\nHost: h\r\n\r\n", 505, "BAD_REQUEST", true},
		"no host":                   {"GET /healthz HTTP/1.1\r\n\r\n", 400, "BAD_REQUEST", true},
		"two hosts":                 {"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "BAD_REQUEST", true},
		"space in the path":         {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", true},
		"no path":                   {"GET healthz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", true},
		"space before colon":        {"GET /healthz HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n", 400, "BAD_REQUEST", true},
		"space in a name":           {"GET /healthz HTTP/1.1\r\nHost: h\r\nX A: b\r\n\r\n", 400, "BAD_REQUEST", true},
		"length's name and more":    {postHead + "Content-Length x: 2\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"encoding's name and more":  {postHead + "Transfer-Encoding x: chunked\r\n\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"no name":                   {"GET /healthz HTTP/1.1\r\nHost: h\r\n: y\r\n\r\n", 400, "BAD_REQUEST", true},
		"bracket in a name":         {"GET /healthz HTTP/1.1\r\nHost: h\r\nX(A): b\r\n\r\n", 400, "BAD_REQUEST", true},
		"LF after the request line": {"GET /healthz HTTP/1.1\nHost: h\r\n\r\n", 400, "BAD_REQUEST", true},
		"LF after a header":         {"GET /healthz HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400, "BAD_REQUEST", true},
		"LF after the header":       {"GET /healthz HTTP/1.1\r\nHost: h\r\n\n", 400, "BAD_REQUEST", true},
		"LF alone":                  {"GET /healthz HTTP/1.1\nHost: h\n\n", 400, "BAD_REQUEST", true},
		"LF in front":               {"\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", true},
		"two credentials":           {postHead + "Authorization: Bearer " + token + "\r\nContent-Length: 13\r\n\r\n" + body, 400, "BAD_REQUEST", true},
		"two credentials, no token": {"GET /healthz HTTP/1.1\r\nHost: h\r\nauthorization:\r\nAUTHORIZATION:\r\n\r\n", 400, "BAD_REQUEST", true},
		"no colon":                  {"GET /healthz HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n", 400, "BAD_REQUEST", true},
		"folded header":             {"GET /healthz HTTP/1.1\r\nHost: h\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n", 400, "BAD_REQUEST", true},
		"bare carriage return":      {"GET /healthz HTTP/1.1\r\nHost: h\r\nX: a\rContent-Length: 5\r\n\r\n", 400, "BAD_REQUEST", true},
		"NUL in a header":           {"GET /healthz HTTP/1.1\r\nHost: h\r\nX: a\x00b\r\n\r\n", 400, "BAD_REQUEST", true},
		"huge header":               {"GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", 431, "BAD_REQUEST", true},
		"many headers":              {"GET /healthz HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X: y\r\n", 10_000) + "\r\n", 431, "BAD_REQUEST", true},
		"long path":                 {"GET /" + strings.Repeat("a", 9<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414, "BAD_REQUEST", false},
		"longer path":               {"GET /" + strings.Repeat("a", 90<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n", 431, "BAD_REQUEST", true},
		"broken escape":             {"GET /w/slug/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", false},
		"path is not UTF-8":         {"GET /w/slug/%ff%fe HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", false},
		"NUL in the path":           {"GET /w/slug/a%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", false},
		"unknown path":              {"GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"doubled slash":             {"GET //healthz HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"trailing slash":            {"GET /healthz/ HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"dots":                      {"GET /w/../healthz HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"encoded slash":             {"GET /w%2Fslug/x HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"CONNECT":                   {"CONNECT example.com:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", false},
		"strange method":            {"BREW /open HTTP/1.1\r\nHost: h\r\n\r\n", 405, "METHOD_NOT_ALLOWED", false},
		"wrong method with body":    {"PUT /open HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}", 405, "METHOD_NOT_ALLOWED", false},
		"no credential":             {"GET " + things + " HTTP/1.1\r\nHost: h\r\n\r\n", 401, "UNAUTHORIZED", false},
		"other scheme":              {"GET " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Basic " + token + "\r\n\r\n", 401, "UNAUTHORIZED", false},
		"over-long credential":      {"GET " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + strings.Repeat("a", 600) + "\r\n\r\n", 401, "UNAUTHORIZED", false},
		"no workspace":              {"GET /w/nope/things HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"upper-case workspace":      {"GET " + strings.ToUpper(things) + " HTTP/1.1\r\nHost: h\r\n\r\n", 404, "NOT_FOUND", false},
		"the service's own range":   {"GET /w/00000000-0000-0000-0000-000000000001/things HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n\r\n", 404, "NOT_FOUND", false},
		"length and chunked":        {postHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "BAD_REQUEST", true},
		"chunked and length":        {postHead + "Transfer-Encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"length and identity":       {postHead + "Content-Length: 2\r\nTransfer-Encoding: identity\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"two lengths":               {postHead + "Content-Length: 2\r\nContent-Length: 20\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"two equal lengths":         {postHead + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"list of lengths":           {postHead + "Content-Length: 2, 2\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"negative length":           {postHead + "Content-Length: -1\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"signed length":             {postHead + "Content-Length: +2\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"huge length":               {postHead + "Content-Length: 99999999999999999999\r\n\r\n{}", 400, "BAD_REQUEST", true},
		"two encodings":             {postHead + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"encoding list":             {postHead + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"obscured encoding":         {postHead + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"chunked in HTTP/1.0":       {strings.Replace(postHead, "1.1", "1.0", 1) + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"chunk size no number":      {postHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"chunk size overflows":      {postHead + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n", 400, "BAD_REQUEST", true},
		"space behind a chunk size": {postHead + "Transfer-Encoding: chunked\r\n\r\n2 \r\n{}\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"tab behind a chunk size":   {postHead + "Transfer-Encoding: chunked\r\n\r\n2\t\r\n{}\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"LF behind a chunk size":    {postHead + "Transfer-Encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"LF behind a chunk":         {postHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"no end of an extension":    {postHead + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 1<<20), 400, "BAD_REQUEST", true},
		"extensions without end":    {postHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 4<<10)+"\r\n \r\n", 1000), 400, "BAD_REQUEST", true},
		"space in a trailer's name": {postHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX A: b\r\n\r\n", 400, "BAD_REQUEST", true},
		"LF for a trailer":          {postHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\n", 400, "BAD_REQUEST", true},
		"LF after the trailer":      {postHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: y\n\n", 400, "BAD_REQUEST", true},
		"chunk too long":            {postHead + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"bare line feed in chunk":   {postHead + "Transfer-Encoding: chunked\r\n\r\n2;\n{}\r\n0\r\n\r\n", 400, "BAD_REQUEST", true},
		"huge trailer":              {postHead + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", 431, "BAD_REQUEST", true},
		"body over 1 MiB":           {postHead + "Content-Length: 1048577\r\n\r\n", 413, "PAYLOAD_TOO_LARGE", true},
		"body over 1 MiB, sent":     {postHead + "Content-Length: 1048577\r\n\r\n" + strings.Repeat(" ", 1<<20+1), 413, "PAYLOAD_TOO_LARGE", true},
		"chunks over 1 MiB":         {postHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("8000\r\n"+strings.Repeat(" ", 0x8000)+"\r\n", 40) + "0\r\n\r\n", 413, "PAYLOAD_TOO_LARGE", true},
		"one chunk over 1 MiB":      {postHead + "Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n" + strings.Repeat(" ", 2<<20), 413, "PAYLOAD_TOO_LARGE", true},
		"expected and too large":    {postHead + "Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n", 413, "PAYLOAD_TOO_LARGE", true},
		"expected and nowhere":      {"POST /nowhere HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", 404, "NOT_FOUND", true},
		"form":                      {postHead + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b", 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"multipart":                 {postHead + "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 10\r\n\r\n--x--\r\n\r\n\r\n", 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"latin":                     {postHead + "Content-Type: application/json; charset=iso-8859-1\r\nContent-Length: 13\r\n\r\n" + body, 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"gzip":                      {postHead + "Content-Encoding: gzip\r\nContent-Length: 13\r\n\r\n" + body, 415, "UNSUPPORTED_MEDIA_TYPE", false},
		"empty key":                 {postHead + "Idempotency-Key:\r\nContent-Length: 13\r\n\r\n" + body, 400, "BAD_REQUEST", false},
		"key with a space":          {postHead + "Idempotency-Key: a b\r\nContent-Length: 13\r\n\r\n" + body, 400, "BAD_REQUEST", false},
		"over-long key":             {postHead + "Idempotency-Key: " + strings.Repeat("k", 256) + "\r\nContent-Length: 13\r\n\r\n" + body, 400, "BAD_REQUEST", false},
		"two keys":                  {postHead + "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 13\r\n\r\n" + body, 400, "BAD_REQUEST", false},
		"100k brackets":             {postHead + "Content-Length: 100000\r\n\r\n" + strings.Repeat("[", 100_000), 400, "BAD_REQUEST", false},
		"invalid UTF-8":             {postHead + "Content-Length: 13\r\n\r\n{\"title\":\"\xff\"}", 400, "BAD_REQUEST", false},
		"body of nothing but zeros": {postHead + "Content-Length: 100\r\n\r\n" + strings.Repeat("\x00", 100), 400, "BAD_REQUEST", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			a := b.raw(t, 1, row.sent)[0]
			if a.StatusCode != row.status || a.failure.Code != row.code || a.Close != row.closes {
				t.Errorf("got %d %s, close %v\n%s", a.StatusCode, a.failure.Code, a.Close, a.body)
			}
			if _, _, calls := b.engine.seen(); calls != 0 {
				t.Errorf("the engine was asked %d times", calls)
			}
			if b.log.String() != "" {
				t.Errorf("logged: %s", b.log)
			}
		})
	}
}

// Each 400 names the place of the fault, also where the request could not be read.
func TestHostile_EveryRefusalNamesItsFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	get := "GET /healthz HTTP/1.1\r\nHost: h\r\n"
	for sent, place := range map[string]string{
		"GET /w/slug/a%00 HTTP/1.1\r\nHost: h\r\n\r\n":                        "",
		"GET /" + strings.Repeat("a", 9<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n": "",
		get + "X A: b\r\n\r\n":                                                          "",
		"GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n":                                      "",
		get + "X: " + strings.Repeat("a", 64<<10) + "\r\n\r\n":                          "",
		get + "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n\r\n":              "header.Authorization",
		postHead + "Content-Type: text/plain\r\ncontent-type: application/json\r\n\r\n": "header.Content-Type",
		postHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n":            "header.Content-Length",
		postHead + "Transfer-Encoding: gzip\r\n\r\n":                                    "header.Transfer-Encoding",
		postHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n":                           "",
		postHead + "Idempotency-Key: a b\r\nContent-Length: 13\r\n\r\n{\"title\":1}  ":  "title",
	} {
		a := b.raw(t, 1, sent)[0]
		var told struct {
			Details tracker.BadRequestDetails `json:"details"`
		}
		if err := json.Unmarshal([]byte(a.body), &told); err != nil {
			t.Fatalf("%q: %v in %s", sent[:30], err, a.body)
		}
		if issues := told.Details.Issues; a.failure.Code != tracker.CodeBadRequest || len(issues) == 0 || issues[0].Path != place || issues[0].Message == "" {
			t.Errorf("%q: %s", sent[:30], a.body)
		}
	}
	// The error of an operation that lists none.
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, &tracker.Error{Code: tracker.CodeBadRequest, Message: "No."}
	})
	if a := b.do(t, "POST", things, `{"title":"t"}`); !strings.Contains(a.body, `"details":{"issues":[{"path":"","message":"No."}]}`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// A request hidden behind another's refused body must never be answered.
func TestHostile_NothingAfterARefusal(t *testing.T) {
	t.Parallel()
	hidden := "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, sent := range map[string]string{
		"length and chunked": postHead + "Content-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":        postHead + "Content-Length: 0\r\nContent-Length: 35\r\n\r\n" + hidden,
		"too large":          postHead + "Content-Length: 2000000\r\n\r\n" + strings.Repeat(hidden, 1000),
		"unread chunks":      strings.Replace(postHead, token, "swy_bad", 1) + "Transfer-Encoding: chunked\r\n\r\n23\r\n" + hidden + "\r\n0\r\n\r\n" + hidden,
		"unread length":      strings.Replace(postHead, token, "swy_bad", 1) + "Content-Length: 35000\r\n\r\n" + strings.Repeat(hidden, 1000) + hidden,
		"broken headers":     "GET /healthz HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n" + hidden,
		"name with a space":  postHead + "Content-Length x: 35\r\n\r\n" + hidden,
		"bare line feed":     postHead + "Content-Length: 2\n\n{}" + hidden,
		"later version":      "GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n" + hidden,
		"padded chunk":       postHead + "Transfer-Encoding: chunked\r\n\r\n0 \r\n\r\n" + hidden,
		"endless extension":  postHead + "Transfer-Encoding: chunked\r\n\r\n0;" + strings.Repeat(hidden, 1000) + "\r\n\r\n" + hidden,
		"unread extension":   strings.Replace(postHead, token, "swy_bad", 1) + "Transfer-Encoding: chunked\r\n\r\n0;" + strings.Repeat(hidden, 1000) + "\r\n\r\n" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c, err := net.Dial("tcp", b.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, sent); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(c)
			a, err := readAnswer(r, "POST")
			if err != nil || a.StatusCode < 400 || !a.Close {
				t.Fatalf("%v %+v", err, a)
			}
			if rest, _ := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("more came: %q", rest)
			}
		})
	}
}

// A small body that nobody wanted does not cost the connection.
func TestHostile_ConnectionSurvivesSmallRefusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bad := strings.Replace(postHead, token, "swy_bad", 1) + "Content-Length: 13\r\n\r\n{\"title\":\"t\"}"
	answers := b.raw(t, 4, bad+bad+"GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n"+postHead+"Content-Length: 13\r\n\r\n{\"title\":\"t\"}")
	for i, want := range []int{401, 401, 404, 200} {
		if answers[i].StatusCode != want {
			t.Errorf("response %d is %d", i, answers[i].StatusCode)
		}
	}
}

func TestHostile_SlowClients(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]string{
		"nothing":           "",
		"half a header":     "GET /healthz HTTP/1.1\r\nHos",
		"half a body":       postHead + "Content-Length: 13\r\n\r\n{\"tit",
		"half a large body": postHead + "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 50_000),
		"half a chunk":      postHead + "Transfer-Encoding: chunked\r\n\r\nff\r\n{",
		"no end of chunks":  postHead + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, func(c *Config) { c.ReadTimeout = 100 * time.Millisecond })
			if a := b.raw(t, 1, parts)[0]; a.StatusCode != 408 || a.failure.Code != "BAD_REQUEST" || !a.Close {
				t.Errorf("%d %s, close %v", a.StatusCode, a.body, a.Close)
			}
			if _, _, calls := b.engine.seen(); calls != 0 {
				t.Errorf("the engine was asked %d times", calls)
			}
		})
	}
}

// A client that waits for 100 Continue gets it, and has no more time for its body than others.
func TestHostile_ContinueAndQuiet(t *testing.T) {
	t.Parallel()
	inBubble(t, Limits{}, func(t *testing.T, b *bubble) {
		here, there := net.Pipe()
		b.conns <- there
		if _, err := io.WriteString(here, postHead+"Expect: 100-continue\r\nContent-Length: 13\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(here)
		for _, status := range []int{100, 408} {
			if a, err := readAnswer(r, "POST"); err != nil || a.StatusCode != status || a.Close != (status == 408) {
				t.Fatalf("%v %+v, want %d", err, a, status)
			}
		}
		if _, _, calls := b.fake.seen(); calls != 0 {
			t.Errorf("the engine was asked %d times", calls)
		}
		_ = here.Close()
	})
}

// A header sent byte by byte is cut off all the same: the time is for the whole
// request, not for each read.
func TestHostile_DrippingClient(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.ReadTimeout = 200 * time.Millisecond })
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	start := time.Now()
	drip := time.NewTicker(10 * time.Millisecond)
	defer drip.Stop()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-drip.C:
				if _, err := io.WriteString(c, "G"); err != nil {
					return
				}
			}
		}
	}()
	a, err := readAnswer(bufio.NewReader(c), "GET")
	close(stop)
	if err != nil || a.StatusCode != 408 {
		t.Fatalf("%v %+v", err, a)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestHostile_Pipelined(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 50
	answers := b.raw(t, 2*n, strings.Repeat("GET /healthz HTTP/1.1\r\nHost: h\r\nX-Request-Id: first\r\n\r\n"+postHead+"Transfer-Encoding: chunked\r\nX-Request-Id: second\r\n\r\n4\r\n{\"ti\r\n9;ext=1\r\ntle\":\"t\"}\r\n0\r\n\r\n", n))
	for i, a := range answers {
		want := [...]string{"first", "second"}[i%2]
		if a.StatusCode != 200 || a.Header.Get("X-Request-Id") != want {
			t.Fatalf("response %d: %d %s, id %q", i, a.StatusCode, a.body, a.Header.Get("X-Request-Id"))
		}
	}
}

func TestHostile_TooManyConnections(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.MaxConnections = 2 })
	hold := func() {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if a, err := readAnswer(bufio.NewReader(c), "GET"); err != nil || a.StatusCode != 200 {
			t.Fatalf("%v %+v", err, a)
		}
	}
	hold()
	hold()
	a := b.raw(t, 1, "GET "+things+" HTTP/1.1\r\nHost: h\r\n\r\n")[0]
	if a.StatusCode != 503 || a.failure.Code != tracker.CodeUnavailable || a.Header.Get("Retry-After") == "" || !a.Close {
		t.Errorf("%d %s, close %v", a.StatusCode, a.body, a.Close)
	}
	if !strings.Contains(a.body, `"outcome":"not_applied"`) || !strings.Contains(a.failure.Message, "--max-connections") {
		t.Errorf("%s", a.body)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := b.raw(t, 1, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")[0]; a.StatusCode != 200 || !a.Close {
			t.Errorf("%s: %d %s, close %v", path, a.StatusCode, a.body, a.Close)
		}
	}
}

func TestHostile_ExpectedBodyIsAskedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	r := bufio.NewReader(c)
	for range 2 {
		if _, err := io.WriteString(c, postHead+"Expect: 100-continue\r\nContent-Length: 13\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if a, err := readAnswer(r, "POST"); err != nil || a.StatusCode != 100 {
			t.Fatalf("%v %+v", err, a)
		}
		if _, err := io.WriteString(c, `{"title":"t"}`); err != nil {
			t.Fatal(err)
		}
		if a, err := readAnswer(r, "POST"); err != nil || a.StatusCode != 200 {
			t.Fatalf("%v %+v", err, a)
		}
	}
}

// The fields behind a chunked body are no headers. A proxy that appends the client's address
// to the header may pass on a trailer as the client sent it.
func TestHostile_TrailersAreNoHeaders(t *testing.T) {
	t.Parallel()
	at := newAtlas("b")
	limits := func(c *Config) { c.Limits.Proxies, _ = ParseProxies([]string{"127.0.0.0/8"}, "Forwarded") }
	entry, owner := at.join(t, "a", limits), at.join(t, "b", limits)
	chunked := postHead + "Forwarded: for=192.0.2.7\r\nIf-Match: \"1\"\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"title\":\"t\"}\r\n0\r\n"
	for name, trailer := range map[string]string{
		"none": "", "an address": "Forwarded: for=198.51.100.9\r\n", "a key": "Idempotency-Key: k\r\nX: y\r\n",
	} {
		for _, node := range []*bundle{entry, owner} {
			a := node.raw(t, 2, chunked+trailer+"\r\n"+"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
			if a[0].StatusCode >= 300 || a[1].StatusCode != 200 {
				t.Fatalf("%s: %d %s, then %d", name, a[0].StatusCode, a[0].body, a[1].StatusCode)
			}
			if req, _, _ := owner.engine.seen(); req.Address.String() != "192.0.2.7" || req.Idempotency != nil {
				t.Errorf("%s: from %v, key %v", name, req.Address, req.Idempotency)
			}
		}
	}
}
