package systemtest

import (
	"strings"
	"testing"
	"time"
)

// TestGuidePages runs the commands of the pages for users, as a reader would: README, the tour, and those
// about identity, webhooks, events, inbound calls and tools. What they print must be what the pages show.
// docs/agents.md and docs/console.md have tests of their own, TestAgentsPage and TestConsolePage.
func TestGuidePages(t *testing.T) {
	t.Parallel()
	needPrograms(t, "jq")
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	m := newMachines(ctx, t)
	const guide = "guide"

	m.transcripts(guide, "README.md")
	// The rest of the page is about three nodes with ports of their own. TestLocalCluster_RunsStopsInOrderAndRunsAgain
	// and docs/install.md cover it.
	m.transcripts(guide, "docs/tour.md", "bin/switchyard cluster status", "switchyard serve --node-name node-2", "switchyard cluster status")

	// On a server of its own: the page shows the first issue of a workspace.
	const other = "node-9"
	m.sh(other, "SWITCHYARD_ROOT_TOKEN="+rootToken+`
echo $SWITCHYARD_ROOT_TOKEN > root-token
switchyard serve --data data --root-token-file root-token
curl -sf http://127.0.0.1:8080/workspaces/onboard -H 'Content-Type: application/json' -d '{"name":"Acme","slug":"acme"}' > onboard.json`)
	m.transcripts(other, "docs/identity.md")
	m.sh(other, "U=$S/workspaces/$W\nBASE=$S\nWS=$W\nTOKEN=$(jq -r .token.token onboard.json)\nWORKSPACE=$W")
	m.transcripts(other, "docs/webhooks.md")
	for _, block := range m.blocks("docs/events.md", "sh") {
		// A stream has no end.
		m.sh(other, strings.ReplaceAll(block, "curl -N", "curl -sS -N --max-time 1")+` || [ $? = 28 ]`)
	}
	workspace := strings.TrimSpace(m.sh(other, "echo $W"))
	m.say = []string{"https://HOST", "http://" + m.address(other) + ":8080", "/WORKSPACE/", "/" + workspace + "/"}
	for _, block := range m.blocks("docs/inbound.md", "sh") {
		m.sh(other, `SECRET=$(curl -sf -X PUT "$U/inbound-secrets/mail" -H "$A" | jq -r .secret)`)
		if out := m.sh(other, block); !strings.Contains(out, `"ticketId":"`) {
			t.Errorf("docs/inbound.md: a signed call is answered %s", out)
		}
	}
	m.transcripts(other, "docs/inbound.md")
	m.say = nil
	m.sh(other, `I=$(curl -sf "$U/issues?limit=1" -H "$A" | jq -r '.issues[0].id')
curl -sf "$U/agent/sessions/register" -H "$A" -H "$J" -d "{\"issueId\":\"$I\",\"provider\":\"x\",\"providerSessionId\":\"1\",\"status\":\"running\"}" > lane.json
LANE=$(jq -r .laneToken lane.json)
MCP_URL=$(jq -r .mcpUrl lane.json)`)
	m.transcripts(other, "docs/mcp.md")
	// curl ends with 0 however a server answers: the last answer of the page is looked at itself.
	for _, block := range m.blocks("docs/mcp.md", "console") {
		if out := m.sh(other, transcriptOf(block)[0].command); !strings.Contains(out, `"structuredContent"`) {
			t.Errorf("docs/mcp.md: the tool answers %s", out)
		}
	}
}
