package apicheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object is a JSON object of the description.
type object = map[string]any

// Checker judges answers by a description. It may be used by several goroutines.
type Checker struct {
	doc     object
	routes  segment
	mu      sync.Mutex
	schemas *jsonschema.Compiler
	made    map[string]*jsonschema.Schema // by their place in the document
	// strict is set if an operation must declare every failure but those in general.
	strict bool
}

// resource is the name of the description among the compiler's resources.
const resource = "openapi.json"

// New reads a description, which must be valid.
func New(description []byte) (*Checker, error) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(description))
	if err != nil {
		return nil, fmt.Errorf("apicheck: %w", err)
	}
	doc, ok := root.(object)
	if !ok {
		return nil, errors.New("apicheck: the description is not an object")
	}
	c := &Checker{doc: doc, schemas: jsonschema.NewCompiler(), made: map[string]*jsonschema.Schema{}}
	for path, item := range child(doc, "paths") {
		operations, _ := item.(object)
		c.routes.add(path, operations)
	}
	seal(doc, false)
	c.schemas.DefaultDraft(jsonschema.Draft2020)
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource(resource, root); err != nil {
		return nil, fmt.Errorf("apicheck: %w", err)
	}
	return c, nil
}

// seal makes every schema that names properties refuse others. The parts of an allOf
// are left open, for they name the properties of one another.
func seal(node any, part bool) {
	switch node := node.(type) {
	case object:
		_, named := node["properties"].(object)
		if _, open := node["additionalProperties"]; named && !open && !part && node["type"] != nil {
			node["additionalProperties"] = false
		}
		for name, value := range node {
			if name == "allOf" {
				for _, one := range list(value) {
					seal(one, true)
				}
				continue
			}
			seal(value, false)
		}
	case []any:
		for _, one := range node {
			seal(one, part)
		}
	}
}

// general are the statuses by which any request may be refused before it reaches its operation. An
// operation need not declare them.
var general = [...]int{
	http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge,
	http.StatusRequestEntityTooLarge, // also where the operation takes no body
	http.StatusNotImplemented,
}

// Check judges an answer to a request. Body is nil where only the head is to be
// judged.
func (c *Checker) Check(method, path string, status int, header http.Header, body []byte) error {
	operation, place := c.find(method, path)
	if operation == nil {
		return c.checkStranger(method, path, status, header, body)
	}
	responses := child(operation, "responses")
	name := fmt.Sprint(status)
	if responses[name] == nil {
		// The default describes the failures that any request may have.
		if name = "default"; status < 400 || c.strict && !slices.Contains(general[:], status) || responses[name] == nil {
			return fmt.Errorf("%s: status %d is not declared", place, status)
		}
	}
	response, at := c.follow(responses[name], pointer(pointer(pointer("#/paths", place.path), strings.ToLower(place.method), "responses"), name))
	return c.judge(response, at, method == http.MethodHead, header, body)
}

// checkStranger judges the answer to a request that no operation is for: an error.
func (c *Checker) checkStranger(method, path string, status int, header http.Header, body []byte) error {
	if status < 400 {
		return nil // OPTIONS
	}
	for _, standard := range []string{"/oauth/", "/scim/"} {
		if strings.HasPrefix(path, standard) {
			return nil // has errors of its own shape
		}
	}
	response, at := c.follow(object{"$ref": "#/components/responses/Error"}, "")
	return c.judge(response, at, method == http.MethodHead, header, body)
}

// acted are the headers that clients go by. An answer has none of them that is not declared.
var acted = [...]string{"ETag", "Location", "Idempotency-Replayed", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}

// judge holds an answer against a response of the description.
func (c *Checker) judge(response object, at string, headOnly bool, header http.Header, body []byte) error {
	for name, declared := range child(response, "headers") {
		h, place := c.follow(declared, pointer(at, "headers", name))
		value := header.Get(name)
		if value == "" {
			if h["required"] == true && header.Values(name) == nil {
				return fmt.Errorf("header %s is missing", name)
			}
			continue
		}
		if err := c.valid(pointer(place, "schema"), parameterValue(child(h, "schema"), value)); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	for _, name := range acted {
		if _, declared := child(response, "headers")[name]; !declared && header.Get(name) != "" {
			return fmt.Errorf("header %s is not declared", name)
		}
	}
	if body == nil || headOnly {
		return nil
	}
	content := child(response, "content")
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("has a body of %d bytes, and none is declared", len(body))
		}
		return nil
	}
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type %q: %w", header.Get("Content-Type"), err)
	}
	declared, known := content[media].(object)
	if !known {
		return fmt.Errorf("content type %s is not declared", media)
	}
	if declared["schema"] == nil || !strings.HasSuffix(media, "json") {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if err := c.valid(pointer(at, "content", media, "schema"), value); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

// valid judges a value by the schema at a place of the description.
func (c *Checker) valid(at string, value any) error {
	schema, err := c.schema(at)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (c *Checker) schema(at string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if schema := c.made[at]; schema != nil {
		return schema, nil
	}
	schema, err := c.schemas.Compile(resource + at)
	if err != nil {
		return nil, fmt.Errorf("compile the schema at %s: %w", at, err)
	}
	c.made[at] = schema
	return schema, nil
}

// follow goes where a reference leads. It returns the object there and its place.
func (c *Checker) follow(value any, at string) (object, string) {
	o, _ := value.(object)
	ref, ok := o["$ref"].(string)
	if !ok {
		return o, at
	}
	var target any = c.doc
	for _, name := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		target = child(target, name)
	}
	return c.follow(target, ref)
}

// parameterValue reads the text of a header as its schema's type.
func parameterValue(schema object, text string) any {
	switch schema["type"] {
	case "integer", "number":
		return json.Number(text)
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

// child gives an object's property that is an object; nil when there is none.
func child(parent any, name string) object {
	o, _ := parent.(object)
	c, _ := o[name].(object)
	return c
}

func list(value any) []any {
	l, _ := value.([]any)
	return l
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")

// pointer extends a JSON pointer, written as the fragment of a URI.
func pointer(at string, names ...string) string {
	for _, name := range names {
		at += "/" + escapes.Replace(name)
	}
	return at
}
