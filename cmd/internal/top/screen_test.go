package top

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestScreen_Golden(t *testing.T) {
	t.Parallel()
	compareGolden(t, "full.txt", textOf(afterTwo(t, newFakeAPI()).frame(0, 0)))
	compareGolden(t, "terminal.txt", textOf(afterTwo(t, newFakeAPI()).frame(80, 24)))

	// Everything is well, and there is no earlier reading.
	api := newFakeAPI()
	api.set("/cluster", func(int) (string, error) {
		return `{"clusterId":"c1","format":4,"nodes":[{"name":"node-1","state":"alive","leads":1,"replicas":1}],"shards":[{"id":0,"leader":"node-1","voters":["node-1"]}]}`, nil
	})
	api.set("/cluster/nodes/node-1/load", func(look int) (string, error) { return loadBody("node-1", look, ""), nil })
	s := newScreen(time.Second)
	reading, err := newReader(api).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.show(reading)
	compareGolden(t, "well.txt", textOf(s.frame(0, 0)))
}

// Every frame fits its terminal, however small that is, and never has less than what fits.
func TestScreen_FitsEveryTerminal(t *testing.T) {
	t.Parallel()
	s := afterTwo(t, newFakeAPI())
	for width := 1; width <= 220; width += 3 {
		for height := 1; height <= 60; height++ {
			lines := s.frame(width, height)
			if len(lines) > height || len(lines) == 0 {
				t.Fatalf("%dx%d: %d lines", width, height, len(lines))
			}
			for _, l := range lines {
				n := 0
				for _, part := range l {
					n += cells(part.text)
				}
				if n > width {
					t.Fatalf("%dx%d: a line of %d cells: %v", width, height, n, l)
				}
			}
			if text := textOf(lines); height >= 25 && width >= 80 {
				for _, want := range []string{"node-1", "node-3", "no owner", "acme", "q quit"} {
					if !strings.Contains(text, want) {
						t.Fatalf("%dx%d lacks %q:\n%s", width, height, want, text)
					}
				}
			}
		}
	}
}

func TestScreen_SaysHowManyRowsItLeavesOut(t *testing.T) {
	t.Parallel()
	api := newFakeAPI()
	api.set("/cluster", func(int) (string, error) {
		var nodes []string
		for n := range 40 {
			nodes = append(nodes, fmt.Sprintf(`{"name":"n%02d","state":"left"}`, n))
		}
		return `{"nodes":[` + strings.Join(nodes, ",") + `],"shards":[]}`, nil
	})
	text := textOf(afterTwo(t, api).frame(80, 20))
	shown := strings.Count(text, " left ")
	if want := fmt.Sprintf("... %d more", 40-shown); shown < 5 || !strings.Contains(text, want) {
		t.Errorf("%d rows, and no %q:\n%s", shown, want, text)
	}
}

func TestScreen_Sorts(t *testing.T) {
	t.Parallel()
	s := afterTwo(t, newFakeAPI())
	nodes := func() string {
		var names []string
		for line := range strings.Lines(textOf(s.nodes(0))) {
			if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "node-") {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	if got := nodes(); got != "node-1 node-2 node-3" {
		t.Errorf("by name: %s", got)
	}
	for _, row := range []struct {
		keys []key
		want string
	}{
		{[]key{keyDown}, "node-3 node-2 node-1"},
		{[]key{keyRight, keyRight}, "node-1 node-3 node-2"}, // LEADS, the most first
		{[]key{keyUp}, "node-2 node-3 node-1"},
		{[]key{keyRight, keyRight}, "node-2 node-1 node-3"},                          // REQ/S, unknown first
		{[]key{keyLeft, keyLeft, keyLeft, keyLeft, keyLeft}, "node-1 node-3 node-2"}, // NOTE: from the first column to the last
	} {
		for _, k := range row.keys {
			if !s.press(k) {
				t.Fatal("it ended")
			}
		}
		if got := nodes(); got != row.want {
			t.Errorf("after %v: %s, want %s", row.keys, got, row.want)
		}
	}
	if first := textOf(s.workspaces(0)); strings.Index(first, secondWorkspace) > strings.Index(first, firstWorkspace) {
		t.Errorf("the busiest is not first:\n%s", first)
	}
	s.press(keyTab)
	s.press(keyUp)
	if first := textOf(s.workspaces(0)); strings.Index(first, secondWorkspace) < strings.Index(first, firstWorkspace) {
		t.Errorf("the least busy is not first:\n%s", first)
	}
	if s.press(keyQuit) {
		t.Error("q does not end it")
	}
}

// Names and messages come from others, and must not reach the terminal as commands.
func TestScreen_HostileTexts(t *testing.T) {
	t.Parallel()
	const evil = `\u001b[2J\u001b]0;owned\u0007\r\n\t\u009b31m\u202egnp.exe\u200b\u0000\u007f\ud83d`
	api := newFakeAPI()
	api.set("/cluster", func(int) (string, error) {
		return `{"clusterId":"` + evil + `","nodes":[{"name":"n` + evil + `","state":"a` + evil + `","note":"` + evil + `"}],
			"shards":[{"id":1,"leader":"` + evil + `","voters":[],"lag":5000,"failed":[{"node":"` + evil + `","reason":"` + evil + `"}]}],
			"backup":{"error":"` + evil + `"}}`, nil
	})
	api.set("/cluster/nodes/n/load", nil)
	api.set("/workspaces/"+firstWorkspace, func(int) (string, error) { return `{"slug":"` + evil + `"}`, nil })
	s := afterTwo(t, api)
	s.now.Busiest = []Busy{{ID: evilText, Slug: evilText, Node: evilText, Reads: 1}}
	s.fail(errors.New(evilText))
	for _, size := range [][2]int{{0, 0}, {80, 24}, {10, 3}} {
		for _, l := range s.frame(size[0], size[1]) {
			for _, part := range l {
				for _, r := range part.text {
					if !shown(r) {
						t.Fatalf("%v: %U in %q", size, r, part.text)
					}
				}
			}
		}
	}
	if text := textOf(s.frame(0, 0)); !strings.Contains(text, "gnp.exe") {
		t.Errorf("the texts are not shown at all:\n%s", text)
	}
}

const evilText = "\x1b[2J\x1b]0;owned\a\u009b31m\u202egnp.exe\u200b\x00\x7f\xff"

func TestText_CountsCells(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		text, want string
		most       int
	}{
		{"node-1", "node-1", 6}, {"node-1", "node…", 5}, {"node-1", "…", 1}, {"node-1", "", 0},
		{"日本語", "日本語", 6}, {"日本語", "日本…", 5}, {"日本語", "日…", 4},
	} {
		if got := cut(row.text, row.most); got != row.want {
			t.Errorf("%q in %d cells: %q, want %q", row.text, row.most, got, row.want)
		}
	}
	if got := pad("日", 4, true) + "|" + pad("a", 3, false) + "|"; got != "  日|a  |" {
		t.Errorf("%q", got)
	}
}
