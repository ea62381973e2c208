package consoletest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"switchyard/cmd/internal/systemtest"
)

var (
	update = flag.Bool("update", false, "write the golden pictures anew")
	// A wait is long, since a busy machine may need it; a test that passes does not.
	within = flag.Duration("within", time.Minute, "the longest wait for one thing on a page")
)

// testLimit bounds a test, from when the binary is built and the browser runs.
const testLimit = 5 * time.Minute

// shared is what all tests of the package use: the binaries under test and one Chromium process. TestMain
// ends it.
var shared struct {
	built struct {
		sync.Once
		dir, switchyard, agent string
		err                    error
	}
	chromium struct {
		sync.Once
		//nolint:containedctx // chromedp keeps the browser in a context
		ctx context.Context
		end []func()
		err error
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for the browser and the nodes most of the time, so more of them run at once.
	if few := flag.Lookup("test.parallel"); few.Value.String() == few.DefValue {
		if err := few.Value.Set("4"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	systemtest.LogSecrets.Give(rootToken)
	code := m.Run()
	for _, end := range shared.chromium.end {
		end()
	}
	for _, fault := range systemtest.LogSecrets.Faults() {
		fmt.Fprintf(os.Stderr, "a node has logged %s\n", fault)
		code = max(code, 1)
	}
	if shared.built.dir != "" {
		if err := os.RemoveAll(shared.built.dir); err != nil {
			fmt.Fprintln(os.Stderr, "remove the binaries:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// program returns the path of a Chromium, or an error if there is none.
func program() (string, error) {
	if path := os.Getenv("SWITCHYARD_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no chromium, chromium-browser or google-chrome in PATH")
}

// limited skips the test if there is no browser, builds the binaries and starts the browser if no test did
// so yet, and bounds the test.
func limited(t testing.TB) context.Context {
	t.Helper()
	if _, err := program(); err != nil {
		t.Skipf("left out: the console in a browser (%v); on Debian: apt-get install chromium", err)
	}
	b := &shared.built
	b.Do(func() { b.err = build() })
	if b.err != nil {
		t.Fatal(b.err)
	}
	c := &shared.chromium
	c.Do(func() { c.err = startChromium() })
	if c.err != nil {
		t.Fatal(c.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	return ctx
}

// build compiles switchyard and the example agent, which the scripted visit runs.
func build() (err error) {
	b := &shared.built
	if b.dir, err = os.MkdirTemp("", "switchyard-consoletest"); err != nil {
		return fmt.Errorf("make a directory for the binaries: %w", err)
	}
	if b.switchyard, err = systemtest.Build(context.Background(), b.dir, false); err != nil {
		return err
	}
	b.agent = filepath.Join(b.dir, "agent")
	if out, err := exec.CommandContext(context.Background(), "go", "build", "-o", b.agent, "switchyard/examples/agent").CombinedOutput(); err != nil {
		return fmt.Errorf("build the example agent: %w\n%s", err, out)
	}
	return nil
}

// startChromium starts the browser. It asks nobody for anything but what the tests tell it to.
func startChromium() error {
	path, err := program()
	if err != nil {
		return err
	}
	options := append([]chromedp.ExecAllocatorOption{}, chromedp.DefaultExecAllocatorOptions[:]...)
	options = append(options,
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("headless", "new"),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("no-proxy-server", true),
		chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("lang", "en-US"),
		chromedp.Env("LANGUAGE=en", "TZ=UTC"),
	)
	c := &shared.chromium
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	browser, endBrowser := chromedp.NewContext(allocator)
	c.ctx, c.end = browser, []func(){endBrowser, endAllocator}
	// The first run starts the process, which lives as long as the context of that run.
	if err := chromedp.Do(browser); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}
