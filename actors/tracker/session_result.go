package tracker

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/actors/tracker/resultschema"
)

// laneSchema is the schema that the resultSchema "lane" names (Decision 34).
const laneSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"verdict":{"type":"string"},"summary":{"type":"string"},"filesChanged":{"type":"array","items":{"type":"string"}}},"required":["verdict","summary","filesChanged"]}`

// maxStructured limits a structured result in bytes.
const maxStructured = 256 << 10

// schemaShape returns the fault of a resultSchema's form, without compiling the schema.
func schemaShape(raw json.RawMessage) (fault string) {
	switch {
	case isNull(raw), isLane(raw):
	case raw[0] != '{':
		return `Must be "lane" or a JSON Schema, an object.`
	case len(raw) > resultschema.MaxSchema:
		return fmt.Sprintf("Must be at most %d bytes of JSON.", resultschema.MaxSchema)
	}
	return ""
}

// schemaFault returns the fault of a resultSchema of the right form. It compiles the
// schema, so it is called where no other request waits.
func schemaFault(raw json.RawMessage) string {
	if isNull(raw) || isLane(raw) {
		return ""
	}
	if _, err := resultschema.Compile(raw); err != nil {
		return "Not a JSON Schema (draft-07) that can be used: " + err.Error() + "."
	}
	return ""
}

func isLane(raw json.RawMessage) bool {
	var name string
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &name) == nil && name == "lane"
}

// expandSchema returns the schema to store for a validated resultSchema, or nil.
func expandSchema(raw json.RawMessage) json.RawMessage {
	switch {
	case isNull(raw):
		return nil
	case isLane(raw):
		return json.RawMessage(laneSchema)
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// maxSchemas limits the compiled schemas that a workspace's goroutine caches, in bytes
// of their text.
const maxSchemas = 128 << 10

// knownSchemas caches compiled schemas. Owned by the workspace's goroutine.
type knownSchemas struct {
	compiled map[[sha256.Size]byte]*resultschema.Schema
	bytes    int
}

func (k *knownSchemas) get(text json.RawMessage) (*resultschema.Schema, error) {
	name := sha256.Sum256(text)
	if s := k.compiled[name]; s != nil {
		return s, nil
	}
	s, err := resultschema.Compile(text)
	if err != nil {
		return nil, err
	}
	if k.bytes += len(text); k.compiled == nil || k.bytes > maxSchemas {
		k.compiled, k.bytes = map[[sha256.Size]byte]*resultschema.Schema{}, len(text)
	}
	k.compiled[name] = s
	return s, nil
}

// checkResult returns the faults of a value by a session's schema.
func (tx *Tx) checkResult(schema, value json.RawMessage) (errs []string) {
	s, err := tx.buffer.schemas.get(schema)
	if err != nil { // stored by a release that accepted other schemas
		return []string{"The session's schema can't be used: " + err.Error() + "."}
	}
	return s.Check(value)
}

// isNull reports whether a raw value is absent or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
