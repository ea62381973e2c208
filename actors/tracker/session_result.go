package tracker

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/actors/tracker/resultschema"
)

// laneSchema is what the resultSchema "lane" stands for (Decision 34).
const laneSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"verdict":{"type":"string"},"summary":{"type":"string"},"filesChanged":{"type":"array","items":{"type":"string"}}},"required":["verdict","summary","filesChanged"]}`

// maxStructured bounds a structured result in bytes.
const maxStructured = 256 << 10

// schemaShape tells what is wrong with the form of a request's resultSchema; what is
// in the schema is another matter.
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

// schemaFault tells what is wrong with a resultSchema of the right form. It costs
// what reading the schema does, so it is asked where nobody else waits.
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

// expandSchema gives the schema to keep for the resultSchema of a request, which has
// been looked at; nil for none.
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

// maxSchemas bounds the schemas that a workspace's goroutine keeps compiled, in bytes
// of their text.
const maxSchemas = 128 << 10

// knownSchemas are the schemas that results were held against lately. Owned by the
// workspace's goroutine.
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

// checkResult tells what is wrong with a value by a session's schema; nothing when it
// satisfies it.
func (tx *Tx) checkResult(schema, value json.RawMessage) (errs []string) {
	s, err := tx.ledger.schemas.get(schema)
	if err != nil { // of a release that took other schemas
		return []string{"The session's schema can't be used: " + err.Error() + "."}
	}
	return s.Check(value)
}

// isNull tells whether a raw value is absent or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
