package systemtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Build compiles the switchyard binary into dir, as make build does, and returns its path. race adds
// the race detector, and leaves the compiler's profile out.
func Build(ctx context.Context, dir string, race bool) (string, error) {
	return build(ctx, filepath.Join(dir, "switchyard"), race, "")
}

// build is Build to a path, with tags.
func build(ctx context.Context, binary string, race bool, tags string) (string, error) {
	args := []string{"build", "-trimpath", "-pgo=auto", "-tags", tags, "-o", binary}
	if race {
		args = []string{"build", "-race", "-pgo=off", "-tags", tags, "-o", binary}
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "switchyard/cmd/switchyard")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build switchyard: %w\n%s", err, out)
	}
	return binary, nil
}

// Process is a running node of the real binary.
type Process struct {
	URL     string // of the API
	Metrics string // of /metrics
	cmd     *exec.Cmd
	output  *tail
	// addresses are those the process printed first.
	addresses chan string
	exited    chan struct{}
	err       error // valid after exited is closed
}

// Launch starts `switchyard serve` on free ports over a data directory, a node
// alone, and returns once it is ready.
func Launch(ctx context.Context, binary, data string, env []string, flags ...string) (*Process, error) {
	args := append([]string{"--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0"}, flags...)
	p, err := start(binary, args, env, io.Discard)
	if err != nil {
		return nil, err
	}
	for _, to := range []*string{&p.URL, &p.Metrics} {
		select {
		case *to = <-p.addresses:
		case <-p.exited:
			return nil, fmt.Errorf("launch: the node ended at once: %w\n%s", p.err, p.output)
		case <-ctx.Done():
			p.Kill()
			return nil, fmt.Errorf("launch: no address: %w\n%s", ctx.Err(), p.output)
		}
	}
	if err := p.waitReady(ctx); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// start runs `switchyard serve` and copies what it prints to log.
func start(binary string, flags, env []string, log io.Writer) (*Process, error) {
	return startIn("", binary, flags, env, log)
}

// startIn is start in a directory.
func startIn(dir, binary string, flags, env []string, log io.Writer) (*Process, error) {
	p := &Process{cmd: exec.Command(binary, append([]string{"serve"}, flags...)...), output: &tail{}, addresses: make(chan string, 2), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	// Its own process group, so that a signal to the test does not reach it first.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = io.MultiWriter(p.output, log, LogSecrets.Log())
	all := io.MultiWriter(p.output, log, LogSecrets.Log())
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	go func() {
		lines := bufio.NewScanner(io.TeeReader(stdout, all))
		for lines.Scan() {
			for _, word := range strings.Fields(lines.Text()) {
				if strings.HasPrefix(word, "http://127.0.0.1:") && len(p.addresses) < cap(p.addresses) {
					p.addresses <- word
				}
			}
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func (p *Process) waitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.ready(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("launch: never ready: %w\n%s", ctx.Err(), p.output)
		case <-p.exited:
			return fmt.Errorf("launch: the node ended: %w\n%s", p.err, p.output)
		case <-tick.C:
		}
	}
}

// ready asks once whether the node can answer for every shard.
func (p *Process) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// Kill ends the process as kill -9 does and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Terminate sends SIGTERM and waits for a graceful end.
func (p *Process) Terminate(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("terminate: %w", err)
	}
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("terminate: %w\n%s", p.err, p.output)
		}
		return nil
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("terminate: %w\n%s", ctx.Err(), p.output)
	}
}

// Output is the end of what the process printed.
func (p *Process) Output() string { return p.output.String() }

// RSS is the resident memory in bytes.
func (p *Process) RSS() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read the process's memory: %w", err)
	}
	for line := range bytes.Lines(b) {
		var kb int64
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kb); n == 1 {
			return kb << 10, nil
		}
	}
	return 0, errors.New("read the process's memory: no VmRSS")
}

// Verify runs `switchyard verify` over the data of a stopped node.
func Verify(ctx context.Context, binary, data string) error {
	if out, err := exec.CommandContext(ctx, binary, "verify", "--data", data).CombinedOutput(); err != nil {
		return fmt.Errorf("verify: %w\n%s", err, out)
	}
	return nil
}

// tail keeps the last part of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailBytes; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
