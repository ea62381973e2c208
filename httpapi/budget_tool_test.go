package httpapi

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// The answer of a tool is charged with the copies that are made of it, before they are made, and then for what it
// is. It is refused if there are no bytes for them; a large one fits by itself.
func TestBudget_AnswersOfTools(t *testing.T) {
	t.Parallel()
	const size = 4 << 20 // more than the kernel takes for a client that does not read
	body := []byte(`{"text":"` + strings.Repeat("x", size) + `"}`)
	b := setup(t, func(c *Config) {
		c.WriteTimeout = time.Hour
		c.Limits = Limits{Bytes: 30 * size, WorkspaceBytes: 9 * size}
	})
	charged := make(chan int64, 3)
	b.engine.set(scoped(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		err := req.Charge(body)
		charged <- b.budget.all.Load()
		if err != nil {
			return tracker.Reply{}, err
		}
		return tracker.Reply{Body: body}, nil
	}))
	message := callOf("read_issue", `{}`)
	call := "POST " + sessionTools + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token + "\r\nContent-Length: " + itoa(len(message)) + "\r\n\r\n" + message
	first := slow(t, b.addr)
	if _, err := io.WriteString(first, call); err != nil {
		t.Fatal(err)
	}
	if got, want := <-charged, int64(toolCopies*messageSize(body)); got != want {
		t.Errorf("%d bytes are charged while the answer is made, want %d", got, want)
	}
	testkit.Eventually(t, "the charge of the answer alone", func() bool { n := b.budget.all.Load(); return n >= 2*size && n < 6*size })
	refusedWith(t, b.raw(t, 1, call)[0], "--workspace-bytes-in-flight")
	<-charged
	_ = first.Close()
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })

	body = []byte(`{"text":"` + strings.Repeat("<", size) + `"}`) // its copies are larger than all there is
	if got := b.raw(t, 1, call)[0]; got.StatusCode != 503 {
		t.Errorf("an answer that does not fit: %d %.100s", got.StatusCode, got.body)
	}
	if got := <-charged; got != 9*size {
		t.Errorf("%d bytes are charged for it, want %d", got, 9*size)
	}
}

func TestMessageSize_IsThatOfTheSDK(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"text":"plain"}`, `{"text":"\"quoted\", back\\slash"}`, `{"text":"<a>&</a>"}`} {
		body := []byte(text)
		sdk, err := json.Marshal(toolResult(body))
		if err != nil {
			t.Fatal(err)
		}
		around, err := json.Marshal(toolResult([]byte(`{}`)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := messageSize(body), len(sdk)-len(around)+messageSize([]byte(`{}`)); got != want {
			t.Errorf("%s: %d bytes, want %d", body, got, want)
		}
	}
}
