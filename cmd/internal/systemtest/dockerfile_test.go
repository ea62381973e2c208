package systemtest

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// dockerfile returns the instructions of deploy/Dockerfile in their order, each as its name and its text.
func dockerfile(t *testing.T, root string) (instructions [][2]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			name, rest, _ := strings.Cut(line, " ")
			instructions = append(instructions, [2]string{name, rest})
		}
	}
	return instructions
}

// TestDockerfile_Steps runs the steps of the Dockerfile without a builder of images: its commands in this
// repository, and what the image starts, from a directory that has the files of the image and nothing else.
// Modules are not downloaded again.
func TestDockerfile_Steps(t *testing.T) {
	t.Parallel()
	binary(t) // the same packages: compiled once, and not while the commands below have to end in time
	ctx, cancel := limited(t, 5*time.Minute)
	defer cancel()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	out, image := t.TempDir(), t.TempDir()
	args := map[string]string{}
	var start []string
	for _, instruction := range dockerfile(t, root) {
		name, text := instruction[0], instruction[1]
		switch name {
		case "ARG":
			variable, value, _ := strings.Cut(text, "=")
			args[variable] = value
		case "RUN":
			if text == "go mod download" {
				continue
			}
			cmd := exec.CommandContext(ctx, "sh", "-euc", strings.ReplaceAll(text, "/out/", out+"/"))
			cmd.Dir, cmd.Env = root, append(os.Environ(), "GOFLAGS=-buildvcs=false", "VERSION="+args["VERSION"])
			if printed, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("RUN %s: %v\n%s", text, err, printed)
			}
		case "COPY":
			words := strings.Fields(text)
			if words[0] != "--from=build" {
				for _, file := range words[:len(words)-1] {
					if _, err := os.Stat(filepath.Join(root, file)); err != nil {
						t.Errorf("COPY %s: %v", text, err)
					}
				}
				continue
			}
			from, to := words[len(words)-2], filepath.Join(image, words[len(words)-1])
			if made, is := strings.CutPrefix(from, "/out/"); is {
				if err := os.Rename(filepath.Join(out, made), to); err != nil {
					t.Fatalf("COPY %s: %v", text, err)
				}
			}
		case "ENTRYPOINT", "CMD":
			var words []string
			if err := json.Unmarshal([]byte(text), &words); err != nil {
				t.Fatal(err)
			}
			start = append(start, words...)
		}
	}
	if len(start) < 2 || start[0] != "/switchyard" || start[1] != "serve" {
		t.Fatalf("the image starts %q", start)
	}
	// The program needs nothing of the machine but what the image has.
	if linked, err := exec.CommandContext(ctx, "go", "version", "-m", filepath.Join(image, "switchyard")).CombinedOutput(); err != nil || !strings.Contains(string(linked), "CGO_ENABLED=0") {
		t.Errorf("the program is not static: %v\n%s", err, linked)
	}
	for i := range start {
		start[i] = strings.NewReplacer("0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:9090", "127.0.0.1:0").Replace(start[i])
		if start[i] == "/data" {
			start[i] = filepath.Join(image, "data")
		}
	}
	p, err := startIn(image, filepath.Join(image, "switchyard"), start[2:], []string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}, &tail{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	select {
	case p.URL = <-p.addresses:
	case <-p.exited:
		t.Fatalf("the node ended: %v\n%s", p.err, p.output)
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	if err := p.waitReady(ctx); err != nil {
		t.Fatal(err)
	}
	body := object{"name": "Image", "slug": "image"}
	for token, want := range map[string]int{"": http.StatusUnauthorized, rootToken: http.StatusCreated} {
		if err := NewClient(p.URL, token, 1).Decode(ctx, "POST", "/workspaces/onboard", body, want, nil); err != nil {
			t.Error(err)
		}
	}
	if err := p.Terminate(ctx); err != nil {
		t.Error(err)
	}
}
