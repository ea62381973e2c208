package httpapi

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// manyNames returns a body with so many names that the operation ignores.
func manyNames(n int) string {
	var b strings.Builder
	b.WriteString(`{"title":"t"`)
	for i := range n {
		fmt.Fprintf(&b, `,"%x":0`, i)
	}
	return b.String() + "}"
}

func TestCountNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		``:                                 0,
		`:`:                                0,
		`":`:                               1,
		`{}`:                               0,
		`{"a":1}`:                          1,
		`{"a" : {"b"` + "\t\r\n" + `:[]}}`: 2,
		`{"a:":"x:y","b\"":"\":\":"}`:      2,
		`{"a\\":"\\\":"}`:                  1,
		`[{"a":"b"},{"":""},"c:d",""]`:     2,
		manyNames(500):                     501,
	} {
		if got := countNames([]byte(text)); got != want {
			t.Errorf("%.40s: %d names, want %d", text, got, want)
		}
	}
}

// The names of a body are charged while it is decoded, and no longer.
func TestBudget_NamesOfABody(t *testing.T) {
	t.Parallel()
	const bound = 4 << 20
	b := setup(t, func(c *Config) { c.Limits = Limits{WorkspaceBytes: bound} })
	var charged int64
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		charged = b.budget.all.Load()
		return tracker.Reply{Body: []byte(`{}`)}, nil
	})
	many, few := manyNames(20_000), largeBody()[:22]+strings.Repeat("x", 160_000)+`"}`
	// A body with more than the bound is let in by itself.
	for _, body := range []string{many, few, manyNames(100_000)} {
		if got := b.do(t, "POST", largePath, body); got.StatusCode != 200 {
			t.Errorf("%d %s", got.StatusCode, got.body)
		}
		if most := int64(3*len(body) + 3); charged > most {
			t.Errorf("%d bytes are charged for a body of %d when it is decoded", charged, len(body))
		}
		testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
	}
	held, err := b.budget.await(account{kind: workspaceAccount, workspace: mustWorkspace(t)}, account{}, bound/2, false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, b.do(t, "POST", largePath, many), boundWorkspaceBytes)
	refusedWith(t, b.do(t, "POST", watch, many), boundWorkspaceBytes)
	if got := b.do(t, "POST", largePath, few); got.StatusCode != 200 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	held.GiveUp()
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}

// A body whose names would take all bytes of the node is let in while nobody else has some.
func TestBudget_NamesOfABodyByItself(t *testing.T) {
	t.Parallel()
	const bound = 4 << 20
	b := setup(t, func(c *Config) { c.Limits = Limits{Bytes: bound, WorkspaceBytes: bound} })
	for _, names := range []int{10_000, 20_000, 40_000, 100_000} {
		if got := b.do(t, "POST", largePath, manyNames(names)); got.StatusCode != 200 {
			t.Errorf("%d names: %d %s", names, got.StatusCode, got.body)
		}
		testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
	}
}

func mustWorkspace(t *testing.T) [16]byte {
	t.Helper()
	id, ok := parseWorkspace([]byte(workspaceID))
	if !ok {
		t.Fatal("not an id")
	}
	return id
}

// A binder that is kept for the next request does not keep the names of the last one. Not parallel: it measures memory.
func TestBind_LetsNamesGo(t *testing.T) {
	body := manyNames(27_000)
	plan, err := newPlan(opMake, []string{workspaceParam})
	if err != nil {
		t.Fatal(err)
	}
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	binders := make([]binder, 20)
	before := inUse()
	for i := range binders {
		if err := binders[i].bind(plan, &makeThingIn{}, &source{body: []byte(body), now: time.Now}); err != nil {
			t.Fatal(err)
		}
	}
	if kept := inUse() - before; kept > 4<<20 {
		t.Errorf("%d binders keep %d bytes", len(binders), kept)
	}
	runtime.KeepAlive(binders)
}
