package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Binary starts servers from an executable: this program's own, as a rule.
type Binary struct {
	Path string
	// EmptyCommand is the subcommand that runs ServeEmpty and takes --http.
	EmptyCommand string
}

// StartNode starts a node with empty data below dir.
func (b Binary) StartNode(ctx context.Context, dir string) (*Process, error) {
	data, err := os.MkdirTemp(dir, scratchName)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	addrs, err := freeAddrs(2)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(data))
	}
	p, err := start(ctx, "http://"+addrs[0], "/readyz", data,
		b.Path, "serve", "--data", data+"/data", "--http", addrs[0], "--metrics", addrs[1], "--peer=", "--gossip=", "--log-level", "warn",
		"--webhooks-allow-http", "--webhooks-allow-cidr", "127.0.0.0/8")
	if err != nil {
		return nil, err
	}
	p.MetricsURL = "http://" + addrs[1] + "/metrics"
	return p, nil
}

// StartEmpty starts the empty handler.
func (b Binary) StartEmpty(ctx context.Context) (*Process, error) {
	addrs, err := freeAddrs(1)
	if err != nil {
		return nil, err
	}
	return start(ctx, "http://"+addrs[0], "/", "", b.Path, b.EmptyCommand, "--http", addrs[0])
}

// scratchName begins the names of directories a run makes and removes.
const scratchName = ".switchyard-bench-*"

const (
	startWithin = 30 * time.Second
	stopWithin  = 15 * time.Second
	readyPoll   = time.Millisecond
)

// start runs a server until its ready path answers 200. The data directory, if
// any, is removed when it stops.
func start(ctx context.Context, base, ready, data, path string, args ...string) (*Process, error) {
	said := &tail{}
	cmd := exec.Command(path, args...)
	cmd.Stderr = said
	for _, v := range os.Environ() { // settings of the shell's are not the run's
		if !strings.HasPrefix(v, "SWITCHYARD_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("bench: start %s: %w", path, err), removeData(data))
	}
	gone := make(chan struct{}) // closed once the process has ended
	go func() {
		_ = cmd.Wait() // the output has the reason of its end
		close(gone)
	}()
	p := &Process{
		URL: base, PID: cmd.Process.Pid,
		RSS: func() int64 { return residentBytes(cmd.Process.Pid) }, CPU: func() time.Duration { return processorTime(cmd.Process.Pid) },
	}
	p.Kill = func() {
		_ = cmd.Process.Kill()
		<-gone
	}
	p.Again = func(ctx context.Context) (*Process, error) { return start(ctx, base, ready, data, path, args...) }
	p.Stop = sync.OnceValue(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(stopWithin):
			_ = cmd.Process.Kill()
			<-gone
		}
		return removeData(data)
	})
	if err := awaitReady(ctx, base, ready, gone); err != nil {
		stopErr := p.Stop()
		return nil, errors.Join(fmt.Errorf("bench: start %s: %w; it said: %s", strings.Join(args, " "), err, said), stopErr)
	}
	p.Ready = time.Since(began)
	return p, nil
}

func removeData(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

func awaitReady(ctx context.Context, base, path string, gone <-chan struct{}) error {
	dial, host, err := dialer(base)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	d := dial()
	defer d.close()
	ask := request("GET", host, path, "", "")
	every := time.NewTicker(readyPoll)
	defer every.Stop()
	for {
		status, _, err := d.do(ask)
		if err == nil && status == 200 {
			return nil
		}
		select {
		case <-every.C:
		case <-gone:
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("not ready: status %d, %w", status, errors.Join(ctx.Err(), err))
		}
	}
}

// freeAddrs finds ports nobody listens on right now.
func freeAddrs(n int) (addrs []string, err error) {
	held := make([]net.Listener, 0, n) // until all are found, so that they differ
	for range n {
		ln, e := net.Listen("tcp", "127.0.0.1:0")
		if e != nil {
			err = fmt.Errorf("bench: find a free port: %w", e)
			break
		}
		held = append(held, ln)
		addrs = append(addrs, ln.Addr().String())
	}
	for _, ln := range held {
		err = errors.Join(err, ln.Close())
	}
	return addrs, err
}

// residentBytes reads a process's resident memory where /proc tells it; else 0.
func residentBytes(pid int) int64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// processorTime returns the processor time that a process has used, from /proc; 0 where
// there is none.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in brackets, may have anything in it; behind it the 12th and 13th are
	// the ticks for the process and for the system on its behalf, a hundredth of a
	// second each wherever Go runs.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	if errUser != nil || errSystem != nil {
		return 0
	}
	return time.Duration(user+system) * (time.Second / 100)
}

// tail keeps the end of a process's output.
type tail struct {
	mu  sync.Mutex
	end []byte
}

const tailLength = 2000

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, b...)
	if len(t.end) > tailLength {
		t.end = bytes.Clone(t.end[len(t.end)-tailLength:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.end))
}
