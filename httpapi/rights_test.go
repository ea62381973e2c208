package httpapi

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// revoking is an engine whose credentials can be revoked.
type revoking struct {
	*fakeEngine
	admitted chan struct{} // gets a value for each admission
	revoked  atomic.Bool
}

func (e *revoking) Admit(req *tracker.Request, op *tracker.Op) error {
	if e.revoked.Load() {
		return tracker.Unauthorized()
	}
	e.admitted <- struct{}{}
	return e.fakeEngine.Admit(req, op)
}

// A client that holds back the end of its body can't keep rights that end meanwhile.
func TestServer_RightsEndBeforeTheBody(t *testing.T) {
	t.Parallel()
	const large = 2 * prefetched
	for name, row := range map[string]struct{ begin, end string }{
		"in chunks":      {"Transfer-Encoding: chunked\r\n\r\n6\r\n{\"titl\r\n", "7\r\ne\":\"t\"}\r\n0\r\n\r\n"},
		"of some length": {"Content-Length: " + strconv.Itoa(large) + "\r\n\r\n{\"title\":\"t\"" + strings.Repeat(" ", large-13), "}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := &revoking{fakeEngine: &fakeEngine{}, admitted: make(chan struct{}, 10)}
			b := setup(t, func(c *Config) { c.Engine = engine })
			for _, revoked := range []bool{false, true} {
				c, err := net.Dial("tcp", b.addr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(c, postHead+row.begin); err != nil {
					t.Fatal(err)
				}
				<-engine.admitted
				engine.revoked.Store(revoked)
				if _, err := io.WriteString(c, row.end); err != nil {
					t.Fatal(err)
				}
				a, err := readAnswer(bufio.NewReader(c), "POST")
				if err != nil {
					t.Fatal(err)
				}
				if want := map[bool]int{false: 200, true: 401}[revoked]; a.StatusCode != want {
					t.Errorf("revoked %v: %d, want %d: %s", revoked, a.StatusCode, want, a.body)
				}
				for len(engine.admitted) > 0 {
					<-engine.admitted
				}
			}
			if _, _, calls := engine.seen(); calls != 1 {
				t.Errorf("%d operations ran, want 1", calls)
			}
		})
	}
}
