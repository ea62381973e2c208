// Package resultschema holds what agents report against the JSON Schemas
// (draft-07) that were asked of them. Both come from strangers, and both run on
// goroutines that others wait for, so the one thing this package adds to a schema
// library is that everything has a bound: what a schema may contain, what its
// patterns may cost, and how many steps a check may take. There are no clocks in it:
// a check that is refused for its cost is refused everywhere and always.
//
// Reading a schema is the library's (santhosh-tekuri/jsonschema): the meta-schema,
// $id, $ref and anchors. What it compiles is turned into rules, and those are held
// against a value here, since the library's own validation can't be stopped. Tests
// hold the two against each other.
//
// What does not live here: which schema a session has, and what becomes of a session
// whose result does not fit.
package resultschema
