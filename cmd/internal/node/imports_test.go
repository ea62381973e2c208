package node

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forbidden lists the imports that a folder must not have. Imports run one way: cmd to
// all, httpapi to the domain, actors to the domain and storage, cluster to storage. A
// rule holds for a folder and those below it, tests included, except for the files
// named in but.
var forbidden = []struct {
	from, imports, reason string
	but                   []string
}{
	{from: "storage", imports: "switchyard", reason: "storage is the bottom: it knows keys and records, not what they mean", but: []string{"switchyard/internal/testkit"}},
	{from: "storage", imports: "github.com/hashicorp/raft", reason: "storage does not know what a leader is"},

	{from: "cluster/raftstore", imports: "switchyard/cluster", reason: "the Raft stores know rows, not nodes or leaders"},
	{from: "cluster/membership", imports: "switchyard/cluster", reason: "the list of nodes and its rules depend on nothing"},
	{from: "cluster/membership", imports: "github.com/hashicorp/raft", reason: "membership of the cluster is not membership of a group"},
	{from: "cluster/membership", imports: "github.com/hashicorp/memberlist", reason: "gossip makes no node a member"},
	{from: "cluster/membership", imports: "sync", reason: "the rules have no goroutines"},
	{from: "cluster/membership", imports: "net", reason: "the rules talk to nobody"},
	{from: "cluster/gossip", imports: "switchyard/cluster", reason: "gossip knows processes and the list of members, not groups", but: []string{"switchyard/cluster/membership"}},
	{from: "cluster/gossip", imports: "github.com/hashicorp/raft", reason: "gossip knows processes, not groups"},
	{from: "cluster/topology", imports: "switchyard", reason: "the status is data alone", but: []string{"switchyard/cluster/membership"}},
	{from: "cluster/placement", imports: "switchyard/cluster", reason: "a plan follows from its input alone", but: []string{"switchyard/cluster/membership", "switchyard/cluster/topology"}},
	{from: "cluster/placement", imports: "github.com/hashicorp", reason: "a plan follows from its input alone"},
	{from: "cluster/placement", imports: "github.com/cockroachdb", reason: "a plan follows from its input alone"},
	{from: "cluster/placement", imports: "sync", reason: "planning has no goroutines", but: []string{"_test.go"}},
	{from: "cluster/placement", imports: "net", reason: "planning talks to nobody"},
	{from: "cluster/placement", imports: "math/rand", reason: "a plan follows from its input alone", but: []string{"_test.go"}},

	{from: "cluster", imports: "switchyard/actors", reason: "cluster replicates opaque batches and never sees an issue"},
	{from: "cluster", imports: "switchyard/httpapi", reason: "cluster replicates opaque batches and never sees an issue"},
	{from: "cluster", imports: "switchyard/bench", reason: "load comes from outside"},
	{from: "cluster", imports: "switchyard/cmd", reason: "cmd assembles, nothing imports it"},

	{from: "actors", imports: "switchyard/cluster", reason: "actors declares the Replicator it needs; the node puts the two together"},
	{from: "actors", imports: "switchyard/httpapi", reason: "actors does not know how requests arrive"},
	{from: "actors", imports: "switchyard/bench", reason: "load comes from outside"},
	{from: "actors", imports: "switchyard/cmd", reason: "cmd assembles, nothing imports it"},
	{from: "actors", imports: "github.com/hashicorp/raft", reason: "replication is behind the Replicator"},
	{from: "actors", imports: "github.com/valyala/fasthttp", reason: "actors does not know how requests arrive"},
	{from: "actors", imports: "net/http", reason: "actors does not know how requests arrive; webhook alone sends some", but: []string{"actors/webhook/client.go", "actors/webhook/errors.go", "_test.go"}},

	{from: "actors/delivery", imports: "switchyard/actors", reason: "deliveries see the engine as functions they are given", but: []string{"switchyard/actors/tracker", "switchyard/actors/webhook"}},
	{from: "actors/delivery", imports: "github.com/asynkron/protoactor-go", reason: "deliveries see the engine as functions they are given"},
	{from: "actors/tracker", imports: "github.com/asynkron/protoactor-go", reason: "the domain has no actors, so that it runs on any goroutine"},
	{from: "actors/tracker", imports: "github.com/cockroachdb/pebble/v2", reason: "the domain reads and writes through storage's tables", but: []string{"_test.go"}},
	{from: "actors/tracker", imports: "net", reason: "the domain talks to nobody", but: []string{"net/url", "net/netip", "_test.go"}},
	{from: "actors/tracker", imports: "os", reason: "the domain is given all it needs", but: []string{"_test.go"}},
	{from: "actors/tracker", imports: "sync", reason: "the domain has no goroutines", but: []string{"_test.go", "similar_score.go", "search_tail.go", "words.go", "words_fold.go", "form.go"}}, // memory that queries share; forms are listed once
	{from: "actors/tracker", imports: "crypto/rand", reason: "randomness is injected", but: []string{"_test.go"}},
	{from: "actors/tracker", imports: "math/rand", reason: "randomness is injected", but: []string{"_test.go"}},
	{from: "actors/tracker", imports: "log", reason: "an operation answers; who called it logs", but: []string{"_test.go"}},

	{from: "httpapi", imports: "switchyard/storage", reason: "httpapi knows the domain's operations, not how they are kept", but: []string{"_test.go"}},
	{from: "httpapi", imports: "switchyard/cluster", reason: "httpapi declares the Engine it needs", but: []string{"switchyard/cluster/topology"}},
	{from: "httpapi", imports: "switchyard/bench", reason: "load comes from outside"},
	{from: "httpapi", imports: "switchyard/cmd", reason: "cmd assembles, nothing imports it"},
	{from: "httpapi", imports: "github.com/cockroachdb/pebble/v2", reason: "httpapi knows the domain's operations, not how they are kept"},

	{from: "console", imports: "switchyard", reason: "pages and sign-in know nothing of the service; httpapi serves them"},
	{from: "console", imports: "github.com/valyala/fasthttp", reason: "console does not know how requests arrive"},
	{from: "console/signin", imports: "github.com/evanw/esbuild", reason: "the bundler is no part of the service"},
	{from: "httpapi", imports: "github.com/evanw/esbuild", reason: "the bundler is no part of the service"},
	{from: "httpapi", imports: "go.opentelemetry.io/otel/sdk", reason: "httpapi makes spans; the node sends them", but: []string{"_test.go"}},
	{from: "httpapi", imports: "go.opentelemetry.io/otel/exporters", reason: "httpapi makes spans; the node sends them"},
	{from: "httpapi", imports: "github.com/coreos/go-oidc", reason: "console/signin talks to the identity provider"},

	{from: "bench", imports: "switchyard/storage", reason: "load comes from outside: bench sees what a client sees"},
	{from: "bench", imports: "switchyard/cluster", reason: "load comes from outside: bench sees what a client sees"},
	{from: "bench", imports: "switchyard/httpapi", reason: "load comes from outside: bench sees what a client sees"},
	{from: "bench", imports: "switchyard/cmd", reason: "cmd assembles, nothing imports it"},

	{from: "cmd/internal/transfer", imports: "switchyard", reason: "a copy to a file sees what a client sees", but: []string{"switchyard/internal/durable", "switchyard/internal/testkit"}},

	{from: "internal/durable", imports: "switchyard", reason: "it knows directories, not what is in them"},
	{from: "internal/processors", imports: "switchyard", reason: "every package may count the processors, so it is the bottom"},
	{from: "internal/resident", imports: "switchyard", reason: "it knows memory, not what is in it"},
	{from: "internal/testkit", imports: "switchyard", reason: "every test may use testkit, so it is the bottom"},

	{from: "examples", imports: "switchyard", reason: "examples are copied, and see what a client sees"},
	{from: "examples", imports: "github.com", reason: "examples need nothing but Go"},

	{from: "tools/sbom", imports: "switchyard", reason: "a module of its own: what makes a bill of materials is no dependency of the service"},
	{from: "deploy/check", imports: "switchyard", reason: "a module of its own: Helm and Kubernetes are no dependencies of the service"},

	{from: "", imports: "switchyard/internal/testkit", reason: "testkit is for tests", but: []string{"_test.go"}},
	{from: "", imports: "github.com/asynkron/protoactor-go/cluster", reason: "measured: data races, requests that hang until their time-out"},
	{from: "", imports: "github.com/asynkron/protoactor-go/remote", reason: "measured: data races, commands that run twice"},
	{from: "", imports: "github.com/pkg/errors", reason: "errors are wrapped with %w"},
	{from: "", imports: "encoding/gob", reason: "stored and sent forms are ours and versioned"},
	{from: "", imports: "io/ioutil", reason: "deprecated"},
}

// folders are the only ones that hold code.
var folders = []string{"actors", "bench", "cluster", "cmd", "console", "deploy/check", "examples", "httpapi", "internal/durable", "internal/processors", "internal/resident", "internal/testkit", "storage", "tools/sbom"}

func TestImports_RunOneWay(t *testing.T) {
	t.Parallel()
	eachFile(t, func(file string, imports []string) {
		for _, rule := range forbidden {
			if rule.from != "" && !within(path.Dir(file), rule.from) {
				continue
			}
			if slices.ContainsFunc(rule.but, func(s string) bool { return strings.HasSuffix(file, s) }) {
				continue
			}
			for _, imported := range imports {
				if within(imported, rule.imports) && !slices.Contains(rule.but, imported) && !own(file, imported) {
					t.Errorf("%s imports %s: %s", file, imported, rule.reason)
				}
			}
		}
	})
}

func TestLayout_OnlyTheseFoldersHoldCode(t *testing.T) {
	t.Parallel()
	eachFile(t, func(file string, _ []string) {
		if !slices.ContainsFunc(folders, func(folder string) bool { return within(file, folder) }) {
			t.Errorf("%s: code lives in %s only", file, strings.Join(folders, ", "))
		}
		for _, part := range strings.Split(path.Dir(file), "/") {
			if slices.Contains([]string{"util", "utils", "common", "helpers", "models", "types"}, part) {
				t.Errorf("%s: %q says nothing of what lives there", file, part)
			}
		}
	})
}

// own reports whether a file imports its own package or one below it: an external
// test package does.
func own(file, imported string) bool {
	return within(imported, "switchyard/"+path.Dir(file))
}

// within reports whether a slash-separated path is root or below it.
func within(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

// eachFile calls fn for every Go file of the module with its imports.
func eachFile(t *testing.T, fn func(file string, imports []string)) {
	t.Helper()
	root := os.DirFS(filepath.Join("..", "..", ".."))
	seen := 0
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "data") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			return err
		}
		imports := make([]string, 0, len(parsed.Imports))
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports = append(imports, imported)
		}
		seen++
		fn(name, imports)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < len(folders) {
		t.Fatalf("walked %d files: not the module's root", seen)
	}
}
