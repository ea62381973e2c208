package consoletest

import (
	"testing"

	"github.com/chromedp/chromedp"
)

// reach presses Tab until an element has the focus.
func (v *visitor) reach(e *element) {
	v.t.Helper()
	e.appears()
	const most = 80
	for range most {
		v.press("Tab")
		on, err := chromedp.Run(v.ctx, e.hasFocus())
		if err != nil {
			v.stop("look at the focus: %v", err)
		}
		if on {
			return
		}
		// The element with the focus must be visible.
		if !eval[bool](v, `(() => {
			const style = getComputedStyle(document.activeElement);
			return document.activeElement === document.body || style.outlineStyle !== "none" || style.boxShadow !== "none" || document.activeElement.closest(":focus-within") !== null;
		})()`) {
			v.stop("the focus can't be seen on %s", eval[string](v, "document.activeElement.outerHTML.slice(0, 200)"))
		}
	}
	v.stop("Tab does not reach %s", e)
}

// TestKeyboard_ShowsEveryKey: "?" lists the keys; the list is a dialog that Escape closes, and the focus comes
// back.
func TestKeyboard_ShowsEveryKey(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, s.token)
	link := v.the("link", "Queue")
	v.reach(link)
	v.press("?")
	dialog := v.the("dialog", "Keys")
	dialog.appears()
	v.sees("Create an issue", "Go to Inbox")
	v.accessible("the list of keys")
	for range 12 { // round and round, and never behind the dialog
		v.press("Tab")
		if !eval[bool](v, `document.activeElement === document.body || !!document.activeElement.closest("dialog")`) {
			v.stop("the focus left the dialog")
		}
	}
	v.press("Escape")
	dialog.goes()
	link.focused()
}

// TestKeyboard_DoesTheDaysWork: a visitor without a mouse signs in, files an issue, finds it, changes it,
// answers an agent and signs out.
func TestKeyboard_DoesTheDaysWork(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	s.asking(ctx) // ACME-1
	v := visit(ctx, t, s.url)
	v.open("/console/")
	v.reach(v.the("textbox", "Token"))
	v.types(s.token)
	v.press("Enter")
	v.arrives("/console/acme/issues.*")
	v.settles()

	// The first stop of Tab leads over the sidebar.
	v.open(s.page("issues?view=list"))
	v.settles()
	v.press("Tab")
	v.the("link", "Skip to the page").focused()
	v.press("Enter")
	v.the("main", ".*").focused()

	v.press("c")
	dialog := v.the("dialog", "New issue")
	dialog.the("textbox", "Title").focused()
	v.types("Dates shift by a day")
	v.reach(dialog.the("button", "Priority: Medium"))
	v.press("Enter")
	v.the("combobox", "Priority").focused()
	v.types("urg")
	v.press("Enter")
	v.the("button", "Priority: Urgent").focused()
	v.press("Ctrl+Enter")
	dialog.goes()
	v.the("link", "ACME-2 Dates shift by a day").appears()

	// The list: the first row, another priority, the page of the issue.
	v.press("j")
	v.the("link", "ACME-2 Dates shift by a day").focused()
	v.press("-")
	v.the("image", "High priority").appears()
	v.press("Enter")
	v.arrives("/console/acme/issues/ACME-2")
	v.the("heading", ".*Dates shift by a day").appears()
	v.settles()
	v.press("s")
	v.the("combobox", "Status").focused()
	v.types("in pro")
	v.press("Enter")
	v.the("button", "Status: In progress").appears()
	v.press("r")
	v.the("textbox", "Comment").focused()
	v.types("I can repeat it.")
	v.press("Ctrl+Enter")
	v.the("article", "Comment of .*").appears()

	// The board: a card goes to the next column and back.
	v.press("Escape")
	eval[bool](v, "document.activeElement.blur(), true")
	v.press("g", "i", "b")
	v.the("region", "In progress, .*").the("link", "Dates shift by a day").appears()
	v.press("j")
	v.the("link", ".*").appears()
	v.reach(v.the("link", "Dates shift by a day"))
	v.press("]")
	v.the("region", "Done, .*").the("link", "Dates shift by a day").focused()
	v.press("[")
	v.the("region", "In progress, .*").the("link", "Dates shift by a day").focused()

	// The question of an agent.
	v.press("g", "n")
	v.the("heading", "Inbox").appears()
	v.sees("May I go on?")
	v.press("r")
	v.the("textbox", "Reply").focused()
	v.types(answer)
	v.press("Ctrl+Enter")
	v.sees("The reply is sent.")

	account := v.the("button", "Account: .*")
	v.reach(account)
	v.press("Enter")
	v.the("menuitem", "Light theme.*").focused()
	v.press("End", "Up") // the last but one
	v.the("menuitem", "Sign out").focused()
	v.press("Enter")
	v.the("textbox", "Token").appears()
}
