package systemtest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// interruptedExit and usageExit are the exit codes of a command that Ctrl-C has ended, and of a wrong command line.
const (
	interruptedExit = 130
	usageExit       = 80
)

// exitOf returns the exit code of a process that has ended.
func exitOf(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

// Ctrl-C is no failure of its own, and scripts tell it by the code.
func TestCommands_EndAtCtrlC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	export := filepath.Join(dir, "export")
	const first = `{"n":0,"type":"workspace","version":1,"data":{"id":"w"}}` + "\n"
	last := fmt.Sprintf(`{"type":"end","counts":{"workspace":1},"sha256":"%x"}`+"\n", sha256.Sum256([]byte(first)))
	if err := os.WriteFile(export, []byte(first+last), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"status": {"cluster", "status", "--url", "URL"},
		"export": {"workspace", "export", filepath.Join(dir, "new"), "--workspace", "w", "--url", "URL"},
		"import": {"workspace", "import", export, "--url", "URL"},
		"move":   {"workspace", "move", "w", "--from", "URL", "--to", "URL"},
		"backup": {"backup", "--to", filepath.Join(dir, "backups"), "--url", "URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 100)
			over := make(chan struct{})
			service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				asked <- struct{}{}
				<-over
			}))
			defer service.Close()
			defer close(over)
			cmd := exec.CommandContext(t.Context(), binary(t), strings.Split(strings.ReplaceAll(strings.Join(args, "\n"), "URL", service.URL), "\n")...)
			cmd.Env = append(os.Environ(), "SWITCHYARD_ROOT_TOKEN=the-operators-token")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			select {
			case <-asked:
			case err := <-ended:
				t.Fatalf("ended before it asked: %v, %s", err, out.String())
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if code := exitOf(t, <-ended); code != interruptedExit {
				t.Errorf("exits %d: %s", code, out.String())
			}
		})
	}
}

// The reader of stdout waits for the output of a command, not for its usage.
func TestCommands_TellOfAWrongLineOnStderr(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), binary(t), "cluster", "drain")
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &told
	if code := exitOf(t, cmd.Run()); code != usageExit || out.Len() > 0 || !strings.Contains(told.String(), "Usage: switchyard cluster drain") || !strings.Contains(told.String(), `"<node>"`) {
		t.Errorf("exits %d, stdout %q, stderr %q", code, out.String(), told.String())
	}
}

func TestCommands_FailWithoutRoomForTheirOutput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("this system has no /dev/full; Linux has it")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	cmd := exec.CommandContext(t.Context(), binary(t), "version")
	cmd.Stdout = full
	if code := exitOf(t, cmd.Run()); code != 1 {
		t.Errorf("exits %d", code)
	}
}
