package systemtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// lane is a session that somebody works in, and who may watch it.
type lane struct {
	admin     *Client // of the workspace
	workspace string
	issue     string
	session   string
	token     string
	path      string // of the session
}

// newLane makes a workspace with an issue, and registers a session of it.
func newLane(ctx context.Context, t *testing.T, c *Client, slug string) *lane {
	t.Helper()
	o, err := c.Onboard(ctx, "Lanes", slug)
	if err != nil {
		t.Fatal(err)
	}
	l := &lane{admin: &Client{URL: c.URL, Token: o.Token.Token, HTTP: c.HTTP}, workspace: o.Workspace.ID}
	var issue Issue
	if err := l.admin.Decode(ctx, "POST", "/workspaces/"+l.workspace+"/issues", map[string]string{"title": "Mend the gate", "description": "It squeaks."}, http.StatusCreated, &issue); err != nil {
		t.Fatal(err)
	}
	l.issue = issue.ID
	l.register(ctx, t)
	return l
}

// register begins a new session of the lane's issue.
func (l *lane) register(ctx context.Context, t *testing.T) {
	t.Helper()
	var registered struct {
		Session   struct{ ID string }
		LaneToken string
		MCPURL    string `json:"mcpUrl"`
	}
	if err := l.admin.Decode(ctx, "POST", "/workspaces/"+l.workspace+"/agent/sessions/register", map[string]string{"issueId": l.issue, "provider": "claude", "status": "running"}, http.StatusCreated, &registered); err != nil {
		t.Fatal(err)
	}
	l.session, l.token = registered.Session.ID, registered.LaneToken
	l.path = "/workspaces/" + l.workspace + "/agent/sessions/" + l.session
	if !strings.HasSuffix(registered.MCPURL, l.path+"/mcp") {
		t.Errorf("the tools are at %s", registered.MCPURL)
	}
}

// bearer sends a token with each request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}

// connect connects the protocol's own client to the lane's tools at a node.
func (l *lane) connect(ctx context.Context, base, token string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "systemtest", Version: "1"}, nil)
	return client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:   base + l.path + "/mcp",
		HTTPClient: &http.Client{Transport: bearer{token, l.admin.HTTP.Transport}, Timeout: time.Minute},
		MaxRetries: -1,
	}, nil)
}

// agent is an agent that has a lane's tools.
type agent struct {
	*testing.T
	*mcp.ClientSession
	outputs map[string]*jsonschema.Schema
}

// hire connects an agent that holds each answer against the tool's own description.
func (l *lane) hire(ctx context.Context, t *testing.T, base string) *agent {
	t.Helper()
	cs, err := l.connect(ctx, base, l.token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cs.Close() })
	a := &agent{T: t, ClientSession: cs, outputs: map[string]*jsonschema.Schema{}}
	list, err := cs.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		compiled(t, tool.Name+" takes", tool.InputSchema)
		a.outputs[tool.Name] = compiled(t, tool.Name+" answers", tool.OutputSchema)
	}
	return a
}

func compiled(t *testing.T, name string, schema any) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///schema.json", value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s, err := c.Compile("mem:///schema.json")
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if s.Types == nil || !slices.Equal(s.Types.ToStrings(), []string{"object"}) {
		t.Errorf("%s: no object", name)
	}
	return s
}

type told struct {
	Code, Message, Hint string
	Details             json.RawMessage
}

// call calls a tool that must do it, and reads its answer into out.
func (a *agent) call(ctx context.Context, tool string, arguments, out any) {
	a.Helper()
	result, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		a.Fatalf("%s: %v", tool, err)
	}
	text := textOf(a.T, result)
	if result.IsError {
		a.Fatalf("%s: %s", tool, text)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		a.Fatal(err)
	}
	if err := a.outputs[tool].Validate(value); err != nil {
		a.Errorf("%s: %v in %s", tool, err, text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			a.Fatalf("%s: %v in %s", tool, err, text)
		}
	}
}

// fail calls a tool that must not do it, and returns what it says.
func (a *agent) fail(ctx context.Context, tool string, arguments any) (e told) {
	a.Helper()
	result, err := a.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		a.Fatalf("%s: %v", tool, err)
	}
	text := textOf(a.T, result)
	if !result.IsError {
		a.Fatalf("%s did it: %s", tool, text)
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Message == "" || e.Hint == "" {
		a.Fatalf("%s: %v in %s", tool, err, text)
	}
	return e
}

// textOf is the text of a result, which must say what its structured form says. An
// error has none: clients hold it against the tool's output schema.
func textOf(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 {
		t.Fatalf("%d contents", len(result.Content))
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		t.Fatalf("content is a %T", result.Content[0])
	}
	var said any
	if err := json.Unmarshal([]byte(text.Text), &said); err != nil {
		t.Fatalf("%v in %s", err, text.Text)
	}
	if result.IsError {
		if result.StructuredContent != nil {
			t.Errorf("an error has structured content: %s", str(result.StructuredContent))
		}
		return text.Text
	}
	a, _ := json.Marshal(said)
	b, _ := json.Marshal(result.StructuredContent)
	if !bytes.Equal(a, b) {
		t.Errorf("the text says %s, the structure %s", a, b)
	}
	return text.Text
}

func str(v any) string { b, _ := json.Marshal(v); return string(b) }

// awaitMetric returns when a node's metrics have a line.
func awaitMetric(ctx context.Context, t *testing.T, base, line string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := NewClient(base, "", 1).Do(ctx, "GET", "/metrics", nil)
		if err == nil && strings.Contains(string(answer.Body), "\n"+line+"\n") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Errorf("there never was %s", line)
			return
		}
	}
}

type activities struct {
	Activities []struct{ ID, Type, Message string }
}
