// Package httpscript runs plain-text scripts of HTTP requests and the responses
// they must get against a running service.
//
// A script is a list of stanzas. A stanza has a request and the expected response:
//
//	# Anybody can read it again.
//	GET /workspaces/{{ws}}/issues/{{issue}}
//	Authorization: Bearer {{token}}
//
//	> 200
//	> ETag: {{tag=any}}
//	> {"id": "{{issue}}", "status": "backlog", "number": "{{any}}", "gone": "{{absent}}"}
//
// The request is its first line, then headers, then, after an empty line, an
// optional body up to the expectation. A body is sent as application/json unless a
// header says otherwise; "(empty)" as the whole body sends none but keeps the
// header. Lines with > are the expectation: the status, headers, and last the
// body. Lines that start with # are comments. A stanza ends with its expectation.
//
// {{name}} is the value of a variable, in the request and in the expectation. These
// are placeholders for values that are not known beforehand:
//
//	{{any}}       any value, null as well
//	{{some}}      any value but null
//	{{uuid}}      a lower-case UUID
//	{{time}}      a timestamp as the service writes them
//	{{absent}}    nothing: the header or property must be missing
//	{{none}}      as the whole body: an empty one
//	{{~regexp}}   a text that matches
//	{{name=any}}  the same as without the name, and kept as a variable
//
// An expected JSON object may have more properties than are listed, and they are
// compared in alphabetical order, so a variable is kept where it comes first. An array
// has exactly the elements listed, in order, unless its last is "...", after which any
// may follow. Variables come from the caller or from earlier stanzas. {{unique}} is
// always set: a short text of the run's own, for slugs and keys.
//
// The line "for a | b | c as name" before a stanza runs it once for each value.
//
// The package knows nothing of the service and how it is started. It starts no
// goroutine.
package httpscript
