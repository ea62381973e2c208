// Package apicheck judges the answers of the service by its own description, the
// document at /openapi.json, so that the two can't part.
//
// A Checker knows one description. It finds the operation that a request was for and
// judges the answer: its status, its headers, its content type and its body. It is
// stricter than the document: a property that the document does not name is a fault.
// Requests are not judged; tests send bad ones on purpose.
//
// A Watch judges every answer that its round trippers bring, and keeps the faults for
// the end of the tests. For a Watch the operation must declare the failure, too, unless
// any request can be refused so.
//
// The package knows nothing of operations, and starts no goroutine.
package apicheck
