package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/actors/tracker"
)

// tool is an operation as an agent calls it.
type tool struct {
	toolSpec
	plan *inputSchema
	// described is the tool as clients see it.
	described *mcp.Tool
}

// toolbox has the plans and schemas of the sessions' tools, made once.
type toolbox struct {
	byName  map[string]*tool
	handler http.Handler
	kept    keptAnswers
	binders sync.Pool // *binder
}

// newToolbox makes the tools ready; nil when no route leads to them.
func newToolbox(routes []*route, cfg Config) (*toolbox, error) {
	if !slices.ContainsFunc(routes, func(rt *route) bool { return rt.tools }) {
		return nil, nil
	}
	box := &toolbox{byName: map[string]*tool{}}
	box.binders.New = func() any { return new(binder) }
	all := make([]*tool, 0, len(toolSpecs))
	for _, spec := range toolSpecs {
		t, err := newTool(spec)
		if err != nil {
			return nil, fmt.Errorf("httpapi: tool %s: %w", spec.name, err)
		}
		box.byName[spec.name] = t
		all = append(all, t)
	}
	box.handler = newToolHandler(cfg.Version, all)
	return box, nil
}

func newTool(spec toolSpec) (*tool, error) {
	t := &tool{toolSpec: spec}
	var err error
	if t.plan, err = argumentsPlan(spec); err != nil {
		return nil, err
	}
	input := (&describer{schemas: doc{}}).object(t.plan.body, true)
	properties := input["properties"].(doc)
	for name, about := range spec.arguments {
		property, ok := properties[name].(doc)
		if !ok {
			return nil, fmt.Errorf("there is no argument %q to describe", name)
		}
		property["description"] = about
	}
	output, err := outputSchema(spec.op.Out)
	if err != nil {
		return nil, err
	}
	in, err := encode(input)
	if err != nil {
		return nil, err
	}
	no := false
	t.described = &mcp.Tool{
		Name: spec.name, Title: spec.title, Description: spec.description,
		InputSchema: json.RawMessage(in), OutputSchema: json.RawMessage(output),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: spec.op.Kind == tracker.Query, DestructiveHint: &no, OpenWorldHint: &no},
	}
	return t, nil
}

// argumentsPlan returns the plan by which a tool's arguments fill the input of its
// operation or of a translated type. All arguments are in one object, also those that
// HTTP has in the query. Unknown arguments are refused, so that an agent learns that it
// has misnamed one.
func argumentsPlan(spec toolSpec) (*inputSchema, error) {
	op := spec.op
	if spec.input != nil {
		op = &tracker.Op{In: reflect.TypeOf(spec.input()).Elem()}
	}
	params := []string{workspaceParam}
	if spec.input == nil {
		params = append(params, "id")
	}
	p, err := newPlan(op, params)
	if err != nil {
		return nil, err
	}
	body := &object{byName: map[string]*field{}}
	for _, f := range p.query {
		if err := body.add(f); err != nil {
			return nil, err
		}
	}
	if p.body != nil {
		for _, f := range p.body.fields {
			if err := body.add(f); err != nil {
				return nil, err
			}
		}
	}
	body.makeStrict()
	p.query, p.header, p.body, p.strict = nil, nil, body, true
	return p, nil
}

// outputSchema returns the schema of a tool's answer, without references to others.
func outputSchema(t reflect.Type) ([]byte, error) {
	d := &describer{schemas: doc{}}
	if _, err := d.named(t); err != nil {
		return nil, err
	}
	root, ok := d.schemas[t.Name()].(doc)
	if !ok {
		return nil, fmt.Errorf("%v is not an object", t)
	}
	delete(d.schemas, t.Name())
	if len(d.schemas) > 0 {
		root["$defs"] = d.schemas
	}
	schema, err := encode(root)
	if err != nil {
		return nil, err
	}
	return []byte(strings.ReplaceAll(string(schema), `"#/components/schemas/`, `"#/$defs/`)), nil
}

// bind makes the input of the tool's operation.
func (c *toolCall) bind(t *tool, arguments []byte) (any, error) {
	if string(arguments) == "null" {
		arguments = nil
	}
	subject := c.session
	if t.ofIssue {
		subject = c.issue
	}
	in := t.op.New()
	given := in
	if t.input != nil {
		given = t.input()
	}
	b := c.server.tools.binders.Get().(*binder)
	defer func() {
		b.plan, b.faults = nil, tracker.Faults{}
		c.server.tools.binders.Put(b)
	}()
	if err := b.bind(t.plan, given, &source{names: []string{"id"}, params: []string{subject}, body: arguments, caller: &c.req.Caller, now: c.server.now}); err != nil {
		return nil, err
	}
	if t.input != nil {
		var err error
		if in, err = given.(translated).operation(subject); err != nil {
			return nil, err
		}
		if checked, ok := in.(validator); ok {
			var faults tracker.Faults
			checked.Validate(&faults)
			if err := faults.Err(); err != nil {
				return nil, err
			}
		}
	}
	return in, nil
}

// inArguments names the places of faults as the tool's caller knows them.
func inArguments(err error) error {
	told, ok := err.(*tracker.Error) //nolint:errorlint // the binder's own
	if !ok {
		return err
	}
	details, ok := told.Details.(tracker.BadRequestDetails)
	if !ok {
		return err
	}
	for i := range details.Issues {
		details.Issues[i].Path = strings.TrimPrefix(details.Issues[i].Path, "query.")
	}
	return tracker.BadRequest(details.Issues...)
}

// prepare readies a tool's operation as if it had been asked for at its own path: the
// caller must hold what that needs. The message has no turn afterwards: the rights may be kept
// by another node, and to look at them may wait.
func (c *toolCall) prepare(t *tool, arguments []byte) (*tracker.Request, any, error) {
	in, wrong := c.bind(t, arguments)
	c.turn.pause()
	req := *c.req
	req.Final = req.Final && t.op.SinceFirstLook
	if err := c.server.engineAdmits(&req, t.op); err != nil {
		return nil, nil, err
	}
	if wrong != nil {
		return nil, nil, wrong
	}
	if t.op.Kind == tracker.Query {
		req.Idempotency, req.Charge = nil, c.charge
	}
	if poll, ok := in.(*tracker.PollSessionIn); ok {
		poll.LimitActivities(maxToolActivities)
	}
	return &req, in, nil
}

// run answers a tool's call, with INTERNAL when that panics: nobody else would catch
// that on the SDK's goroutine, and the process would end.
func (c *toolCall) run(t *tool, arguments []byte) (reply tracker.Reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &tracker.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if c.ready != nil {
		return c.ready.reply, c.ready.err
	}
	req, in, err := c.prepare(t, arguments)
	if err == nil {
		reply, err = c.server.engine().Do(req, t.op, in)
	}
	c.turn.goOn(c.server, *c.req)
	return reply, err
}

// handle is the tool's mcp.ToolHandler.
func (t *tool) handle(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c := ctx.Value(toolCallKey{}).(*toolCall)
	reply, err := c.run(t, c.arguments)
	if err == nil {
		if reply.Replayed {
			c.replayed.Store(true)
		}
		if len(reply.Body) == 0 {
			reply.Body = []byte("{}") // the operation answers with a status alone
		}
		return toolResult(reply.Body), nil
	}
	err = inArguments(err)
	f, known := asFailure(err)
	switch f.clientError.Code {
	case tracker.CodeUnauthorized, tracker.CodeUnavailable:
		// Not the tool's to tell: the token is good for nothing any more, or the service
		// can't answer now, and maybe another node can.
		c.refusal.Store(&err)
		return toolFailure([]byte("{}")), nil
	}
	if !known {
		c.server.logToolFailure(c, t, err)
	}
	return toolFailure(f.body()), nil
}

func (s *Server) logToolFailure(c *toolCall, t *tool, err error) {
	s.logFailure(&exchange{id: c.req.ID, route: c.route}, fmt.Errorf("tool %s: %w", t.name, err))
}

// toolResult has an object both as it is and as text, for clients that look at text
// alone.
func toolResult(body []byte) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}, StructuredContent: json.RawMessage(body)}
}

// toolFailure has an error as text alone: structured content would have to fit the
// tool's output schema, and clients check that.
func toolFailure(body []byte) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(body)}}, IsError: true}
}
