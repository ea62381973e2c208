package consoletest

import (
	"context"
	"testing"

	"switchyard/cmd/internal/systemtest"
)

// asking makes a session whose agent has asked a question, and returns its id.
func (s *service) asking(ctx context.Context) string {
	s.t.Helper()
	agent := s.send(ctx, "POST", "/agents", object{"name": "Builder", "isDefault": true})
	token := s.send(ctx, "POST", "/tokens", object{"name": "builder", "actorType": "agent", "agentId": agent["id"], "permissions": "sessions:write"})["token"].(string)
	issue := s.issue(ctx, "Delete the old backups", object{"status": "todo"})
	id := s.send(ctx, "POST", "/issues/"+issue["id"].(string)+"/dispatch", object{})["id"].(string)
	claimed := s.sendAs(ctx, token, "POST", s.path+"/agent/sessions/claim", object{"leaseSeconds": 3600})
	lane := claimed["sessions"].([]any)[0].(object)["laneToken"].(string)
	path := s.path + "/agent/sessions/" + id
	s.sendAs(ctx, lane, "POST", path+"/log", object{"type": "elicitation", "message": "May I go on?"})
	s.sendAs(ctx, lane, "POST", path+"/report", object{"status": "waiting"})
	return id
}

// once waits until the log of the session has exactly one activity with a text.
func (v *visitor) once(text string) {
	v.t.Helper()
	v.holds("once in the log: "+text, `[...document.querySelectorAll("[role=log] li")].filter((entry) => entry.innerText.includes(`+quoted(text)+`)).length === 1`)
}

const answer = "Yes, but keep the last one."

// TestFaults_AnExpiredSession: the session ends while somebody types an answer. A new sign-in over the page
// sends it.
func TestFaults_AnExpiredSession(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	id := s.asking(ctx)
	first := s.member(ctx, "Ada", "member", "write")
	v := signedIn(ctx, t, s, first)
	v.open(s.page("sessions/" + id))
	v.the("textbox", "Reply").fill(answer)

	v.watch.allow("GET 401 *", "POST 401 *")
	for _, token := range s.send(ctx, "GET", "/tokens", nil)["tokens"].([]any) {
		if token := token.(object); token["name"] == "Ada" {
			s.send(ctx, "DELETE", "/tokens/"+token["id"].(string), nil)
		}
	}
	again := v.the("dialog", "Your session has ended")
	again.appears()
	again.the("textbox", "Token").fill("swy_no-token-at-all")
	again.the("button", "Sign in again").click()
	again.the("alert", ".*").appears()

	second := s.send(ctx, "POST", "/tokens", object{"name": "Ada's second", "userId": s.memberID(ctx, "Ada"), "permissions": "write"})["token"].(string)
	again.the("textbox", "Token").fill(second)
	again.the("button", "Sign in again").click()
	again.goes()
	v.the("textbox", "Reply").has(answer)
	v.the("button", "Send reply").click()
	v.sees("The reply is sent.")
	v.once(answer)
}

// TestFaults_ALostConnection: the node dies while somebody types an answer, and comes back. The page says so,
// keeps the text through a reload, and sends it once.
func TestFaults_ALostConnection(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	fleet := systemtest.NewFleet(shared.built.switchyard, t.TempDir(), "--shards", "2")
	t.Cleanup(fleet.Close)
	node, err := fleet.Add("alone")
	if err != nil {
		t.Fatal(err)
	}
	up := func() {
		t.Helper()
		if err := node.Start(); err != nil {
			t.Fatal(err)
		}
		if err := node.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	up()
	s := &service{t: t, url: node.URL}
	s.onboard(ctx, "Acme", "acme")
	id := s.asking(ctx)
	v := signedIn(ctx, t, s, s.token)
	v.open(s.page("sessions/" + id))
	v.sees("Live")
	v.the("textbox", "Reply").fill(answer)

	// A node that starts answers 503 until it has its shards.
	v.watch.allow("GET 503 *", "POST 503 *")
	node.Kill()
	v.sees("Connection lost")
	v.the("button", "Send reply").click()
	// The request is repeated for some seconds; then the form says why.
	v.holds("the form says that nobody answers", `document.querySelector("form.reply [role=alert]")?.innerText.includes("The server did not answer.")`)
	v.sees("Nothing you typed is lost.")
	v.the("textbox", "Reply").has(answer)
	v.axe("a page without a connection")

	up()
	v.sees("Live")
	v.open(s.page("sessions/" + id))
	v.the("textbox", "Reply").has(answer) // through a reload
	v.the("button", "Send reply").click()
	v.sees("The reply is sent.")
	v.once(answer)
}

// TestFaults_AReadOnlyService: 503 says why and when to come back, and the same text is sent once the service
// takes writes again.
func TestFaults_AReadOnlyService(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, s.token)
	v.watch.allow("POST 503 /workspaces/*")
	s.sendAs(ctx, rootToken, "PUT", "/cluster/read-only", object{"reason": "Moving house"})

	v.press("c")
	dialog := v.the("dialog", "New issue")
	dialog.the("textbox", "Title").fill("Written while nothing could be")
	dialog.the("textbox", "Description").fill("Two lines.\nOf it.")
	dialog.the("button", "Create issue").click()
	dialog.the("alert", ".*").appears()
	v.sees("Moving house")
	dialog.the("textbox", "Title").has("Written while nothing could be")

	// Closing the dialog, and even the page, loses nothing either.
	v.press("Escape")
	dialog.goes()
	s.sendAs(ctx, rootToken, "DELETE", "/cluster/read-only", nil)
	v.open(s.page("issues?view=list"))
	v.settles()
	v.press("c")
	dialog.the("textbox", "Title").has("Written while nothing could be")
	dialog.the("textbox", "Description").has("Two lines.\nOf it.")
	dialog.the("button", "Create issue").click()
	v.sees("ACME-1 created.")
	dialog.goes()
	if got := s.send(ctx, "GET", "/issues", nil)["issues"].([]any); len(got) != 1 {
		t.Errorf("%d issues", len(got))
	}
}

// TestFaults_ARefusal: an admin loses the role while they fill in a form. 403 says so in the form, which goes
// through with all that was typed once the role is back.
func TestFaults_ARefusal(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, s.member(ctx, "Ada", "admin", "admin"))
	v.watch.allow("POST 403 " + s.path + "/members")
	v.open(s.page("settings/members"))
	v.the("button", "Add member").click()
	dialog := v.the("dialog", "Add a member")
	dialog.the("textbox", "E-mail address").fill("ben@acme.example")
	dialog.the("textbox", "Name").fill("Ben")
	dialog.the("combobox", "Role").choose("Guest")

	role := func(role string) {
		t.Helper()
		s.send(ctx, "PATCH", "/members/"+s.memberID(ctx, "Ada"), object{"role": role})
	}
	role("member")
	dialog.the("button", "Add").click()
	dialog.the("alert", ".*").appears()
	v.accessible("a form that was refused")
	dialog.the("textbox", "E-mail address").has("ben@acme.example")
	dialog.the("textbox", "Name").has("Ben")
	role("admin")
	dialog.the("button", "Add").click()
	dialog.goes()
	v.sees("The member is added.", "ben@acme.example")
}

// TestFaults_AConflict: 409 says what is taken, and the form stays.
func TestFaults_AConflict(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	s.send(ctx, "POST", "/teams", object{"name": "Fleet", "key": "FLT"})
	v := signedIn(ctx, t, s, s.token)
	v.watch.allow("POST 409 " + s.path + "/teams")
	v.open(s.page("settings/teams"))
	v.the("button", "New team").click()
	dialog := v.the("dialog", "New team")
	dialog.the("textbox", "Name").fill("Flights")
	dialog.the("textbox", "Key").fill("FLT")
	dialog.the("button", "Make team").click()
	dialog.the("alert", ".*").appears()
	dialog.the("textbox", "Name").has("Flights")
	dialog.the("textbox", "Key").fill("FLY")
	dialog.the("button", "Make team").click()
	dialog.goes()
	v.sees("The team is made.", "FLY")
}

// TestFaults_TwoEditsOfOneText: two people change the same description. The second one sees both texts and
// chooses; neither is lost before that.
func TestFaults_TwoEditsOfOneText(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	issue := s.issue(ctx, "Dates shift by a day", object{"description": "At first."})
	path := "/issues/" + issue["id"].(string)
	v := signedIn(ctx, t, s, s.token)
	v.watch.allow("PATCH 412 " + s.path + path)
	v.open(s.page("issues/ACME-1"))
	v.the("heading", ".*Dates shift by a day").appears()
	v.settles()
	v.press("e")
	v.the("textbox", "Description").fill("It is mine.")
	s.send(ctx, "PATCH", path, object{"description": "It is theirs."})
	v.sees("Somebody changed the text meanwhile.")

	v.the("button", "Save").click()
	dialog := v.the("dialog", "ACME-1 has changed meanwhile")
	dialog.appears()
	v.sees("It is theirs.", "It is mine.")
	v.accessible("the view of a conflict")
	dialog.the("button", "Decide later").click()
	dialog.goes()
	v.the("textbox", "Description").has("It is mine.")
	v.the("button", "Save").click()
	dialog.the("button", "Save yours").click()
	dialog.goes()
	v.sees("Saved.", "It is mine.")
	if !v.watch.told("PATCH 412") {
		t.Error("the change went without If-Match")
	}
	if got := s.send(ctx, "GET", path, nil)["description"]; got != "It is mine." {
		t.Errorf("the description is %q", got)
	}
}

// TestFaults_QuickChangesOfOneIssue: somebody moves a card there and back before the server has answered. The
// second change goes out behind the first one, so that neither finds the other's.
func TestFaults_QuickChangesOfOneIssue(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	s.issue(ctx, "Dates shift by a day", object{"status": "in_progress"})
	v := signedIn(ctx, t, s, s.token)
	v.open(s.page("issues"))
	card := func(column string) *element {
		return v.the("region", column+", .*").the("link", "Dates shift by a day")
	}
	card("In progress").appears()
	v.settles()
	// Changes reach the server half a second later, the first ones later than the others.
	eval[bool](v, `(() => {
		const send = window.fetch; let delay = 600; window.answered = 0;
		window.fetch = async (to, options) => {
			if (options?.method !== "PATCH") return send(to, options);
			await new Promise((go) => setTimeout(go, delay -= 100));
			const answer = await send(to, options);
			window.answered++;
			return answer;
		};
		return true;
	})()`)
	v.reach(card("In progress"))
	v.press("]")
	card("Done").focused()
	v.press("[")
	card("In progress").focused()
	v.press("[")
	card("To do").focused()
	v.holds("all three are answered", `window.answered === 3`)
	card("To do").appears()
	v.misses("Somebody else changed")
	if issue := s.send(ctx, "GET", "/issues?search=shift", nil)["issues"].([]any)[0].(object); issue["status"] != "todo" {
		t.Errorf("the server has %v", issue["status"])
	}
}

// TestFaults_AChangeBeforeThePageIsDrawn: a session ends after it was read and before the page shows it.
func TestFaults_AChangeBeforeThePageIsDrawn(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	id := s.asking(ctx)
	v := signedIn(ctx, t, s, s.token)
	v.open(s.page("queue?view=all"))
	link := v.the("table", "Sessions: All").the("link", ".*Delete the old backups")
	link.appears()
	v.settles()
	// The first answer is kept for so long that the event comes before it.
	eval[bool](v, `(() => {
		const send = window.fetch;
		window.fetch = async (to, options) => {
			const answer = await send(to, options);
			if (String(to).endsWith("/agent/sessions/" + `+quoted(id)+`) && !window.kept) {
				window.kept = true;
				await new Promise((go) => setTimeout(go, 1500));
			}
			return answer;
		};
		return true;
	})()`)
	link.click()
	v.holds("the session was read", `window.kept === true`)
	s.send(ctx, "POST", "/agent/sessions/"+id+"/cancel", object{"reason": "Nobody needs it."})
	v.holds("the session is shown as canceled", `document.querySelector("main .badges")?.innerText.includes("Canceled")`)
}
