package consoletest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The work that the visit of docs/console.md hands to its agents.
var chores = []string{
	"Dates shift by a day", "Load the map faster", "Translate the invoices", "Log in with a passkey", "Drop support for TLS 1.1",
	"Export a report as CSV", "Undo a deleted photo", "Explain the new prices", "Retry failed payments", "Rename the beta program",
}

// TestVisit is the visit that docs/console.md describes, from an empty server to ten agents at work and a
// question answered. All is done in the browser, but for the agents' processes. Its pictures are those of the
// document.
func TestVisit(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := launch(ctx, t)
	v := visit(ctx, t, s.url)
	picture := func(name string) { t.Helper(); v.picture(docsPictures, name) }

	// A workspace.
	v.open("/console/")
	v.the("tab", "New workspace").click()
	v.the("textbox", "Name").fill("Acme")
	v.the("textbox", "Address").has("acme")
	v.the("button", "Make the workspace").click()
	s.token = v.the("textbox", "Admin token").text()
	s.slug = "acme"
	picture("workspace")
	v.the("button", "Open the workspace").click()
	v.arrives("/console/acme/issues.*")
	v.the("heading", "Issues").appears()

	// An agent, and a token for its processes.
	v.press("g", "a")
	v.the("heading", "Agents").appears()
	v.the("button", "Register agent").click()
	dialog := v.the("dialog", "Register an agent")
	dialog.the("textbox", "Name").fill("Builder")
	dialog.the("textbox", "Provider").fill("example")
	dialog.the("checkbox", "Default agent").click()
	dialog.the("button", "Register").click()
	v.the("heading", "Builder").appears()

	v.press("g", "k")
	v.the("heading", "Tokens").appears()
	v.the("button", "New token").click()
	dialog = v.the("dialog", "New token")
	dialog.the("textbox", "Name").fill("builder")
	dialog.the("combobox", "The token acts for").choose("An agent")
	dialog.the("combobox", "Agent").choose("Builder")
	dialog.the("button", "Make token").click()
	dialog = v.the("dialog", "Token “builder”")
	token := dialog.the("textbox", "Token").text()
	picture("token")
	dialog.the("checkbox", "I have stored it\\.").click()
	dialog.the("button", "Done").click()
	dialog.goes()

	// Ten issues.
	v.press("g", "i")
	v.the("heading", "Issues").appears()
	v.press("c")
	dialog = v.the("dialog", "New issue")
	dialog.the("checkbox", "Create another").click()
	for n, title := range chores {
		dialog.the("textbox", "Title").fill(title)
		v.press("Enter")
		v.sees(fmt.Sprintf("ACME-%d created.", n+1))
		dialog.the("textbox", "Title").has("")
	}
	v.press("Escape")
	dialog.goes()
	v.the("link", chores[0]).appears()
	picture("board")

	// All of them are handed to the agent at once.
	v.press("l")
	v.the("link", "ACME-1 "+chores[0]).appears()
	v.press("Ctrl+a")
	selected := v.the("region", "Selected issues")
	selected.the("button", "Dispatch").click()
	dialog = v.the("dialog", "Dispatch 10 issues")
	dialog.the("textbox", "Instructions").fill("Be careful.")
	dialog.the("button", "Dispatch").click()
	dialog.goes()
	v.sees("10 of 10 issues were handed to agents.")

	// Ten agents. Their work takes longer than the visit.
	v.press("g", "q")
	v.the("heading", "Queue").appears()
	v.sees("No agent asks for work")
	workspace := strings.TrimPrefix(workspaceOf(v), "/workspaces/")
	for n := range chores {
		startAgent(t, fmt.Sprint(n+1), s.url, workspace, token, 10*time.Minute)
	}
	v.the("tab", "Running ?10").appears()
	for _, title := range chores {
		v.the("table", "Sessions: Running").the("link", ".*"+title).appears()
	}
	v.settles()
	v.resize(width, 1150)
	picture("queue")
	v.resize(width, height)

	// A question. Another process, with quick work, asks it.
	v.press("c")
	dialog = v.the("dialog", "New issue")
	dialog.the("textbox", "Title").fill("Delete the old backups")
	dialog.the("button", "Create issue").click()
	dialog.goes()
	v.the("button", "Open").click()
	v.arrives("/console/acme/issues/ACME-11")
	v.the("heading", ".*Delete the old backups").appears()
	v.the("button", "Dispatch").click()
	dialog = v.the("dialog", "Dispatch ACME-11")
	dialog.the("textbox", "Instructions").fill("Ask before you begin.")
	dialog.the("button", "Dispatch").click()
	dialog.goes()
	startAgent(t, "11", s.url, workspace, token, 200*time.Millisecond)
	v.press("g", "n")
	v.the("heading", "Inbox").appears()
	v.sees("May I go on with ACME-11?")
	v.settles()
	picture("question")
	v.the("textbox", "Reply").fill(answer)
	v.press("Ctrl+Enter")
	v.sees("The reply is sent.", "No agent waits for an answer.")

	// The session went on and is completed. It says what it was told.
	v.press("g", "q")
	v.the("tab", "All").click()
	v.the("table", "Sessions: All").the("link", ".*Delete the old backups").click()
	v.the("heading", ".*Delete the old backups").appears()
	v.sees("Completed", "I was told: "+answer, "Step 3 of 3.")
	v.settles()
	picture("session")

	// A session is canceled. Its agent learns of that with its next request.
	v.press("g", "q")
	v.the("table", "Sessions: Running").the("link", ".*"+chores[0]).click()
	v.the("button", "Cancel session").click()
	dialog = v.the("dialog", "Cancel the session")
	dialog.the("textbox", "Reason").fill("No longer needed.")
	dialog.the("button", "Cancel the session").click()
	dialog.goes()
	v.sees("The session is canceled.", "Canceled")

	// A completed session closes no issue: that is for people. The card goes to the column Done.
	v.press("g", "i")
	v.the("link", "Delete the old backups").dragTo(v.the("region", "Done, .*"))
	v.the("region", "Done, .*").the("link", "Delete the old backups").appears()
	v.settles()
	picture("done")
}

// workspaceOf returns the path of the visitor's workspace in the API.
func workspaceOf(v *visitor) string {
	v.t.Helper()
	return eval[string](v, `fetch("/console/session", {headers: {"X-Switchyard-Console": "1"}}).then((answer) => answer.json()).then((session) => "/workspaces/" + session.workspaces[0].id)`)
}
