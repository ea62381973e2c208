package httpapi

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// A request's id says what its answer is: mix-number-size-outcome.
const (
	mixPrefix   = "mix-"
	mixDone     = "done"
	mixEmpty    = "empty" // not modified, or an answer without a body
	mixFails    = "fails" // after a part of the answer was built
	mixPanics   = "panics"
	mixRandomly = "random" // hardly smaller when it is compressed
)

// mixedBody appends the answer to a request.
func mixedBody(b []byte, id string) []byte {
	parts := strings.Split(id, "-")
	size, _ := strconv.Atoi(parts[2])
	b = append(append(b, `{"id":"`...), id...)
	b = append(b, `","text":"`...)
	seed, _ := strconv.ParseUint(parts[1], 10, 64)
	random := rand.New(rand.NewPCG(seed, 0))
	for from := len(b); len(b)-from < size; {
		if parts[3] == mixRandomly {
			b = append(b, byte('#'+random.IntN(56))) // below the backslash
		} else {
			b = append(b, id...)
		}
	}
	return append(b, `"}`...)
}

// answerMixed is an engine's answer.
func answerMixed(req *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
	outcome := req.ID[strings.LastIndexByte(req.ID, '-')+1:]
	body := mixedBody(req.Buf[:0], req.ID)
	switch outcome {
	case mixEmpty:
		if op.Kind == tracker.Query && !op.LongPoll {
			return tracker.Reply{Outcome: tracker.NotModified}, nil
		}
		return tracker.Reply{}, nil
	case mixFails:
		return tracker.Reply{}, tracker.NotFound("thing")
	case mixPanics:
		panic("as the test wants")
	}
	return tracker.Reply{Body: body}, nil
}

// brief waits for a moment before it answers.
type brief struct{ req *tracker.Request }

func (w brief) Arm(wake func()) { go wake() }

func (w brief) Resume() (tracker.Reply, bool, error) {
	reply, err := answerMixed(w.req, opTake, nil)
	return reply, false, err
}

func (w brief) Leave() {}

// Many connections ask for answers of all kinds, several at once, and leave in the middle of some. Each gets its own
// answer, whole and in order, from the node that serves the workspace and from another one.
func TestAnswers_AreNeverMixed(t *testing.T) {
	t.Parallel()
	a := newAtlas("owner")
	owner := a.join(t, "owner")
	owner.engine.set(answerMixed)
	owner.engine.mu.Lock()
	owner.engine.waiting = func(req *tracker.Request) tracker.Waiting { return brief{req} }
	owner.engine.mu.Unlock()
	other := a.join(t, "other")
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for range 12 {
				addr := owner.addr
				if random.IntN(2) == 0 {
					addr = other.addr
				}
				if err := askMixed(addr, random); err != nil {
					t.Errorf("client %d: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// askMixed sends requests on a connection, and compares the answers.
func askMixed(addr string, random *rand.Rand) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	for range 6 {
		var text strings.Builder
		var methods, ids []string
		for range 1 + random.IntN(5) {
			method, id, request := mixedRequest(random)
			methods, ids = append(methods, method), append(ids, id)
			text.WriteString(request)
		}
		sent := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c, text.String())
			sent <- err
		}()
		for i, id := range ids {
			if random.IntN(40) == 0 {
				_, _ = in.Read(make([]byte, 1<<10)) // and leaves
				return nil
			}
			if err := compareMixed(in, methods[i], id); err != nil {
				return fmt.Errorf("%s %s: %w", methods[i], id, err)
			}
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	return nil
}

// mixedRequest returns a request.
func mixedRequest(random *rand.Rand) (method, id, text string) {
	size := random.IntN(1 << (8 + random.IntN(10)))
	outcome := [...]string{mixDone, mixDone, mixDone, mixRandomly, mixRandomly, mixEmpty, mixFails, mixPanics}[random.IntN(8)]
	id = fmt.Sprint(mixPrefix, random.Uint32(), "-", size, "-", outcome)
	headers, body := "", ""
	method, path := "GET", things+"/x"
	switch random.IntN(6) {
	case 0:
		method = "HEAD"
	case 1:
		method, path, body = "POST", things, `{"title":"t"}`
	case 2:
		method, path, body = "POST", take, `{"wait":5}`
	}
	if body != "" {
		headers = "Content-Length: " + itoa(len(body)) + "\r\n"
	}
	if random.IntN(2) == 0 {
		headers += "Accept-Encoding: gzip\r\n"
	}
	return method, id, method + " " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\nX-Request-Id: " + id + "\r\n" + headers + "\r\n" + body
}

// compareMixed reads an answer, and compares it with the one that its request is due.
func compareMixed(in *bufio.Reader, method, id string) error {
	response, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	body := string(raw)
	if response.Header.Get("Content-Encoding") == "gzip" && method != "HEAD" {
		plain, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			return err
		}
		unpacked, err := io.ReadAll(plain)
		if err != nil {
			return err
		}
		body = string(unpacked)
	}
	if got := response.Header.Get("X-Request-Id"); got != id {
		return fmt.Errorf("the answer is that of %q", got)
	}
	outcome := id[strings.LastIndexByte(id, '-')+1:]
	switch want := string(mixedBody(nil, id)); {
	case method == "HEAD" || outcome == mixEmpty:
		if body != "" {
			return fmt.Errorf("it has a body of %d bytes", len(body))
		}
	case outcome == mixFails || outcome == mixPanics:
		var failure tracker.Error
		if err := json.Unmarshal([]byte(body), &failure); err != nil || response.StatusCode < 400 || failure.Code == "" || strings.Contains(body, mixPrefix) {
			return fmt.Errorf("the error is %d with %.200s", response.StatusCode, body)
		}
	case response.StatusCode >= 300 || body != want:
		return fmt.Errorf("%d with %d bytes, want %d: %.100s", response.StatusCode, len(body), len(want), body)
	}
	return nil
}
