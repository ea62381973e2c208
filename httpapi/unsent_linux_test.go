package httpapi

import (
	"io"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// An answer that fits into the buffers of the kernel is charged until it was sent to the
// client. The answer is smaller than the kernel's buffer of a connection within a machine.
func TestBudget_AnswersInTheKernel(t *testing.T) {
	t.Parallel()
	const page = 1 << 20
	b := setup(t, func(c *Config) { c.WriteTimeout, c.Limits = time.Hour, Limits{WorkspaceBytes: 8 * page} })
	large := strings.Repeat("x", page)
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(large)}, nil
	})
	request := "GET " + things + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	for i := range 8 {
		c := slow(t, b.addr)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "an answer in flight", func() bool { return b.budget.all.Load() == int64(i+1)*page })
	}
	refusedWith(t, b.raw(t, 1, request)[0], "--workspace-bytes-in-flight")
}
