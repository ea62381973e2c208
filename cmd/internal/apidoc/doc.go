// Package main writes docs/api.md, the reference of the API, from the description that
// a node serves at /openapi.json:
//
//	go run ./cmd/internal/apidoc docs/api.md
//
// `make api` runs it. TestReference_IsCurrent fails if the file in the tree differs from
// its output, so that a change of the API shows in review.
//
// The description's parts are read by document.go. render.go writes the operations by
// subject, body.go the fields of bodies and objects, and types.go the type of a field
// in words.
package main
