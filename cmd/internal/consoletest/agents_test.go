package consoletest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startAgent runs a process of examples/agent until the test ends. A step of its pretended work takes so long.
func startAgent(t testing.TB, name, url, workspace, token string, step time.Duration) {
	t.Helper()
	out := &output{}
	cmd := exec.CommandContext(t.Context(), shared.built.agent, "-name", name, "-step", step.String(), "-lease", "5m")
	cmd.Env = append(os.Environ(), "SWITCHYARD_URL="+url, "SWITCHYARD_WORKSPACE="+workspace, "SWITCHYARD_TOKEN="+token)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(fmt.Errorf("start an agent: %w", err))
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the agent %s printed: %s", name, out)
		}
	})
}

// output is what a process printed.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
