// Package resultschema checks the results that agents report against the JSON Schemas
// (draft-07) that clients asked for. Neither is trusted, and both are read on
// goroutines that other requests wait for. So this package adds limits to a schema
// library: on the content of a schema, the cost of its patterns, and the steps of a
// check. It uses no clock: a check that is refused for its cost is refused on every
// machine, at any time.
//
// The library (santhosh-tekuri/jsonschema) reads a schema: the meta-schema, $id, $ref
// and anchors. Its output is compiled into rules of this package, which check a value,
// since the library's own validation can't be stopped. Tests compare the results of the
// two.
//
// Package tracker decides which schema a session has, and the consequences of a result
// that does not fit.
package resultschema
