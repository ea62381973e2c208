package resultschema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	// MaxSchema limits a schema in bytes of JSON.
	MaxSchema = 32 << 10
	// maxSchemaValues limits the values in a schema, and maxSchemaParts those that may
	// be schemas: objects and booleans.
	maxSchemaValues = 5_000
	maxSchemaParts  = 1_000
	// maxSchemaDepth limits the nesting of a schema.
	maxSchemaDepth = 32
	// maxNames limits the number of $id and $ref in a schema.
	maxNames = 200
	// maxFaultText limits the text of a fault, in bytes.
	maxFaultText = 400
)

// Schema is a compiled schema. It is immutable and safe for concurrent use.
type Schema struct {
	root *rule
}

// home is the base URL of a schema during compilation; it is never loaded.
const home = "https://schema.invalid/"

// draft7 are the names of the supported dialect.
var draft7 = map[string]bool{"http://json-schema.org/draft-07/schema": true, "https://json-schema.org/draft-07/schema": true}

// Compile compiles a schema, an object. The error is a message to the schema's author.
func Compile(raw []byte) (*Schema, error) {
	if len(raw) > MaxSchema {
		return nil, fmt.Errorf("a schema has at most %d bytes", MaxSchema)
	}
	tree, err := parse(raw, maxSchemaValues)
	if err != nil {
		return nil, err
	}
	if err := survey(tree); err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	c.UseLoader(nowhere{})
	c.UseRegexpEngine((&patterns{}).engine)
	for _, format := range formats {
		c.RegisterFormat(format)
	}
	if err := c.AddResource(home, doc); err != nil {
		return nil, err
	}
	compiled, err := c.Compile(home)
	if err != nil {
		return nil, explain(err)
	}
	root, err := newRules(compiled)
	if err != nil {
		return nil, err
	}
	return &Schema{root}, nil
}

// nowhere is the loader of external schemas, which refuses all of them.
type nowhere struct{}

var errRemote = errors.New("a schema can only refer to itself")

func (nowhere) Load(string) (any, error) { return nil, errRemote }

// survey refuses schemas that would be costly to compile. It looks at every object,
// including examples and the like: a $ref may refer to any of them.
func survey(root *node) error {
	if root.kind != '{' {
		return errors.New("must be an object")
	}
	if s := root.get("$schema"); s != nil && (s.kind != '"' || !draft7[strings.TrimSuffix(s.text, "#")]) {
		return errors.New("$schema: must be http://json-schema.org/draft-07/schema#, the dialect understood here")
	}
	var parts, names int
	var walk func(n *node, depth int) error
	walk = func(n *node, depth int) error {
		if depth > maxSchemaDepth {
			return fmt.Errorf("a schema is nested at most %d levels deep", maxSchemaDepth)
		}
		switch n.kind {
		case '{', 't', 'f':
			parts++
		}
		if n.parent != nil && (n.name == "$id" || n.name == "$ref") {
			names++
		}
		for i := range n.items {
			if err := walk(&n.items[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(root, 1); err != nil {
		return err
	}
	switch {
	case parts > maxSchemaParts:
		return fmt.Errorf("has %d subschemas and other objects, and may have %d", parts, maxSchemaParts)
	case names > maxNames:
		return fmt.Errorf("has %d $id and $ref, and may have %d", names, maxNames)
	}
	return nil
}

// explain returns the library's error as a message to the schema's author.
func explain(err error) error {
	var remote *jsonschema.LoadURLError
	var invalid *jsonschema.SchemaValidationError
	var pattern *jsonschema.InvalidRegexError
	text := err.Error()
	switch {
	case errors.As(err, &remote):
		text = fmt.Sprintf("refers to %s: %v", cut(remote.URL, maxPlace), errRemote)
	case errors.As(err, &pattern):
		text = fmt.Sprintf("pattern %q: %v", cut(pattern.Regex, maxPlace), pattern.Err)
	case errors.As(err, &invalid):
		text = misread(invalid)
	}
	return errors.New(cut(strings.ReplaceAll(text, home, ""), maxFaultText))
}

// misread describes the first fault that the meta-schema finds.
func misread(err *jsonschema.SchemaValidationError) string {
	var leaf *jsonschema.ValidationError
	if !errors.As(err.Err, &leaf) {
		return err.Err.Error()
	}
	for len(leaf.Causes) > 0 {
		leaf = leaf.Causes[0]
	}
	text := leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English))
	if format, ok := leaf.ErrorKind.(*kind.Format); ok && format.Err != nil { // without the value, which may be long
		text = "is not a valid " + format.Want + ": " + format.Err.Error()
	}
	_, within, _ := strings.Cut(err.URL, "#/")
	places := leaf.InstanceLocation
	if within != "" { // in a part that only a $ref refers to
		places = append(strings.Split(within, "/"), places...)
	}
	if at := strings.Join(places, "."); at != "" {
		text = cut(at, maxPlace) + ": " + text
	}
	return text
}
