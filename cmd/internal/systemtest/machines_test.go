package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// machines stand for the machines on which an operator runs the commands of a page of docs. Each has
// a directory for its disk, and addresses of the loopback network for 127.0.0.1 and those in 10.0.0.0/8.
// A shell that runs a page's commands finds programs for ssh, scp, systemctl and switchyard: the last
// two ask this process, which owns the nodes.
type machines struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // that of the test
	root string
	net  [2]string // for 10.0.0. and 10.0.1.
	// env has Go's own directories, which follow from the home directory elsewhere.
	env []string
	// say replaces what stands for values in the pages.
	say []string
	// differs matches what a page's commands print differently in each run, besides ids and times.
	differs *regexp.Regexp
	// jobs is a process that does nothing. Its process group has all programs of the shells. It ends them with
	// the test, also those that the commands left in the background.
	jobs *exec.Cmd

	mu    sync.Mutex
	nodes map[string]*Process // by data directory
	last  map[string][]string // what was served last, by machine
}

// machineSocket is set for the programs of the shell. The test's program asks the socket of that name,
// and ends.
const machineSocket = "SWITCHYARD_TEST_MACHINES"

// machineRequest is a command that this process runs for a machine.
type machineRequest struct {
	Machine string
	Dir     string
	Args    []string
}

// askMachines is what the test's program does when the shell runs it. It returns the exit code.
func askMachines(socket string) int {
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = conn.Close() }()
	var fault string
	err = errors.Join(json.NewEncoder(conn).Encode(machineRequest{os.Getenv("MACHINE"), dir, os.Args[1:]}), json.NewDecoder(conn).Decode(&fault))
	if err != nil || fault != "" {
		fmt.Fprintln(os.Stderr, fault, err)
		return 1
	}
	return 0
}

// machinePrograms are the programs that the shell finds first. An absolute path is one of the machine
// that runs the program; behind a machine's name and for ssh it is one of that machine.
var machinePrograms = map[string]string{
	"switchyard": `case "$1" in serve) exec "$TEST_PROGRAM" "$@" ;; esac
exec "$SWITCHYARD_PROGRAM" "$@"`,
	"systemctl": `exec "$TEST_PROGRAM" systemctl "$@"`,
	"make":      `case "$1" in run) exec "$TEST_PROGRAM" serve --data data ;; *) exit 2 ;; esac`,
	"pkill":     `exec "$TEST_PROGRAM" pkill "$@"`,
	"sudo":      `exec "$@"`,
	"uuidgen":   `cat /proc/sys/kernel/random/uuid`,
	"ssh": `to=$1; shift
for a; do shift; set -- "$@" "$(printf %s "$a" | sed "s#^$ROOT/$MACHINE/#$ROOT/$to/#")"; done
mkdir -p "$ROOT/$to"
exec "$@"`,
	"scp": `for a; do shift; set -- "$@" "$(printf %s "$a" | sed "s#^\([a-z0-9-]*\):/#$ROOT/\1/#")"; done
exec cp "$@"`,
}

func newMachines(ctx context.Context, t *testing.T) *machines {
	t.Helper()
	for _, name := range []string{"sh", "sed", "curl", "openssl"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the pages' commands need %s: %v", name, err)
		}
	}
	m := &machines{
		t: t, ctx: ctx, root: t.TempDir(), nodes: map[string]*Process{}, last: map[string][]string{},
		net: [2]string{loopbackNet(), loopbackNet()},
	}
	names := []string{"GOCACHE", "GOPATH", "GOMODCACHE", "GOFLAGS", "GOPROXY", "CGO_ENABLED"}
	goEnv, err := exec.CommandContext(ctx, "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(goEnv), "\n"), "\n") {
		m.env = append(m.env, names[i]+"="+value)
	}
	programs := filepath.Join(m.root, "programs")
	program, err := os.Executable()
	if err := errors.Join(err, os.Mkdir(programs, 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, text := range machinePrograms {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\nset -eu\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
	}
	socket := filepath.Join(m.root, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, "PATH="+programs+":"+os.Getenv("PATH"), "ROOT="+m.root, "TEST_PROGRAM="+program, "SWITCHYARD_PROGRAM="+binary(t), machineSocket+"="+socket)
	m.jobs = exec.Command("cat") // until the end of its input, which ends with this process
	m.jobs.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if _, err := m.jobs.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := m.jobs.Start(); err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			m.answer(conn)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		answering.Wait()
		_ = syscall.Kill(-m.jobs.Process.Pid, syscall.SIGKILL)
		_ = m.jobs.Wait()
		m.kill()
	})
	return m
}

// answer runs the command of a program of the shell.
func (m *machines) answer(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	var r machineRequest
	err := json.NewDecoder(conn).Decode(&r)
	switch {
	case err != nil:
	case len(r.Args) > 1 && r.Args[0] == "serve":
		err = m.serve(r)
	case slices.Equal(r.Args, []string{"systemctl", "restart", "switchyard"}), slices.Equal(r.Args, []string{"pkill", "-9", "switchyard"}):
		if r.Args[0] == "pkill" {
			m.kill() // the page has the reader start the node again
		}
		m.mu.Lock()
		r.Args = m.last[r.Machine]
		m.mu.Unlock()
		if len(r.Args) == 0 {
			err = errors.New("no node was started here")
			break
		}
		err = m.serve(r)
	default:
		err = fmt.Errorf("%q is no command that a page may have", r.Args)
	}
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	_ = json.NewEncoder(conn).Encode(fault) // the shell may be gone
}

// serve starts a node as `switchyard serve` does in a terminal, and returns once it is ready. A node
// with the same data is stopped before, as by Ctrl-C.
func (m *machines) serve(r machineRequest) error {
	at := slices.Index(r.Args, "--data")
	if at < 0 || at+1 == len(r.Args) {
		return errors.New("the command has no --data")
	}
	data := r.Args[at+1]
	if !filepath.IsAbs(data) {
		data = filepath.Join(r.Dir, data)
	}
	if err := m.stop(data); err != nil {
		return err
	}
	ready := readyWatch{found: make(chan struct{})}
	p, err := startIn(r.Dir, binary(m.t), r.Args[1:], m.environment(r.Machine), &ready)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.nodes[data], m.last[r.Machine] = p, r.Args
	m.mu.Unlock()
	select {
	case <-ready.found:
		return nil
	case <-p.exited:
		return fmt.Errorf("the node ended: %w\n%s", p.err, p.output)
	case <-m.ctx.Done():
		return fmt.Errorf("the node is not ready: %w\n%s", m.ctx.Err(), p.output)
	}
}

// stop ends the node that has a data directory, if there is one.
func (m *machines) stop(data string) error {
	m.mu.Lock()
	p := m.nodes[data]
	delete(m.nodes, data)
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Terminate(m.ctx)
}

// kill ends all nodes as kill -9 does.
func (m *machines) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.nodes {
		p.Kill()
	}
	clear(m.nodes)
}

// readyWatch is written what a node logs.
type readyWatch struct {
	mu    sync.Mutex
	text  []byte
	once  sync.Once
	found chan struct{}
}

func (w *readyWatch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b...)
	if bytes.Contains(w.text, []byte("msg=ready")) {
		w.once.Do(func() { close(w.found) })
		w.text = nil
	}
	return len(b), nil
}

// address of a machine that is named 127.0.0.1 there. A node's number is the last of its address.
func (m *machines) address(machine string) string {
	switch name, number, _ := strings.Cut(machine, "-"); {
	case machine == "public":
		return m.net[0] + "7"
	case name == "node" && number != "":
		return m.net[0] + number
	case machine == "laptop":
		return m.net[0] + "101"
	}
	return m.net[0] + "100" // the operator's
}

// dir is the directory of a machine's disk.
func (m *machines) dir(machine string, elements ...string) string {
	return filepath.Join(append([]string{m.root, machine}, elements...)...)
}

// environment of the programs on a machine. The addresses are the defaults of flags that name a port
// of 127.0.0.1.
func (m *machines) environment(machine string) []string {
	at := m.address(machine)
	return append(slices.Clone(m.env), "MACHINE="+machine, "HOME="+m.dir(machine, "home"),
		"SWITCHYARD_HTTP="+at+":8080", "SWITCHYARD_METRICS="+at+":9090", "SWITCHYARD_URL=http://"+at+":8080")
}

// machinePath matches a path of a page's machine.
var machinePath = regexp.MustCompile(`(^|[\s='"])(/(?:etc|var|disks)/)`)

// sh runs commands on a machine, and returns what they print. Variables that they set are there for the next
// ones.
func (m *machines) sh(machine, commands string) string {
	m.t.Helper()
	out, err := m.try(machine, commands)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// try is sh for commands that may fail.
func (m *machines) try(machine, commands string) (string, error) {
	if err := os.MkdirAll(m.dir(machine, "home"), 0o700); err != nil {
		return "", fmt.Errorf("make a machine: %w", err)
	}
	// A pipe would be open as long as a program in the background is.
	output, err := os.CreateTemp(m.root, "output-*")
	if err != nil {
		return "", fmt.Errorf("run commands: %w", err)
	}
	defer func() { _ = errors.Join(output.Close(), os.Remove(output.Name())) }()
	text := strings.NewReplacer(append(slices.Clone(m.say), "127.0.0.1", m.address(machine), "10.0.0.", m.net[0], "10.0.1.", m.net[1])...).Replace(commands)
	text = machinePath.ReplaceAllString(text, "${1}"+m.dir(machine)+"$2")
	variables := m.dir(machine, "variables")
	cmd := exec.CommandContext(m.ctx, "sh", "-c", "set -eua\n[ ! -f "+variables+" ] || . "+variables+"\n"+text+"\nexport -p > "+variables)
	cmd.Dir, cmd.Env = m.dir(machine), m.environment(machine)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: m.jobs.Process.Pid}
	err = cmd.Run()
	out, readErr := os.ReadFile(output.Name())
	if err := errors.Join(err, readErr); err != nil {
		return string(out), fmt.Errorf("on %s: %w\n%s\n%s", machine, err, text, out)
	}
	return string(out), nil
}

// page runs the commands of a page of docs. A block of commands names its machine; the operator's has
// no name.
func (m *machines) page(name string, say ...string) {
	m.t.Helper()
	m.say = say
	blocks := regexp.MustCompile("(?s)\n```(\\w*)(?: ([\\w-]+))?\n(.*?)\n```\n").FindAllStringSubmatch(readPage(m.t, "docs/"+name), -1)
	ran := 0
	for _, block := range blocks {
		switch block[1] {
		case "sh":
			if block[2] == "" {
				block[2] = "operator"
			}
			m.sh(block[2], block[3])
			ran++
		case "":
			m.t.Errorf("%s: a block has no language, so nobody runs it: %s", name, block[3])
		}
	}
	if ran == 0 {
		m.t.Errorf("%s has no commands", name)
	}
}

// node returns a node's member of a fleet, to look at its cluster.
func (m *machines) node(name, token string) *Member {
	return &Member{Name: name, URL: "http://" + m.address(name) + ":8080", fleet: &Fleet{Root: token}}
}
