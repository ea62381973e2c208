package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"switchyard/actors/tracker"
)

// errorCodes are the codes an error may carry, sorted.
func errorCodes() []string {
	codes := make([]string, 0, len(statuses))
	for code := range statuses {
		codes = append(codes, string(code))
	}
	slices.Sort(codes)
	return codes
}

// errorSchema describes the one shape of errors (Decision 4).
func errorSchema() doc {
	return doc{
		"type":     "object",
		"required": []string{"code", "message", "hint"},
		"properties": doc{
			"code":    doc{"type": "string", "enum": errorCodes()},
			"message": doc{"type": "string", "description": "What was wrong with the request."},
			"hint":    doc{"type": "string", "minLength": 1, "description": "What to do about it."},
			"details": doc{"type": "object", "additionalProperties": true},
		},
	}
}

// errorDetails are the types of the details that some errors of a status have. Other errors of the status have none.
// Those of a 401 are the console's own, and a server without a console does not describe it.
var errorDetails = map[int][]reflect.Type{
	http.StatusNotFound: {reflect.TypeFor[tracker.MissingDetails]()},
	http.StatusConflict: {
		reflect.TypeFor[tracker.DuplicateDetails](), reflect.TypeFor[tracker.LimitDetails](), reflect.TypeFor[tracker.ArchivedDetails](),
		reflect.TypeFor[tracker.SessionConflict](), reflect.TypeFor[tracker.RingDetails](),
		reflect.TypeFor[tracker.DraftConflict](), reflect.TypeFor[tracker.BadRequestDetails](),
	},
	http.StatusTooManyRequests: {reflect.TypeFor[tracker.LimitDetails]()},
}

// errorResponses describes the answer to every code, by the name of its status,
// and the three statuses that share BAD_REQUEST.
func (d *describer) errorResponses() (doc, error) {
	responses := doc{"Error": errorResponse("Any other failure.", nil, nil)}
	byStatus := map[int]tracker.Code{
		http.StatusRequestTimeout:              tracker.CodeBadRequest,
		http.StatusRequestURITooLong:           tracker.CodeBadRequest,
		http.StatusRequestHeaderFieldsTooLarge: tracker.CodeBadRequest,
	}
	for code, status := range statuses {
		byStatus[status] = code
	}
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		code := byStatus[status]
		headers := doc{}
		properties := doc{"code": doc{"const": string(code)}}
		narrower := doc{"type": "object", "properties": properties}
		if code == tracker.CodeBadRequest {
			narrower["required"] = []string{"details"}
			properties["details"] = doc{"type": "object", "required": []string{"issues"}, "properties": doc{"issues": doc{"type": "array", "description": "Every fault of the request.", "minItems": 1, "items": doc{
				"type": "object", "required": []string{"path", "message"},
				"properties": doc{"path": doc{"type": "string"}, "message": doc{"type": "string"}},
			}}}}
		}
		var kinds []doc
		for _, kind := range errorDetails[status] {
			schema, err := d.output(kind)
			if err != nil {
				return nil, fmt.Errorf("details of %d: %w", status, err)
			}
			kinds = append(kinds, schema)
		}
		if kinds != nil {
			properties["details"] = doc{"oneOf": kinds}
		}
		switch status {
		case http.StatusServiceUnavailable:
			properties["details"] = doc{"type": "object", "required": []string{"outcome"}, "properties": doc{"outcome": doc{"type": "string", "enum": []string{"not_applied", "unknown"}}}}
			headers["Retry-After"] = headerRef("Retry-After")
		case http.StatusTooManyRequests:
			headers["Retry-After"] = headerRef("Retry-After")
		case http.StatusUnauthorized:
			headers["WWW-Authenticate"] = headerRef("WWW-Authenticate")
		case http.StatusMethodNotAllowed:
			headers["Allow"] = headerRef("Allow")
		}
		responses[responseName(status)] = errorResponse(strconv.Itoa(status)+" "+http.StatusText(status), narrower, headers)
	}
	return responses, nil
}

func errorResponse(description string, narrower, headers doc) doc {
	schema := doc{"$ref": "#/components/schemas/Error"}
	if narrower != nil {
		schema = doc{"allOf": []doc{schema, narrower}}
	}
	all := doc{"X-Request-Id": headerRef("X-Request-Id"), headerOwner: headerRef(headerOwner)}
	addRates(all)
	maps.Copy(all, headers)
	return doc{"description": description, "headers": all, "content": doc{"application/json": doc{"schema": schema}}}
}

// addRates adds the headers about a limit on requests.
func addRates(headers doc) {
	for _, name := range rateHeaders {
		headers[string(name)] = headerRef(string(name))
	}
}

func commonHeaders() doc {
	count := func(description string) doc {
		return doc{"description": "If requests of the credential, the workspace or the address are limited: " + description, "schema": doc{"type": "integer", "minimum": 0}}
	}
	text := func(description string) doc {
		return doc{"description": description, "schema": doc{"type": "string"}}
	}
	always := func(header doc) doc {
		header["required"] = true
		return header
	}
	return doc{
		"X-Request-Id": always(text("The request's id: the caller's own if that is valid, else a new one.")),
		headerOwner: doc{
			"description": "On an answer that another node gave: the URL at which clients reach that node, the owner of the workspace, if it was set with --client-url.",
			"schema":      doc{"type": "string", "maxLength": maxClientURL, "pattern": "^https?://[^/?#@]+$"},
		},
		"ETag":                      text("The version of the resource, for If-Match and If-None-Match."),
		"Idempotency-Replayed":      text("true when this is the response to an earlier request with the same Idempotency-Key."),
		string(headerRateLimit):     count("how many may come at once."),
		string(headerRateRemaining): count("how many are left."),
		string(headerRateReset):     count("seconds until all are left again."),
		"Cache-Control":             always(text("Who may cache the answer, and for how long.")),
		"Content-Disposition":       always(text("inline, with the file's name.")),
		"Content-Security-Policy":   always(text("Keeps a browser from running or loading anything.")),
		"X-Content-Type-Options":    always(text("nosniff.")),
		"Allow":                     always(text("The methods of the path.")),
		"WWW-Authenticate":          always(text("Bearer with a `realm`, and `error=\"invalid_token\"` where a token was sent (RFC 6750).")),
		"Retry-After":               always(doc{"description": "Seconds to wait before another try.", "schema": doc{"type": "integer", "minimum": 1}}),
	}
}

// withBuiltin adds the paths that no operation is behind.
func withBuiltin(paths doc) {
	add := func(path, tag, id, summary, contentType string, schema doc, more ...func(responses doc)) {
		responses := doc{
			"200":     doc{"description": "OK", "headers": doc{"X-Request-Id": headerRef("X-Request-Id")}, "content": doc{contentType: doc{"schema": schema}}},
			"400":     responseRef(http.StatusBadRequest), // of a request that is no HTTP
			"default": responseRef(0),
		}
		for _, change := range more {
			change(responses)
		}
		paths[path] = doc{"get": doc{
			"operationId": id, "summary": summary, "description": "Needs no credential.", "tags": []string{tag}, "security": []doc{{}}, "responses": responses,
		}}
	}
	status := doc{"type": "object", "required": []string{"status"}, "properties": doc{"status": doc{"const": "ok"}}}
	add("/healthz", tagService, "Healthz", "Report whether the process is healthy", "application/json", status)
	add("/readyz", tagService, "Readyz", "Report whether the node can serve", "application/json", status, func(responses doc) {
		responses["503"] = responseRef(http.StatusServiceUnavailable)
	})
	// These are counted by the client's address, and refused on a connection beyond its share.
	counted := func(responses doc) {
		addRates(responses["200"].(doc)["headers"].(doc))
		for _, status := range [...]int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			responses[strconv.Itoa(status)] = responseRef(status)
		}
	}
	add("/openapi.json", tagService, "OpenAPI", "Describe the API", "application/json", doc{"type": "object", "additionalProperties": true}, counted)
	add("/.well-known/oauth-authorization-server", "oauth", "OAuthMetadata", "Describe how OAuth clients get access tokens", "application/json", describeValue(oauthMetadata("")), counted)
	add("/docs", tagService, "Docs", "Read about the API and try it", "text/html", doc{"type": "string"}, counted, func(responses doc) {
		headers := responses["200"].(doc)["headers"].(doc)
		for _, name := range [...]string{"Content-Security-Policy", "X-Content-Type-Options", "ETag"} {
			headers[name] = headerRef(name)
		}
		responses["304"] = doc{"description": http.StatusText(http.StatusNotModified), "headers": headers}
	})
}

// describeValue describes objects whose properties are all texts and lists of texts.
func describeValue(value doc) doc {
	properties := doc{}
	for name, one := range value {
		switch one.(type) {
		case []string:
			properties[name] = doc{"type": "array", "items": doc{"type": "string"}}
		default:
			properties[name] = doc{"type": "string"}
		}
	}
	return doc{"type": "object", "required": slices.Sorted(maps.Keys(value)), "properties": properties}
}
