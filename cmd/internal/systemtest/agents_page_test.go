package systemtest

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// quickAgents replaces flags of the commands of docs/agents.md, whose agents take their time for a reader, and
// the wait of a request that shows a session which does not change.
var quickAgents = []string{
	"-lease 15s", "-lease 10s", // the shortest that there is
	"-step 2s", "-step 1ms",
	"poll?wait=5", "poll?wait=1",
}

// whichAgent matches what differs between runs of docs/agents.md, besides ids and times: the issue that an agent
// has claimed.
var whichAgent = regexp.MustCompile(`agent \d+|logs/\d+\.log|FLT-\d+ "Chore \d+"|Chore \d+`)

// TestAgentsPage runs the commands of docs/agents.md, in their order, with the example's agents. What they
// print must be what the page shows. The reader looks at agents that are at work: theirs is held meanwhile.
func TestAgentsPage(t *testing.T) {
	t.Parallel()
	needPrograms(t, "jq", "go")
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	m := newMachines(ctx, t)
	const fleet, page = "fleet", "docs/agents.md"
	g := newStepGate(t, "http://"+m.address(fleet)+":8080")
	m.say = append(append(m.buildsExample(), quickAgents...), "SWITCHYARD_URL=$N", "SWITCHYARD_URL="+g.url)
	m.differs = whichAgent
	// schema is the first session of the page's plan.
	schema := func() string { return strings.TrimSpace(m.sh(fleet, "jq -r '.sessions[0].id' planned.json")) }

	g.hold("Step 3 of 3.")
	m.inOrder(fleet, page, []pageCommand{
		{begins: `curl -s "$U/agent/sessions?summary=1&limit=100"`, before: func() { g.await(ctx, t, "ten agents are at their last step", 10) }},
		{begins: `I=$(curl -s "$U/issues?limit=100"`, before: func() {
			g.await(ctx, t, "the killed agent's request is over", 9)
			g.hold("")
		}},
		{begins: `curl -s "$U/agent/sessions/$S/activities"`, repeats: true},
		{begins: `curl -s "$U/agent/sessions?summary=1&status=waiting"`, repeats: true},
		{begins: `curl -s $U/agent/sessions/$S -H`, repeats: true},
		{begins: `curl -s $U/issues/bulk`, before: func() { g.hold("Step 2 of 3.") }},
		{begins: `P=$(grep -l`, before: func() { g.awaitSession(ctx, t, "the plan's first session is at work", schema(), true) }},
		{begins: `curl -s "$U/agent/sessions/$S/activities"`, repeats: true, before: func() {
			g.awaitSession(ctx, t, "the killed agent's request is over", schema(), false)
			g.hold("")
		}},
		{begins: `curl -s "$U/agent/sessions/$S/attempts"`, repeats: true},
		{begins: `curl -s -X PATCH $U/issues/`, before: func() { g.hold("Step 1 of 3.") }},
		{begins: `curl -s $U/agent/queue`, repeats: true},
		{begins: `grep FLT-33 logs/*.log`, repeats: true, anyOrder: true, before: func() { g.hold("") }},
		{begins: `curl -s $U/agent/sessions/$(jq -r '.sessions[1].id' planned.json)`, repeats: true},
		{begins: `curl -s $U/agent/sessions/$S/cancel`, before: func() {
			m.until(fleet, `curl -s $U/agent/sessions/$S -H "$A" | jq -r .derivedStatus`, "needs_input")
		}},
		{begins: `grep -h "no longer ours" logs/*.log`, repeats: true},
		{begins: `grep -h stopped logs/*.log`, repeats: true},
	})
	m.until(fleet, "grep -l stopped logs/*.log | wc -l", "8") // and two were killed
}

// TestConsolePage runs the commands of docs/console.md. What the page does in a browser is done here by requests;
// TestVisit of cmd/internal/consoletest does it in a browser.
func TestConsolePage(t *testing.T) {
	t.Parallel()
	needPrograms(t, "jq", "go")
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	m := newMachines(ctx, t)
	const visitor, page = "visitor", "docs/console.md"
	m.say = append(m.buildsExample(),
		"SWITCHYARD_WORKSPACE=...", "SWITCHYARD_WORKSPACE=$(jq -r .workspace.id onboard.json)", "SWITCHYARD_TOKEN=...", "SWITCHYARD_TOKEN=$(jq -r .token token.json)",
		// The reader's other terminal.
		"./bin/agent -name 11 -step 200ms -lease 5m", "./bin/agent -name 11 -step 200ms -lease 5m &")
	// visit prepares what the page has made in the browser when it comes to its agents.
	visit := func() {
		m.sh(visitor, `N=http://127.0.0.1:8080; J='Content-Type: application/json'
curl -sf $N/workspaces/onboard -H "$J" -d '{"name":"Acme","slug":"acme"}' > onboard.json
U=$N/workspaces/$(jq -r .workspace.id onboard.json); A="Authorization: Bearer $(jq -r .token.token onboard.json)"
curl -sf $U/agents -H "$A" -H "$J" -d '{"name":"Builder","provider":"example","isDefault":true}' > agent.json
curl -sf $U/tokens -H "$A" -H "$J" -d "{\"name\":\"builder\",\"actorType\":\"agent\",\"agentId\":\"$(jq -r .id agent.json)\",\"permissions\":\"sessions:write\"}" > token.json
for i in $(seq 10); do
  I=$(curl -sf $U/issues -H "$A" -H "$J" -d "{\"title\":\"Chore $i\"}" | jq -r .id)
  curl -sf $U/issues/$I/dispatch -H "$A" -H "$J" -d '{"instructions":"Be careful."}' > session.json
done`)
		// The page names the request that tells the workspace's id.
		asked := regexp.MustCompile("`(curl -s [^`]*/console/session [^`]*)`").FindStringSubmatch(readPage(t, page))
		if asked == nil {
			t.Fatalf("%s does not say how to ask for the workspace's id", page)
		}
		workspace := m.sh(visitor, "SWITCHYARD_TOKEN=$(jq -r .token token.json)\n"+asked[1]+" | jq -r '.workspaces[0].id'")
		m.until(visitor, "jq -r .workspace.id onboard.json", strings.TrimSpace(workspace))
	}
	m.inOrder(visitor, page, []pageCommand{
		{begins: "go build", before: visit},
		{begins: "export SWITCHYARD_URL="},
		{begins: "for i in $(seq 10)"},
		{begins: "./bin/agent -name 11", before: func() {
			m.until(visitor, `curl -s "$U/agent/sessions?summary=1&status=running" -H "$A" | jq '.sessions | length'`, "10")
			m.sh(visitor, `I=$(curl -sf $U/issues -H "$A" -H "$J" -d '{"title":"Delete the old backups"}' | jq -r .id)
Q=$(curl -sf $U/issues/$I/dispatch -H "$A" -H "$J" -d '{"instructions":"Ask before you begin."}' | jq -r .id)`)
		}},
	})
	session := `curl -s $U/agent/sessions/$Q -H "$A" | jq -r `
	m.until(visitor, session+".derivedStatus", "needs_input")
	m.sh(visitor, `curl -sf $U/agent/sessions/$Q/reply -H "$A" -H "$J" -d '{"message":"Yes, but keep the last one."}'`)
	m.until(visitor, session+"'.status, .result'", "completed\nDid \"Delete the old backups\" in 3 steps. I was told: Yes, but keep the last one.")
}
