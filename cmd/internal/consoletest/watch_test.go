package consoletest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// watch hears what goes wrong in a tab. Chromium's events come on the goroutine of the tab.
type watch struct {
	mu     sync.Mutex
	hosts  []string // that pages may ask
	expect []string // HTTP errors that the test expects, as "401 /console/session"; a path may end in *
	seen   []string // HTTP errors that were answered and expected
	faults []string
	// methods of the requests that are not answered yet, by the request's id
	methods map[network.RequestID]string
}

// newWatch makes a watch for a tab of a page on these hosts. A visitor without a session is told so once.
func newWatch(hosts ...string) *watch {
	return &watch{hosts: hosts, expect: []string{"GET 401 /console/session"}, methods: map[network.RequestID]string{}}
}

// hear takes one event of Chromium.
func (w *watch) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		w.fault("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning {
			return
		}
		var text []string
		for _, arg := range e.Args {
			text = append(text, arg.Description+string(arg.Value))
		}
		w.fault("console.%s: %s", e.Type, strings.Join(text, " "))
	case *log.EventEntryAdded:
		// HTTP errors are judged below, with their addresses.
		if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork {
			w.fault("log: %s (%s)", e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if csp := e.Issue.Details.ContentSecurityPolicyIssueDetails; csp != nil {
			w.fault("Content-Security-Policy: %s %s", csp.ViolatedDirective, csp.BlockedURL)
		}
	case *page.EventJavascriptDialogOpening:
		w.fault("a dialog of the browser: %s", e.Message)
	case *network.EventRequestWillBeSent:
		w.asked(e)
	case *network.EventResponseReceived:
		method := w.methods[e.RequestID]
		delete(w.methods, e.RequestID)
		w.answered(method, e.Response)
	case *network.EventLoadingFailed:
		delete(w.methods, e.RequestID)
	}
}

func (w *watch) asked(e *network.EventRequestWillBeSent) {
	w.methods[e.RequestID] = e.Request.Method
	u, err := url.Parse(e.Request.URL)
	if err != nil {
		w.fault("a request to %q: %v", e.Request.URL, err)
		return
	}
	if strings.HasPrefix(u.Scheme, "http") && !slices.Contains(w.hosts, u.Host) {
		w.fault("a request to another host: %s", e.Request.URL)
	}
}

func (w *watch) answered(method string, r *network.Response) {
	if r.Status < 400 {
		return
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		w.fault("an answer of %q: %v", r.URL, err)
		return
	}
	what := fmt.Sprintf("%s %d %s", method, r.Status, u.Path)
	for _, expected := range w.expect {
		if prefix, ok := strings.CutSuffix(expected, "*"); expected == what || ok && strings.HasPrefix(what, prefix) {
			w.seen = append(w.seen, what)
			return
		}
	}
	w.fault("HTTP error: %s", what)
}

func (w *watch) fault(format string, args ...any) {
	const most = 20 // of a page that goes round in circles
	if len(w.faults) < most {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// allow makes HTTP errors expected, such as "PATCH 412 /workspaces/*".
func (w *watch) allow(expected ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expect = append(w.expect, expected...)
}

// told reports whether an expected HTTP error that begins so was answered.
func (w *watch) told(prefix string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.seen, func(s string) bool { return strings.HasPrefix(s, prefix) })
}

// takeFaults returns what went wrong since it was called last.
func (w *watch) takeFaults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	faults := w.faults
	w.faults = nil
	return faults
}
