package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// The size of a visitor's window, and of the pictures.
const (
	width, height = 1200, 750
	phone         = 360 // pixels, the width of a small phone
)

// visitor is a person with a browser profile of their own, who looks at one tab.
type visitor struct {
	t    testing.TB
	base string // URL of the node
	//nolint:containedctx // chromedp keeps the tab in a context, which ends with the test
	ctx   context.Context
	watch *watch
}

// visit opens an empty tab for a new visitor of a node. The visitor's faults fail the test at its end.
func visit(ctx context.Context, t testing.TB, base string) *visitor {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, base: base, watch: newWatch(u.Host)}
	tab, closeTab := chromedp.NewContext(shared.chromium.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(v.watch.hear))
	t.Cleanup(func() {
		closeTab()
		for _, fault := range v.watch.takeFaults() {
			t.Error(fault)
		}
	})
	v.ctx = tab
	// The tab's first run may have no deadline of its own: the tab would end with it.
	err = chromedp.Do(tab, chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, audits.Enable, cdp.Empty{})
		return err
	}))
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	bounded, cancel := context.WithCancel(tab)
	stop := context.AfterFunc(ctx, cancel)
	t.Cleanup(func() { stop(); cancel() })
	v.ctx = bounded
	v.scheme("light")
	return v
}

// stop gives up, and keeps what the visitor saw.
func (v *visitor) stop(format string, args ...any) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), 10*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.replace(/\n+/g, " | ").slice(0, 3000)`))
	where := ""
	if picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot()); err == nil {
		where = filepath.Join(os.TempDir(), fmt.Sprintf("switchyard-%s-%d.png", strings.ReplaceAll(v.t.Name(), "/", "-"), os.Getpid()))
		if err := os.WriteFile(where, picture, 0o600); err != nil {
			where = err.Error()
		}
	}
	v.t.Fatalf("%s\nfaults: %q\nthe page is in %s and says: %s", fmt.Sprintf(format, args...), v.watch.takeFaults(), where, text)
}

// eval evaluates JavaScript in the visitor's page. A promise is waited for.
func eval[T any](v *visitor, script string) T {
	v.t.Helper()
	value, err := chromedp.Run(v.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		v.stop("evaluate %.200q: %v", script, err)
	}
	return value
}

// await waits until done reports true. An error of done is one more reason to look again: a page that is
// being drawn has nodes that are gone a moment later.
func (v *visitor) await(what string, done func(ctx context.Context) (bool, error)) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, *within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done(ctx)
		if ok && err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			v.stop("not in time: %s (last: %v)", what, err)
		}
	}
}

// holds waits until a JavaScript expression is true.
func (v *visitor) holds(what, script string) {
	v.t.Helper()
	v.await(what, func(ctx context.Context) (bool, error) {
		return chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+script+")"))
	})
}

// open loads a page of the node, as typing its address does.
func (v *visitor) open(path string) {
	v.t.Helper()
	if err := chromedp.Do(v.ctx, chromedp.Navigate(v.base+path)); err != nil {
		v.stop("open %s: %v", path, err)
	}
}

// quoted is a text as a JavaScript literal.
func quoted(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string has a JSON form
	}
	return string(literal)
}

// sees waits until the page shows all these texts.
func (v *visitor) sees(texts ...string) {
	v.t.Helper()
	for _, text := range texts {
		v.holds(fmt.Sprintf("the page shows %q", text), "document.body.innerText.includes("+quoted(text)+")")
	}
}

// misses waits until the page does not show a text.
func (v *visitor) misses(text string) {
	v.t.Helper()
	v.holds(fmt.Sprintf("the page does not show %q", text), "!document.body.innerText.includes("+quoted(text)+")")
}

// arrives waits until the address, from the path on, matches a regular expression.
func (v *visitor) arrives(pattern string) {
	v.t.Helper()
	v.holds("the address matches "+pattern, "new RegExp("+quoted("^(?:"+pattern+")$")+").test(location.pathname + location.search)")
}

// settles waits until nothing on the page says that it is being loaded.
func (v *visitor) settles() {
	v.t.Helper()
	v.holds("the page is loaded", `document.querySelector("main h1") && !document.querySelector(".spinner, [aria-busy=true]")`)
}

// scheme makes the visitor one who prefers light or dark pages, and no animations.
func (v *visitor) scheme(name string) {
	v.t.Helper()
	err := chromedp.Do(v.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	}))
	if err != nil {
		v.stop("prefer %s pages: %v", name, err)
	}
	v.holds("the page has its colors", `matchMedia("(prefers-color-scheme: `+name+`)").matches && document.getAnimations().every((a) => a.playState !== "running")`)
}

// resize changes the size of the window.
func (v *visitor) resize(width, height int64) {
	v.t.Helper()
	if err := chromedp.Do(v.ctx, chromedp.EmulateViewport(width, height)); err != nil {
		v.stop("resize: %v", err)
	}
}

// on calls a JavaScript function with an element as this.
func on[T any](ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID, function string) (T, error) {
	var value T
	object, err := resolve(ctx, tab, node)
	if err != nil {
		return value, err
	}
	res, err := cdp.Call(ctx, tab, runtime.CallFunctionOn, runtime.CallFunctionOnParams{FunctionDeclaration: function, ObjectID: object, ReturnByValue: new(true)})
	switch {
	case err != nil:
		return value, err
	case res.ExceptionDetails != nil:
		return value, fmt.Errorf("%s: %s", res.ExceptionDetails.Text, res.ExceptionDetails.Exception.Description)
	}
	err = json.Unmarshal(res.Result.Value, &value)
	return value, err
}
