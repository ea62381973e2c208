package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is the part of an OpenAPI description that the reference shows.
type document struct {
	Tags []struct {
		Name        string
		Description string
	}
	Paths      map[string]map[string]*operation
	Webhooks   map[string]map[string]*operation
	Components struct {
		Schemas   map[string]*schema
		Responses map[string]*response
		Headers   map[string]struct {
			Description string
			Required    bool
		}
	}
}

type operation struct {
	method, path string

	OperationID string `json:"operationId"`
	Summary     string
	Description string
	Tags        []string
	Parameters  []parameter
	RequestBody *struct {
		Description string
		Required    bool
		Content     map[string]media
	} `json:"requestBody"`
	Responses map[string]*response
}

type parameter struct {
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type media struct{ Schema *schema }

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     map[string]struct{}
	Content     map[string]media
}

// schema is a JSON schema as far as the description uses it.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Enum                 []any
	Const                any
	Default              any
	Format, Pattern      string
	Description          string
	MinLength, MaxLength *float64
	Minimum, Maximum     *float64
	MinItems, MaxItems   *float64
	MinProperties        *float64
	MaxProperties        *float64
	Items                *schema
	Properties           map[string]*schema
	Required             []string
	AdditionalProperties json.RawMessage
	OneOf, AllOf         []*schema
}

// types are the types a value may have: one name or several.
type types []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types{one}
		return nil
	}
	var all []string
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("read a type: %w", err)
	}
	*t = all
	return nil
}

func parse(description []byte) (*document, error) {
	d := new(document)
	if err := json.Unmarshal(description, d); err != nil {
		return nil, fmt.Errorf("read the description: %w", err)
	}
	for path, item := range d.Paths {
		for method, op := range item {
			op.method, op.path = strings.ToUpper(method), path
		}
	}
	return d, nil
}

var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// tagged returns the operations of a subject, by path and then by method.
func (d *document) tagged(tag string) []*operation {
	var all []*operation
	for _, item := range d.Paths {
		for _, op := range item {
			if slices.Contains(op.Tags, tag) {
				all = append(all, op)
			}
		}
	}
	slices.SortFunc(all, func(a, b *operation) int {
		if a.path != b.path {
			return strings.Compare(a.path, b.path)
		}
		return slices.Index(methods, a.method) - slices.Index(methods, b.method)
	})
	return all
}

// resolve returns the schema that a reference names, or the schema itself.
func (d *document) resolve(s *schema) *schema {
	if name := s.name(); name != "" {
		return d.Components.Schemas[name]
	}
	return s
}

// name returns the name of the schema that s refers to.
func (s *schema) name() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// answer returns the response that a reference names, or the response itself.
func (d *document) answer(r *response) *response {
	if r.Ref != "" {
		return d.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
	}
	return r
}
