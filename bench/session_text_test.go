package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// texts are the properties of requests that hold text.
var texts = []string{"title", "description", "instructions", "message", "result"}

// foreignWord returns a word in a request that is not from the generator, or "".
func foreignWord(value any, known map[string]bool) string {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			if word := foreignWord(one, known); word != "" {
				return word
			}
		}
	case map[string]any:
		for _, one := range v {
			if word := foreignWord(one, known); word != "" {
				return word
			}
		}
		for _, name := range texts {
			text, _ := v[name].(string)
			text = marked.ReplaceAllString(text, "")
			for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '.' }) {
				if !known[strings.ToLower(word)] && strings.Trim(word, "0123456789") != "" {
					return word
				}
			}
		}
	}
	return ""
}

// marked matches the mark of titles whose deliveries are followed.
var marked = regexp.MustCompile(`^Track \d+ `)

// A constant text compresses to nothing, and is a duplicate of itself.
func TestScenarios_TakeAllTextFromTheGenerator(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, word := range vocabulary().words {
		known[word] = true
	}
	base, _ := fakeNode(t, false)
	node, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(node)
	proxy.FlushInterval, proxy.ErrorLog = -1, log.New(io.Discard, "", 0)
	var mu sync.Mutex
	foreign, bodies := map[string]string{}, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var in map[string]any
		if err == nil && json.Unmarshal(body, &in) == nil {
			mu.Lock()
			bodies++
			if word := foreignWord(in, known); word != "" {
				foreign[word] = r.Method + " " + r.URL.Path
			}
			mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	cfg := quick(t, s.URL)
	cfg.MetricsURL, cfg.Connections, cfg.Duration = base+"/metrics", []int{2}, 20*time.Millisecond
	cfg.StartEmpty = fakeEmpty(t)
	report, err := Run(t.Context(), cfg, io.Discard)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v", err, report.Err())
	}
	mu.Lock()
	defer mu.Unlock()
	for word, request := range foreign {
		t.Errorf("%s has %q, which is not a word of the generator", request, word)
	}
	if bodies < 100 {
		t.Errorf("%d bodies", bodies)
	}
}
