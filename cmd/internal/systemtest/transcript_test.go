package systemtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// needPrograms skips a test whose pages have commands that this machine lacks.
func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the page's commands need %s: %v", name, err)
		}
	}
}

// readPage returns the text of a page, which is named from the top of the repository.
func readPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the blocks of a page that are in a language.
func (m *machines) blocks(page, language string) (blocks []string) {
	m.t.Helper()
	for _, block := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```\n").FindAllStringSubmatch(readPage(m.t, page), -1) {
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

// transcriptOf reads a block of commands, each behind a dollar, and their output. A command may have several
// lines.
func transcriptOf(block string) (all []transcript) {
	goesOn := false
	for line := range strings.Lines(block) {
		line = strings.TrimSuffix(line, "\n")
		command, begins := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			all[len(all)-1].command += "\n" + line
		case begins:
			all = append(all, transcript{command: command})
		case len(all) > 0:
			all[len(all)-1].shown = append(all[len(all)-1].shown, line)
		}
		goesOn = len(all) > 0 && len(all[len(all)-1].shown) == 0 && unfinished(all[len(all)-1].command)
	}
	return all
}

// hereDocument matches the beginning of a here document.
var hereDocument = regexp.MustCompile(`<<'(\w+)'\n`)

// unfinished reports whether a command goes on in the next line: it ends with a backslash, or in the middle of
// a loop or of a here document.
func unfinished(command string) bool {
	if here := hereDocument.FindStringSubmatch(command + "\n"); here != nil {
		return !strings.HasSuffix(command, "\n"+here[1])
	}
	first, _, _ := strings.Cut(command, "\n")
	loop := strings.HasSuffix(first, "; do") && !strings.Contains(command, "\n  done")
	return loop || strings.HasSuffix(command, `\`)
}

// transcripts runs the commands of a page on a machine, and compares what they print. Those that begin with
// one of elsewhere are left out.
func (m *machines) transcripts(machine, page string, elsewhere ...string) {
	m.t.Helper()
	for _, block := range m.blocks(page, "console") {
		for _, one := range transcriptOf(block) {
			if !leftOut(one.command, elsewhere) {
				m.run(machine, page, one, pageCommand{})
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

// pageCommand is a command of a page that depends on what others do meanwhile.
type pageCommand struct {
	begins string
	// before is called first, and waits for what a reader sees happen.
	before func()
	// repeats has a command that only reads repeated until it prints what the page shows.
	repeats bool
	// anyOrder has the lines of the output compared in any order.
	anyOrder bool
}

// inOrder is transcripts for a page with such commands, which are given in the order of the page.
func (m *machines) inOrder(machine, page string, dependent []pageCommand) {
	m.t.Helper()
	for _, block := range m.blocks(page, "console") {
		for _, one := range transcriptOf(block) {
			var how pageCommand
			if len(dependent) > 0 && strings.HasPrefix(one.command, dependent[0].begins) {
				how, dependent = dependent[0], dependent[1:]
			}
			if how.before != nil {
				how.before()
			}
			m.run(machine, page, one, how)
		}
	}
	for _, how := range dependent {
		m.t.Errorf("%s: no command begins with %s behind those before it", page, how.begins)
	}
}

// run runs one command of a page, and compares what it prints.
func (m *machines) run(machine, page string, one transcript, how pageCommand) {
	m.t.Helper()
	want := strings.Join(one.shown, "\n")
	if how.repeats {
		m.repeat(machine, one.command, want, func(out string) bool { return m.shows(machine, out, want, how.anyOrder) })
		return
	}
	out := m.sh(machine, one.command)
	if one.command == "make run" || want == "" { // the node's output is its log
		return
	}
	if !m.shows(machine, out, want, how.anyOrder) {
		m.t.Errorf("%s: %s\nprints\n%s\nand the page shows\n%s", page, one.command, out, want)
	}
}

// until repeats a command that only reads until it prints a text.
func (m *machines) until(machine, command, want string) {
	m.t.Helper()
	m.repeat(machine, command, want, func(out string) bool { return strings.TrimSpace(out) == want })
}

// repeat repeats a command that only reads until its output is as wanted.
func (m *machines) repeat(machine, command, want string, wanted func(out string) bool) {
	m.t.Helper()
	const within, every = time.Minute, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(m.ctx, within)
	defer cancel()
	for {
		out, err := m.try(machine, command)
		if err == nil && wanted(out) {
			return
		}
		if !pause(ctx, every) {
			m.t.Fatalf("%s\ngoes on printing\n%s\n%v\ninstead of\n%s", command, out, err, want)
		}
	}
}

// changing matches what is different in each run: ids and times.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|(\d{4}/\d\d/\d\d )?\b\d\d:\d\d:\d\d\b`)

// shows reports whether a page shows an output. Three dots stand for any text.
func (m *machines) shows(machine, out, page string, anyOrder bool) bool {
	tidy := func(text string) string {
		text = changing.ReplaceAllString(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "_")
		if m.differs != nil {
			text = m.differs.ReplaceAllString(text, "_")
		}
		if !anyOrder {
			return text
		}
		lines := strings.Split(text, "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	out = strings.ReplaceAll(out, m.address(machine), "127.0.0.1")
	page = strings.ReplaceAll(page, `"WORKSPACE"`, `"..."`)
	pattern := strings.ReplaceAll(regexp.QuoteMeta(tidy(page)), regexp.QuoteMeta("..."), ".*")
	return regexp.MustCompile(`^(?s:` + pattern + `)$`).MatchString(tidy(out))
}

// buildsExample returns replacements of the command that builds the example's agent: the pages are read at the
// top of the repository, and their commands run elsewhere.
func (m *machines) buildsExample() []string {
	m.t.Helper()
	top, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		m.t.Fatal(err)
	}
	return []string{"go build -o bin/agent", "go build -C " + top + " -buildvcs=false -o $PWD/bin/agent"}
}
