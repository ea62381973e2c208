package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"
)

// laneSchema is what the resultSchema "lane" stands for (Decision 34).
const laneSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"verdict":{"type":"string"},"summary":{"type":"string"},"filesChanged":{"type":"array","items":{"type":"string"}}},"required":["verdict","summary","filesChanged"]}`

// maxStructured bounds a structured result in bytes.
const maxStructured = 256 << 10

// expandSchema reads the resultSchema of a request: the schema to keep, or what is
// wrong with it. Absent and null give neither.
func expandSchema(raw json.RawMessage) (schema json.RawMessage, fault string) {
	if isNull(raw) {
		return nil, ""
	}
	var name string
	if raw[0] == '"' && json.Unmarshal(raw, &name) == nil && name == "lane" {
		return json.RawMessage(laneSchema), ""
	}
	if raw[0] != '{' {
		return nil, `Must be "lane" or a JSON Schema, an object.`
	}
	return nil, `JSON Schemas are not supported yet: use "lane".`
}

// checkResult tells what is wrong with a value by a schema that expandSchema gave;
// nothing when it satisfies it.
func checkResult(schema, value json.RawMessage) (errs []string) {
	if string(schema) != laneSchema {
		return []string{"The session's schema can't be read."}
	}
	var fields map[string]json.RawMessage
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &fields) != nil {
		return []string{"Must be an object."}
	}
	for _, name := range []string{"verdict", "summary"} {
		if errs = append(errs, lacking(fields, name)...); len(fields[name]) > 0 && fields[name][0] != '"' {
			errs = append(errs, name+": must be a string.")
		}
	}
	files, ok := fields["filesChanged"]
	if !ok {
		return append(errs, lacking(fields, "filesChanged")...)
	}
	var list []json.RawMessage
	if files[0] != '[' || json.Unmarshal(files, &list) != nil {
		return append(errs, "filesChanged: must be an array.")
	}
	for i, item := range list {
		if len(item) == 0 || item[0] != '"' {
			errs = append(errs, fmt.Sprintf("filesChanged[%d]: must be a string.", i))
		}
	}
	return errs
}

func lacking(fields map[string]json.RawMessage, name string) []string {
	if _, ok := fields[name]; ok {
		return nil
	}
	return []string{name + ": is required."}
}

// isNull tells whether a raw value is absent or null.
func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
