package systemtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestGuidePages runs the commands of the pages for users, as a reader would: README, the tour, and those
// about identity, webhooks, events, inbound calls and tools. What they print must be what the pages show.
// docs/agents.md and docs/console.md have tests of their own, TestExampleAgent and TestVisit.
func TestGuidePages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skipf("the pages' commands need jq: %v", err)
	}
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

// blocks returns the blocks of a page that are in a language.
func (m *machines) blocks(page, language string) (blocks []string) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	if len(blocks) == 0 {
		m.t.Errorf("%s has no commands", page)
	}
	return blocks
}

// transcript is a command of a page and the lines that it shows below.
type transcript struct {
	command string
	shown   []string
}

// transcriptOf reads a block of commands, each behind a dollar, and their output. A command that ends in a
// backslash goes on in the next line.
func transcriptOf(block string) (all []transcript) {
	goesOn := false
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case begins:
			all = append(all, transcript{command: command})
		case len(all) > 0 && goesOn:
			all[len(all)-1].command += "\n" + line
		case len(all) > 0:
			all[len(all)-1].shown = append(all[len(all)-1].shown, line)
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return all
}

// transcripts runs the commands of a page on a machine, and compares what they print. Those that begin with
// one of elsewhere are left out.
func (m *machines) transcripts(machine, page string, elsewhere ...string) {
	m.t.Helper()
	for _, block := range m.blocks(page, "console") {
		for _, one := range transcriptOf(block) {
			if leftOut(one.command, elsewhere) {
				continue
			}
			out := strings.ReplaceAll(m.sh(machine, one.command), m.address(machine), "127.0.0.1")
			if one.command == "make run" || len(one.shown) == 0 { // the node's output is its log
				continue
			}
			if want := strings.Join(one.shown, "\n"); !shows(out, want) {
				m.t.Errorf("%s: %s\nprints\n%s\nand the page shows\n%s", page, one.command, out, want)
			}
		}
	}
}

func leftOut(command string, beginnings []string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(command, beginning) {
			return true
		}
	}
	return false
}

// changing matches what is different in each run: ids and times.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

// shows reports whether a page shows an output. Three dots stand for any text.
func shows(out, page string) bool {
	tidy := func(text string) string {
		return changing.ReplaceAllString(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "_")
	}
	page = strings.ReplaceAll(page, `"WORKSPACE"`, `"..."`)
	pattern := strings.ReplaceAll(regexp.QuoteMeta(tidy(page)), regexp.QuoteMeta("..."), ".*")
	return regexp.MustCompile(`^(?s:` + pattern + `)$`).MatchString(tidy(out))
}
