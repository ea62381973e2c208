package httpscript

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
)

// maxBody bounds what is read of a response, in bytes.
const maxBody = 16 << 20

// Target is the service a script runs against.
type Target struct {
	// BaseURL has no slash at its end.
	BaseURL string
	// Client sends the requests; nil means http.DefaultClient.
	Client *http.Client
	// Vars are variables the script starts with.
	Vars map[string]string
}

// Run runs the script and stops at the first response that is not as expected. It
// gives the variables as they are then.
func (s *Script) Run(ctx context.Context, target Target) (map[string]string, error) {
	vars := maps.Clone(target.Vars)
	if vars == nil {
		vars = map[string]string{}
	}
	if _, given := vars["unique"]; !given {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		vars["unique"] = hex.EncodeToString(b[:])
	}
	for i := range s.Stanzas {
		if err := s.Stanzas[i].each(ctx, &target, vars); err != nil {
			return vars, fmt.Errorf("%s:%d: %s %s: %w", s.Name, s.Stanzas[i].Line, s.Stanzas[i].Method, s.Stanzas[i].Target, err)
		}
	}
	return vars, nil
}

func (s *Stanza) each(ctx context.Context, target *Target, vars map[string]string) error {
	if s.As == "" {
		return s.run(ctx, target, vars)
	}
	for _, value := range s.Values {
		value, err := expand(value, vars)
		if err != nil {
			return err
		}
		vars[s.As] = value
		if err := s.run(ctx, target, vars); err != nil {
			return fmt.Errorf("with %s = %q: %w", s.As, value, err)
		}
	}
	return nil
}

func (s *Stanza) run(ctx context.Context, target *Target, vars map[string]string) error {
	req, err := s.request(ctx, target, vars)
	if err != nil {
		return err
	}
	client := target.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read the response: %w", err)
	}
	if err := s.check(resp, body, vars); err != nil {
		return fmt.Errorf("%w\nthe response was %d\n%s", err, resp.StatusCode, body)
	}
	return nil
}

func (s *Stanza) request(ctx context.Context, target *Target, vars map[string]string) (*http.Request, error) {
	path, err := expand(s.Target, vars)
	if err != nil {
		return nil, err
	}
	text, err := expand(s.Body, vars)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if s.HasBody {
		body = strings.NewReader(text)
	}
	method, err := expand(s.Method, vars)
	if err != nil {
		return nil, err
	}
	req, err := newRequest(ctx, method, target.BaseURL, path, body)
	if err != nil {
		return nil, err
	}
	if s.HasBody {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range s.Headers {
		value, err := expand(h.Value, vars)
		if err != nil {
			return nil, err
		}
		if strings.EqualFold(h.Name, "Content-Type") && value == "" {
			req.Header.Del("Content-Type")
			continue
		}
		req.Header.Set(h.Name, value)
	}
	return req, nil
}

// newRequest makes a request for a path as it is written, also one that is no URL.
func newRequest(ctx context.Context, method, base, path string, body io.Reader) (*http.Request, error) {
	if req, err := http.NewRequestWithContext(ctx, method, base+path, body); err == nil {
		return req, nil
	}
	req, err := http.NewRequestWithContext(ctx, method, base, body)
	if err != nil {
		return nil, err
	}
	req.URL.Opaque = path
	return req, nil
}

func (s *Stanza) check(resp *http.Response, body []byte, vars map[string]string) error {
	if resp.StatusCode != s.Status {
		return fmt.Errorf("expected status %d", s.Status)
	}
	for _, want := range s.WantHeaders {
		values := resp.Header.Values(want.Name)
		var got any
		if len(values) > 0 {
			got = strings.Join(values, ", ")
		}
		if err := match("header "+want.Name, want.Value, got, len(values) > 0, vars); err != nil {
			return err
		}
	}
	return matchBody(s.Want, body, vars)
}

// expand puts the variables into a text.
func expand(text string, vars map[string]string) (string, error) {
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{{")
		out.WriteString(before)
		if !ok {
			return out.String(), nil
		}
		name, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return "", fmt.Errorf("unclosed {{ in %q", text)
		}
		value, ok := vars[name]
		if !ok {
			return "", fmt.Errorf("no variable %q", name)
		}
		out.WriteString(value)
		text = after
	}
}
