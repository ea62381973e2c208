package consoletest

import "testing"

// TestTwoBrowsers_SeeEachOthersChanges: two people look at one workspace. What one of them does is shown to the
// other, who presses nothing.
func TestTwoBrowsers_SeeEachOthersChanges(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	ada := signedIn(ctx, t, s, s.member(ctx, "Ada", "member", "write"))
	ben := signedIn(ctx, t, s, s.member(ctx, "Ben", "member", "write"))
	ada.open(s.page("issues?view=board"))
	ben.open(s.page("issues?view=board"))
	ada.sees("Live")
	ben.sees("Live")

	// A new issue, without a reload.
	ada.press("c")
	dialog := ada.the("dialog", "New issue")
	dialog.the("textbox", "Title").fill("Dates shift by a day")
	dialog.the("textbox", "Description").fill("In **May** only.")
	dialog.pick("Priority", "Urgent")
	ada.press("Ctrl+Enter")
	dialog.goes()
	card := ben.the("link", "Dates shift by a day")
	card.appears()

	// A card that is dragged, and one that is moved by keys.
	card.dragTo(ben.the("region", "In progress, .*"))
	ada.the("region", "In progress, .*").the("link", "Dates shift by a day").appears()
	ada.the("link", "Dates shift by a day").appears()
	ada.press("j", "]")
	ben.the("region", "Done, .*").the("link", "Dates shift by a day").appears()

	// The page of the issue: a comment and a status.
	ben.the("link", "Dates shift by a day").click()
	ben.the("heading", ".*Dates shift by a day").appears()
	ada.open(s.page("issues/ACME-1"))
	ada.the("heading", ".*Dates shift by a day").appears()
	ada.settles()
	ada.the("textbox", "Comment").fill("I can *repeat* it.")
	ada.press("Ctrl+Enter")
	ben.sees("I can repeat it.")
	ada.the("main", ".*").pick("Assignee", "Ben")
	ben.the("button", "Assignee: Ben").appears()
	issue := s.send(ctx, "GET", "/issues?identifier=ACME-1", nil)["issues"].([]any)[0].(object)
	s.send(ctx, "PATCH", "/issues/"+issue["id"].(string), object{"status": "canceled", "title": "Dates shift by two days"})
	for _, v := range []*visitor{ada, ben} {
		v.the("heading", ".*Dates shift by two days").appears()
		v.the("button", "Status: Canceled").appears()
	}
}
