package consoletest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// manyIssues is how many a board has to scroll through.
const manyIssues = 10_000

// fileMany files that many issues, all to do.
func (s *service) fileMany(ctx context.Context) {
	s.t.Helper()
	const batch = 500
	for n := 0; n < manyIssues; n += batch {
		items := make([]object, batch)
		for i := range items {
			items[i] = object{"title": fmt.Sprintf("Chore %05d", n+i), "status": "todo"}
		}
		s.send(ctx, "POST", "/issues/bulk", object{"items": items})
	}
}

// scrolled is what a visitor saw on the way to the end of a board's column.
type scrolled struct {
	Cards  int       `json:"cards"`  // the most that were in the document at a time
	Frames []float64 `json:"frames"` // milliseconds between two pictures
	Whole  bool      `json:"whole"`  // the last card was reached
}

// scrollThrough scrolls the column of issues to do to its end, which loads page after page, and back.
func (v *visitor) scrollThrough() scrolled {
	v.t.Helper()
	return eval[scrolled](v, `(async () => {
		const column = document.querySelector("[data-status=todo] .virtual-list");
		const frame = () => new Promise((drawn) => requestAnimationFrame(drawn));
		const out = {cards: 0, frames: [], whole: false};
		const look = () => { out.cards = Math.max(out.cards, document.querySelectorAll("[data-card]").length); };
		while (!column.textContent.includes("Chore 00000")) {
			column.scrollTop = column.scrollHeight;
			await frame();
			look();
		}
		out.whole = true;
		// Everything is loaded now: the way back is what scrolling costs by itself.
		let last = await frame();
		for (let turn = 0; turn < 240 && column.scrollTop > 0; turn++) {
			column.scrollTop -= 400;
			const at = await frame();
			out.frames.push(at - last);
			last = at;
			look();
		}
		return out;
	})()`)
}

// TestBoard_KeepsFewCardsOfTenThousand: the document has the cards in view, and those near them, alone.
func TestBoard_KeepsFewCardsOfTenThousand(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("left out: ten thousand issues on a board; make full and make bench-console have it")
	}
	ctx := limited(t)
	s := onboarded(ctx, t)
	s.fileMany(ctx)
	v := signedIn(ctx, t, s, s.token)
	v.open(s.page("issues?view=board"))
	v.the("link", "Chore 09999").appears()
	if got := v.scrollThrough(); !got.Whole || got.Cards > 60 {
		t.Errorf("%d cards in the document, reached the end: %v", got.Cards, got.Whole)
	}
}

// BenchmarkConsole_Opens measures a cold visit: bytes that are sent, and the time to the first paint and to the
// first issue on the board. Each turn has an empty cache.
func BenchmarkConsole_Opens(b *testing.B) {
	ctx := limited(b)
	s := onboarded(ctx, b)
	s.issue(ctx, "Dates shift by a day", object{"status": "todo"})
	var paint, sign, board, bytes []float64
	for b.Loop() {
		v := visit(ctx, b, s.url)
		v.cold()
		v.open("/console/")
		v.the("textbox", "Token").appears()
		paint, sign = append(paint, v.painted()), append(sign, v.sent())
		v.the("textbox", "Token").fill(s.token)
		v.the("button", "Sign in").click()
		v.the("link", "Dates shift by a day").appears()
		v.cold()
		v.open(s.page("issues?view=board"))
		v.the("link", "Dates shift by a day").appears()
		board, bytes = append(board, v.painted()), append(bytes, v.sent())
	}
	b.ReportMetric(median(paint), "sign-in-paint-ms")
	b.ReportMetric(median(sign)/1000, "sign-in-kB")
	b.ReportMetric(median(board), "board-paint-ms")
	b.ReportMetric(median(bytes)/1000, "board-kB")
}

// BenchmarkConsole_Scrolls measures the pictures of a board with ten thousand issues that is scrolled.
func BenchmarkConsole_Scrolls(b *testing.B) {
	ctx := limited(b)
	s := onboarded(ctx, b)
	s.fileMany(ctx)
	v := signedIn(ctx, b, s, s.token)
	v.open(s.page("issues?view=board"))
	v.the("link", "Chore 09999").appears()
	var frames []float64
	for b.Loop() {
		frames = append(frames, v.scrollThrough().Frames...)
	}
	slices.Sort(frames)
	b.ReportMetric(median(frames), "frame-ms")
	b.ReportMetric(frames[len(frames)*99/100], "frame-p99-ms")
}

// cold empties the visitor's cache.
func (v *visitor) cold() {
	v.t.Helper()
	err := chromedp.Do(v.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
		_, err := cdp.Call(ctx, tab, network.ClearBrowserCache, cdp.Empty{})
		return err
	}))
	if err != nil {
		v.stop("empty the cache: %v", err)
	}
}

// painted returns the milliseconds from the start of the navigation to the first paint of content.
func (v *visitor) painted() float64 {
	v.t.Helper()
	return eval[float64](v, `new Promise((done) => {
		const look = () => {
			const paint = performance.getEntriesByName("first-contentful-paint")[0];
			if (paint) done(paint.startTime); else requestAnimationFrame(look);
		};
		look();
	})`)
}

// sent returns the bytes that the page and what it loaded had on the wire.
func (v *visitor) sent() float64 {
	v.t.Helper()
	return eval[float64](v, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].reduce((sum, e) => sum + e.transferSize, 0)`)
}

func median(all []float64) float64 {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}
