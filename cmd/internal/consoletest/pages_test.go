package consoletest

import "testing"

// consolePage is a page of the console as the tests know it.
type consolePage struct {
	name string // of its picture
	path string // below the workspace's; from the root if it begins with /
	// heading matches the page's one heading, and shows what else has to be there.
	heading string
	shows   []string
}

// pagesOf lists every page of the console. docs/console.md shows those of the visit.
func pagesOf(f *furnished) []consolePage {
	return []consolePage{
		{"board", "issues?view=board", "Issues", []string{"Dates shift by a day", "In progress"}},
		{"list", "issues?view=list", "Issues", []string{"Dates shift by a day", "Chore 1"}},
		{"issue", "issues/ACME-1", ".*Dates shift by a day", []string{"three time zones", "Store the offset", "So can I."}},
		{"search", "search?q=dates", "Search", []string{"Dates shift by a day"}},
		{"triage", "triage", "Triage", []string{"Chore 6"}},
		{"cycles", "cycles", "Cycles", []string{"Cycle 1"}},
		{"cycle", "cycles/" + f.cycle, "Cycle 1", nil},
		{"queue", "queue", "Queue", []string{"Why sessions wait", "Concurrency key", "Its limit is reached."}},
		{"inbox", "inbox", "Inbox", []string{"Is the default zone Auckland or Lima?"}},
		{"drafts", "inbox?view=drafts", "Inbox", []string{"Publish"}},
		{"agents", "agents", "Agents", []string{"Builder"}},
		{"agent", "agents/" + f.agent, "Builder", nil},
		{"session", "sessions/" + f.session, ".*Dates shift by a day", []string{"go test ./calendar", "Repeat the fault", "1 of 3 steps completed"}},
		{"members", "settings/members", "Members", []string{"ada@acme.example"}},
		{"teams", "settings/teams", "Teams", []string{"Fleet"}},
		{"labels", "settings/labels", "Labels", []string{"bug"}},
		{"projects", "settings/projects", "Projects", []string{"Calendar"}},
		{"tokens", "settings/tokens", "Tokens", []string{"builder"}},
		{"webhooks", "settings/webhooks", "Webhooks", []string{"A receiver that refuses"}},
		{"inbound", "settings/inbound", "Inbound", []string{"helpdesk1", "acme/site"}},
		{"oauth", "settings/oauth", "OAuth clients", []string{"Reports"}},
		{"scim", "settings/scim", "SCIM", nil},
		{"audit", "settings/audit", "Audit", nil},
		{"retention", "settings/retention", "Retention", nil},
		{"usage", "settings/usage", "Usage and budgets", []string{"Builder"}},
		{"workspaces", "/console/?choose=1", "Workspaces", []string{"Acme"}},
		{"cluster", "/console/cluster", "Cluster", nil},
		{"nowhere", "nowhere", "Not found", []string{"There is no such page."}},
	}
}

// looked are the pages with a golden picture.
var looked = map[string]bool{"board": true, "list": true, "issue": true, "triage": true, "cycle": true, "agent": true, "session": true, "webhooks": true, "usage": true, "cluster": true}

// TestPages_AllOpen opens every page by its address, as the operator, who sees all: without an error, without
// a report of the Content-Security-Policy or a request to another host, accessible in light and dark, as wide
// as a phone, and as its picture shows it.
func TestPages_AllOpen(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t, "--webhooks-allow-http", "--webhooks-allow-private")
	f := furnish(ctx, t, s)
	t.Run("light", func(t *testing.T) {
		t.Parallel()
		v := signedIn(ctx, t, s, rootToken)
		for _, p := range pagesOf(f) {
			v.show(s, p)
			v.axe(p.name)
			if looked[p.name] {
				v.picture(otherPictures, p.name)
			}
			v.narrow(p)
			v.faultless(p.name)
		}
		if title := eval[string](v, "document.title"); title == "not sanitized" {
			t.Error("a script in a description ran")
		}
	})
	t.Run("dark", func(t *testing.T) {
		t.Parallel()
		v := signedIn(ctx, t, s, rootToken)
		v.scheme("dark")
		for _, p := range pagesOf(f) {
			v.show(s, p)
			v.axe(p.name+", dark", contrastRules...)
			if p.name == "board" {
				v.picture(otherPictures, "board-dark")
			}
			v.faultless(p.name)
		}
	})
}

// show opens a page and waits until all of it is there.
func (v *visitor) show(s *service, p consolePage) {
	v.t.Helper()
	path := p.path
	if path[0] != '/' {
		path = s.page(path)
	}
	v.open(path)
	v.the("heading", p.heading).appears()
	v.settles()
	v.sees(p.shows...)
	v.settles()
}

// narrow looks at the page on a phone, where nothing but tables and boards scrolls sideways.
func (v *visitor) narrow(p consolePage) {
	v.t.Helper()
	v.resize(phone, 740)
	if wide := eval[int](v, "document.documentElement.scrollWidth"); wide > phone {
		v.t.Errorf("%s: %d pixels wide on a phone: %s", p.name, wide, eval[string](v, `[...document.querySelectorAll("main *")]
			.filter((e) => e.getBoundingClientRect().right > innerWidth && !e.closest(".table-box, .virtual-list, .board, pre, [role=tablist]")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join("; ")`))
	}
	v.the("button", "Menu").appears()
	if p.name == "board" {
		v.picture(otherPictures, "board-phone")
	}
	v.resize(width, height)
}

// faultless fails the test for what went wrong on a page.
func (v *visitor) faultless(what string) {
	v.t.Helper()
	for _, fault := range v.watch.takeFaults() {
		v.t.Errorf("%s: %s", what, fault)
	}
}

// TestDocs_Opens: the reference of the API lists the operations, and is as strict as the console.
func TestDocs_Opens(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := launch(ctx, t)
	v := visit(ctx, t, s.url)
	v.open("/docs")
	v.holds("the operations are listed", `document.querySelector("rapi-doc")?.shadowRoot?.textContent.includes("Onboard a workspace")`)
	v.picture(otherPictures, "docs")
}
