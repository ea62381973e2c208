package systemtest

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// SecretWatch finds secrets in logs. It reads every line that the nodes of a test run log, and learns the
// secrets from the answers that clients get. Its methods may be called from any goroutine.
type SecretWatch struct {
	mu sync.Mutex
	// given are secrets that tests give to nodes, in flags and in the environment.
	given []string
	// answered are secrets of answers, by the name of their field.
	answered map[string]string
	// words are the words of all lines that are as long as a secret, with one line of each. A secret may be
	// logged before a client has its answer, so they are compared at the end.
	words  map[string]string
	faults map[string]string // a line of each kind
}

// LogSecrets watches the logs of all nodes that this process starts.
var LogSecrets = NewSecretWatch()

// NewSecretWatch makes a watch that knows the forms of all secrets with a form.
func NewSecretWatch() *SecretWatch {
	return &SecretWatch{answered: map[string]string{}, words: map[string]string{}, faults: map[string]string{}}
}

// leastSecret is the length of the shortest secret that the watch looks for.
const leastSecret = 16

var (
	// secretForms are the forms of credentials, of secrets of webhooks, and of keys.
	secretForms = regexp.MustCompile(`sw[a-z]_[A-Za-z0-9_-]{40,}|whsec_[A-Za-z0-9+/=_-]{16,}|AGE-SECRET-KEY-1[0-9A-Z]+|PRIVATE KEY-----`)
	// secretFields match the secrets of an answer. Some, such as the token of a share, have no form of their own.
	secretFields = regexp.MustCompile(`"(token|secret|laneToken|clientSecret|access_token)":\s*"([^"\\]{16,})"`)
	secretWord   = regexp.MustCompile(`[A-Za-z0-9_=+-]{16,}`)
)

// Give adds secrets that nodes are given.
func (w *SecretWatch) Give(secrets ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range secrets {
		if len(secret) >= leastSecret && !slices.Contains(w.given, secret) {
			w.given = append(w.given, secret)
		}
	}
}

// Answer learns the secrets of an answer.
func (w *SecretWatch) Answer(body []byte) {
	found := secretFields.FindAllSubmatch(body, -1)
	if len(found) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, field := range found {
		w.answered[string(field[2])] = string(field[1])
	}
}

// Log returns a writer for the log of one node.
func (w *SecretWatch) Log() *SecretLog { return &SecretLog{watch: w} }

// line looks at one line of a log.
func (w *SecretWatch) line(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if form := secretForms.Find(line); form != nil {
		kind, _, _ := bytes.Cut(form, []byte("_"))
		w.faults["a secret that begins with "+string(kind)] = string(line)
	}
	for _, secret := range w.given {
		if bytes.Contains(line, []byte(secret)) {
			w.faults["the secret "+secret+", which the node was given"] = string(line)
		}
	}
	for _, word := range secretWord.FindAll(line, -1) {
		if _, known := w.words[string(word)]; !known {
			w.words[string(word)] = string(line)
		}
	}
}

// Faults returns the secrets that were logged, each with its line.
func (w *SecretWatch) Faults() (faults []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := maps.Clone(w.faults)
	for secret, field := range w.answered {
		if line, logged := w.words[secret]; logged {
			all["the "+field+" of an answer"] = line
		}
	}
	for kind, line := range all {
		faults = append(faults, fmt.Sprintf("%s: %s", kind, strings.TrimSpace(line)))
	}
	slices.Sort(faults)
	return faults
}

// SecretLog is the log of one node.
type SecretLog struct {
	watch *SecretWatch
	mu    sync.Mutex
	rest  []byte // a line that has not ended
}

// Write implements io.Writer.
func (l *SecretLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		line, rest, ended := bytes.Cut(l.rest, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		l.watch.line(line)
		l.rest = rest
	}
}
