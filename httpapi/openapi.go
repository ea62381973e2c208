package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// apiVersion is the version of the API that the description has, whatever the version of the program
// (Decision 50).
const apiVersion = "0.1.0"

// doc is a JSON object of the API description.
type doc = map[string]any

// describeAPI writes the OpenAPI 3.1 description of the routes. Inputs are described
// from the plans that bind them, so that the description and the server agree.
func describeAPI(routes []*route, cfg Config) ([]byte, error) {
	d := &describer{schemas: doc{}}
	d.schemas["Error"] = errorSchema()
	paths := doc{}
	for _, rt := range routes {
		path := rt.describedPath()
		item, _ := paths[path].(doc)
		if item == nil {
			item = doc{}
			paths[path] = item
		}
		operation, err := d.operation(rt)
		if err != nil {
			return nil, fmt.Errorf("httpapi: describe %s: %w", rt.label, err)
		}
		item[strings.ToLower(rt.Method)] = operation
	}
	withBuiltin(paths)
	for _, tag := range [...]string{"oauth", tagService} {
		if !slices.Contains(d.tags, tag) {
			d.tags = append(d.tags, tag)
		}
	}
	webhooks, err := d.webhooks()
	if err != nil {
		return nil, fmt.Errorf("httpapi: describe webhooks: %w", err)
	}
	failures, err := d.errorResponses()
	if err != nil {
		return nil, fmt.Errorf("httpapi: describe errors: %w", err)
	}
	responses := withoutUnused("responses", failures, paths)
	url, contact := cfg.PublicURL, doc{"name": "The operator of this service"}
	if url == "" {
		url = "/"
	} else {
		contact["url"] = url
	}
	whole := doc{
		"openapi": "3.1.0",
		"info": doc{
			"title": "Switchyard", "version": apiVersion,
			"description": "An issue tracker for people and automated agents. Every response carries X-Request-Id; every error has the shape of the Error schema, but under /oauth and /scim, whose standards have their own. Answers from 1,024 bytes on are compressed with zstd or gzip where Accept-Encoding takes that; an ETag names the content, whatever its encoding. A parameter of the query has at most 4,096 bytes, and so has a header that an operation reads; a body has at most 1 MiB where its operation says nothing else.",
			"contact":     contact,
			"license":     doc{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []doc{{"url": url}},
		"security": []doc{{"bearer": []string{}}},
		"tags":     d.tagList(),
		"paths":    paths,
		"webhooks": webhooks,
		"components": doc{
			"schemas":   d.schemas,
			"responses": responses,
			"headers":   withoutUnused("headers", commonHeaders(), paths, responses),
			"securitySchemes": doc{
				"bearer":      doc{"type": "http", "scheme": "bearer", "description": "A workspace token (swy_...), an OAuth client's access token (swo_...), or the operator's token."},
				"oauthClient": doc{"type": "http", "scheme": "basic", "description": "An OAuth client's clientId and clientSecret. They may be in the body instead."},
				"scim":        doc{"type": "http", "scheme": "bearer", "description": "The token of a SCIM connection (sws_...)."},
			},
		},
	}
	return encode(whole)
}

// describer collects what several operations share.
type describer struct {
	schemas doc
	tags    []string
}

func (d *describer) operation(rt *route) (doc, error) {
	tag := tagOfPath(rt.Path)
	if !slices.Contains(d.tags, tag) {
		d.tags = append(d.tags, tag)
	}
	responses, err := d.responses(rt)
	if err != nil {
		return nil, err
	}
	operation := doc{
		"operationId": rt.Op.Name,
		"summary":     rt.Op.Summary,
		"description": aboutOperation(rt),
		"tags":        []string{tag},
		"responses":   responses,
	}
	if parameters := d.parameters(rt); len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	if rt.plan.body != nil {
		operation["requestBody"] = doc{
			"required": slices.ContainsFunc(rt.plan.body.fields, func(f *field) bool { return f.required }),
			"content":  doc{"application/json": doc{"schema": d.input(rt.Op.Name+"Input", rt.plan)}},
		}
	}
	if rt.plan.raw != nil {
		operation["requestBody"] = rawBody(rt)
	}
	if rt.tools {
		d.describeTools(operation)
	}
	if rt.Op.Needs.Level == tracker.Public {
		operation["security"] = []doc{{}, {"bearer": []string{}}}
	}
	d.translate(rt, operation)
	return operation, nil
}

// rawBody describes a body that the operation takes as it was sent. Types that are neither JSON nor
// a form have no schema.
func rawBody(rt *route) doc {
	var about string
	schema := doc{"type": "object", "additionalProperties": true}
	switch {
	case rt.plan.anyValue:
		about, schema = "Any JSON value.", doc{}
	case rt.Op.Signed != nil:
		about = "The bytes as their sender signed them."
	case rt.Op == tracker.BeginImport:
		about = "The first line of an export, see docs/move.md."
	case rt.Op == tracker.ImportLines:
		about = "Lines of an export, see docs/move.md. As application/json it is one line."
	case rt.Op == tracker.TakeRows:
		about = "A block of rows, see docs/move.md."
	}
	content := doc{}
	for _, m := range rt.plan.media {
		content[m.name] = doc{}
		if m.name != tracker.ExportMedia && m.name != RowsMedia {
			content[m.name] = doc{"schema": schema}
		}
	}
	return doc{"required": true, "description": about, "content": content}
}

// tagOfPath groups operations by subject.
func tagOfPath(path string) string {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	if len(segments) > 2 && segments[0] == "workspaces" && segments[1] == "{"+workspaceParam+"}" {
		return segments[2]
	}
	return segments[0]
}

func (d *describer) parameters(rt *route) []doc {
	var parameters []doc
	if rt.workspaceAt >= 0 {
		parameters = append(parameters, doc{"name": workspaceParam, "in": "path", "required": true, "description": "The workspace's id.", "schema": doc{"type": "string"}})
	}
	for _, f := range rt.plan.path {
		parameters = append(parameters, doc{"name": f.name, "in": "path", "required": true, "schema": f.schema(d)})
	}
	for in, fields := range map[string][]*field{"query": rt.plan.query, "header": rt.plan.header} {
		for _, f := range fields {
			if strings.EqualFold(f.name, "Authorization") {
				continue // is the operation's security
			}
			schema := f.schema(d)
			addDefault(schema, f)
			parameters = append(parameters, doc{"name": f.name, "in": in, "required": f.required, "schema": schema})
		}
	}
	if rt.changes {
		parameters = append(parameters, doc{
			"name": idempotencyKey, "in": "header", "required": false,
			"description": "A repeat with the same key within 24 hours gets the first response.",
			"schema":      doc{"type": "string", "minLength": 1, "maxLength": maxIdempotencyKey, "pattern": "^[!-~]+$"},
		})
	}
	slices.SortStableFunc(parameters, func(a, b doc) int {
		return strings.Compare(a["in"].(string), b["in"].(string))
	})
	return parameters
}

func (d *describer) responses(rt *route) (doc, error) {
	responses := doc{}
	for _, status := range declaredStatuses(rt.Op) {
		if status >= 400 {
			responses[strconv.Itoa(status)] = responseRef(status)
			continue
		}
		headers := doc{"X-Request-Id": headerRef("X-Request-Id")}
		if rt.workspaceAt >= 0 {
			headers[headerOwner] = headerRef(headerOwner)
		}
		if hasETag(rt) {
			headers["ETag"] = headerRef("ETag")
		}
		if rt.changes {
			headers["Idempotency-Replayed"] = headerRef("Idempotency-Replayed")
		}
		if isRated(rt.Op) {
			addRates(headers)
		}
		response := doc{"description": http.StatusText(status), "headers": headers}
		if status != http.StatusNoContent && status != http.StatusNotModified {
			content, err := d.content(rt.Op)
			if err != nil {
				return nil, err
			}
			response["content"] = content
		}
		if rt.Op.Media != nil && !rt.Op.Lines {
			for _, name := range [...]string{"Cache-Control", "Content-Disposition", "Content-Security-Policy", "X-Content-Type-Options"} {
				headers[name] = headerRef(name)
			}
		}
		responses[strconv.Itoa(status)] = response
	}
	for _, status := range failuresOf(rt) {
		responses[strconv.Itoa(status)] = responseRef(status)
	}
	responses["default"] = responseRef(0)
	return responses, nil
}

// content describes the body of an operation's success. Bytes that are no JSON have
// a media type and, as OpenAPI 3.1 has it, no schema.
func (d *describer) content(op *tracker.Op) (doc, error) {
	if op.Media != nil {
		content := doc{}
		for _, media := range op.Media {
			content[media] = doc{}
		}
		return content, nil
	}
	schema, err := d.output(op.Out)
	content := doc{"application/json": doc{"schema": schema}}
	if op.Streams {
		content[eventStream] = doc{"schema": doc{"type": "string", "description": "Each event with its sequence number as id, its type as event, and its JSON as data."}}
	}
	return content, err
}

// isRated reports whether an operation is for callers whose requests a limit may count: others than the
// operator. Those without a credential are counted by their address.
func isRated(op *tracker.Op) bool {
	return op.SCIM != 0 || op.Needs.Level != tracker.Operator
}

// taggedBeside are operations that take no conditions, and whose answers carry the tag for those that do.
var taggedBeside = []*tracker.Op{
	tracker.CreateIssue, tracker.CaptureIssue, tracker.CreateTicketIssue, tracker.UnarchiveIssue,
	tracker.DispatchIssue, tracker.CancelSession, tracker.ReportSession, tracker.ReplyToSession, tracker.ReleaseSession, tracker.RetrySession,
	tracker.GetWorkspaceReadOnly,
}

// hasETag reports whether an operation's answers carry an entity tag: those of
// single resources that take conditions, and of operations beside them.
func hasETag(rt *route) bool {
	conditional := slices.ContainsFunc(rt.plan.header, func(f *field) bool {
		return strings.EqualFold(f.name, "If-Match") || strings.EqualFold(f.name, "If-None-Match")
	})
	return rt.Method != fasthttp.MethodDelete && (conditional || slices.Contains(taggedBeside, rt.Op))
}

// failuresOf lists the error statuses an operation's route makes possible.
func failuresOf(rt *route) []int {
	failures := []int{http.StatusBadRequest, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}
	if rt.Op.Needs.Level != tracker.Public || rt.Op.Onboarding {
		failures = append(failures, http.StatusUnauthorized)
	}
	if rt.Op.Needs.Level != tracker.Public || rt.Op.Onboarding {
		// Without a workspace in the path, too: of a credential that is for something else.
		failures = append(failures, http.StatusForbidden)
	}
	if rt.Op.Lane {
		failures = append(failures, http.StatusConflict) // of a lane token whose claim is over
	}
	if len(rt.params) > 0 {
		failures = append(failures, http.StatusNotFound)
	}
	if rt.readsBody() || rt.plan.raw != nil || rt.checksBody() {
		failures = append(failures, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if rt.changes {
		failures = append(failures, http.StatusUnprocessableEntity)
		if rt.Op.Space == tracker.UsesSpace { // a workspace may be at a limit
			failures = append(failures, http.StatusConflict)
		}
	}
	if slices.ContainsFunc(rt.plan.header, func(f *field) bool { return strings.EqualFold(f.name, "If-Match") }) {
		failures = append(failures, http.StatusPreconditionFailed)
	}
	return failures
}

func headerRef(name string) doc { return doc{"$ref": "#/components/headers/" + name} }

func responseRef(status int) doc {
	return doc{"$ref": "#/components/responses/" + responseName(status)}
}

func responseName(status int) string {
	if status == 0 {
		return "Error"
	}
	return strings.ReplaceAll(http.StatusText(status), " ", "")
}
