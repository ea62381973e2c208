package node

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired lists names that were replaced because they are not the field's words or
// mean something else in it. A word is looked for in every .go and .md file, in any
// case, alone or as a part of a camel-case name.
//
// To retire a name, replace it everywhere and add a row with the word to use
// instead. A file in but may keep the word, for example as a name on the wire.
var retired = []struct {
	word, instead string
	but           []string
}{
	{word: "bequeath", instead: "transfer"},
	{word: "canvass", instead: "request votes"},
	{word: "complaint", instead: "field error"},
	{word: "denial", instead: "permanent error"},
	{word: "forming", instead: "bootstrap"},
	{word: "founding", instead: "creation"},
	{word: "hearsay", instead: "gossip state"},
	{word: "heed", instead: "check the leader"},
	{word: "ledger", instead: "write buffer"},
	{word: "mover", instead: "rebalancer"},
	{word: "newcomer", instead: "joining node"},
	{word: "office", instead: "test service"},
	{word: "outrun", instead: "needs reopen"},
	{word: "patience", instead: "long poll"},
	{word: "patient", instead: "long poll"},
	{word: "pledge", instead: "bootstrap vote", but: []string{"cluster/registry_rpc.go"}},
	{word: "pledged", instead: "voted", but: []string{"cluster/registry_rpc.go"}},
	{word: "poke", instead: "notify"},
	{word: "portion", instead: "work budget"},
	{word: "pulse", instead: "heartbeat"},
	{word: "rearm", instead: "set the timer again"},
	{word: "residue", instead: "residual filter"},
	{word: "roster", instead: "node list", but: []string{"cluster/registry_rpc.go"}},
	{word: "sayer", instead: "reporter"},
	{word: "shaky", instead: "unhealthy"},
	{word: "sighting", instead: "gossip node"},
	{word: "surroundings", instead: "rule input"},
	{word: "surveyor", instead: "status collector"},
	{word: "tallies", instead: "aggregates, record counts or checksums"},
	{word: "tally", instead: "aggregate, record count or checksum"},
	{word: "tenancy", instead: "install guard"},
	{word: "town", instead: "test service"},
	{word: "unrest", instead: "repair priority"},
	{word: "vigil", instead: "leader watchdog"},
	{word: "witness", instead: "tracking transport"},
}

// retiredPhrases lists turns of phrase that readers stumble over. A row without
// folders holds for the whole repository; else for these folders, until the others
// are free of it too. Texts are compared as they are, on one line.
var retiredPhrases = []struct {
	phrase, instead string
	folders         []string
}{
	{phrase: "Is no ", instead: `"Not a valid ..."`},
	{phrase: "tells whether", instead: "reports whether"},
	{phrase: "hoever ", instead: "a noun"},
}

var words = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

func TestWords_RetiredOnesAreGone(t *testing.T) {
	t.Parallel()
	instead := map[string]string{}
	but := map[string][]string{}
	for _, r := range retired {
		instead[r.word], but[r.word] = r.instead, r.but
	}
	const self = "cmd/internal/node/words_test.go"
	root := os.DirFS(filepath.Join("..", "..", ".."))
	seen := 0
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); name != "." && (strings.HasPrefix(base, ".") || base == "data") {
				return fs.SkipDir
			}
			return nil
		}
		if ext := path.Ext(name); ext != ".go" && ext != ".md" || name == self {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		seen++
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if name == "CONTRIBUTING.md" && strings.HasPrefix(line, "| `") {
				continue // its table of examples shows what not to write
			}
			for _, word := range words.FindAllString(line, -1) {
				word = strings.ToLower(word)
				if use, ok := instead[word]; ok && !slices.Contains(but[word], name) {
					t.Errorf("%s:%d: %q is retired: use %q", name, number, word, use)
				}
			}
			for _, p := range retiredPhrases {
				applies := len(p.folders) == 0 || slices.ContainsFunc(p.folders, func(folder string) bool { return within(name, folder) })
				if applies && strings.Contains(line, p.phrase) {
					t.Errorf("%s:%d: %q is retired: use %s", name, number, p.phrase, p.instead)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < len(folders) {
		t.Fatalf("read %d files: not the module's root", seen)
	}
}
