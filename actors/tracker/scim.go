package tracker

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	json "github.com/goccy/go-json"
)

// A SCIM base is the API by which an identity provider manages the members and teams of
// the workspace (RFC 7643 and 7644, Decision 48). This file has what its operations
// share.

// The URNs of SCIM's schemas and messages.
const (
	scimUserURN  = "urn:ietf:params:scim:schemas:core:2.0:User"
	scimGroupURN = "urn:ietf:params:scim:schemas:core:2.0:Group"
	scimListURN  = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
)

// The scimTypes of RFC 7644, table 9, that are used.
const (
	scimUniqueness    = "uniqueness"
	scimInvalidFilter = "invalidFilter"
	scimInvalidPath   = "invalidPath"
	scimInvalidValue  = "invalidValue"
	scimNoTarget      = "noTarget"
	scimMutability    = "mutability"
)

// SCIMBase is embedded in inputs whose answers have addresses.
type SCIMBase struct {
	// Base is the service's URL, without a slash at its end.
	Base string `service:"baseUrl"`
}

// url returns the address of the workspace's SCIM base.
func (b *SCIMBase) url(v *View) string { return b.Base + "/scim/v2/" + v.Workspace().String() }

// SCIMMeta are the attributes of a resource that the service sets.
type SCIMMeta struct {
	ResourceType string    `json:"resourceType"`
	Created      Timestamp `json:"created,omitempty"`
	LastModified Timestamp `json:"lastModified,omitempty"`
	Location     string    `json:"location"`
	Version      string    `json:"version,omitempty"`
}

// SCIMReference is a user in a group, or a group of a user.
type SCIMReference struct {
	Value   string `json:"value"`
	Ref     string `json:"$ref"`
	Display string `json:"display,omitempty"`
	Type    string `json:"type,omitempty"`
}

// scimTag returns the entity tag of a resource: a hash of its JSON without meta, since
// its parts are stored in several rows. It is weak, as the order of unordered parts may
// differ.
func scimTag(resource any) (string, error) {
	body, err := json.MarshalWithOption(resource, json.DisableHTMLEscape())
	if err != nil {
		return "", fmt.Errorf("encode a resource: %w", err)
	}
	sum := sha256.Sum256(body)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:9]) + `"`, nil
}

// scimMatch returns PRECONDITION_FAILED if If-Match does not have the present version.
// SCIM's tags are compared as weak tags (RFC 7644, section 3.14).
func scimMatch(ifMatch, tag string) error {
	if ifMatch == "" || tagListed(ifMatch, strings.TrimPrefix(tag, "W/"), true) {
		return nil
	}
	return &Error{Code: CodePreconditionFailed, Message: "The resource has changed since the version that If-Match names.", Hint: "Get it again and repeat the request with its new version."}
}

// scimUnchanged reports whether the caller has the present version.
func scimUnchanged(ifNoneMatch, tag string) bool {
	return ifNoneMatch != "" && tag != "" && tagListed(ifNoneMatch, strings.TrimPrefix(tag, "W/"), true)
}

// scimRefusal returns a 400 with its scimType.
func scimRefusal(scimType, message string) *Error {
	return (&Error{Code: CodeBadRequest, Message: message, Hint: "See /docs for what can be asked for."}).withReason(scimType)
}

// foldName returns a text in the form in which it is compared case-insensitively.
func foldName(s string) string { return strings.ToLower(s) }

// SCIMSelection selects the attributes of an answer.
type SCIMSelection struct {
	Attributes         string `query:"attributes" rules:"max=2000"`
	ExcludedAttributes string `query:"excludedAttributes" rules:"max=2000"`
}

// shows reports whether an attribute is selected, so that one that is costly to read
// can be skipped.
func (s *SCIMSelection) shows(attribute string) bool {
	if whole, named := scimNames(s.ExcludedAttributes)[attribute]; named && len(whole) == 0 {
		return false
	}
	_, named := scimNames(s.Attributes)[attribute]
	return named || s.Attributes == ""
}

// scimNames parses a list of attributes. It maps each to the named sub-attributes, or
// to none for the whole.
func scimNames(list string) map[string][]string {
	names := map[string][]string{}
	for name := range strings.SplitSeq(list, ",") {
		name = bareAttribute(strings.TrimSpace(name))
		if name == "" {
			continue
		}
		name, sub, _ := strings.Cut(name, ".")
		subs, named := names[name]
		switch {
		case sub == "":
			names[name] = nil
		case !named || len(subs) > 0:
			names[name] = append(subs, sub)
		}
	}
	return names
}

// bareAttribute returns an attribute's name in lower case, without the URN of a
// supported schema. Attributes of other schemas keep their URN.
func bareAttribute(name string) string {
	for _, urn := range [...]string{scimUserURN, scimGroupURN} {
		if len(name) > len(urn) && name[len(urn)] == ':' && strings.EqualFold(name[:len(urn)], urn) {
			name = name[len(urn)+1:]
			break
		}
	}
	return strings.ToLower(name)
}

// encode returns a resource's JSON with the selected attributes. Schemas and id are
// always included.
func (s *SCIMSelection) encode(resource any) (json.RawMessage, error) {
	body, err := json.MarshalWithOption(resource, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode a resource: %w", err)
	}
	if s.Attributes == "" && s.ExcludedAttributes == "" {
		return body, nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("take a resource apart: %w", err)
	}
	wanted, unwanted := scimNames(s.Attributes), scimNames(s.ExcludedAttributes)
	for name, value := range all {
		if name == "schemas" || name == "id" {
			continue
		}
		if subs, named := wanted[strings.ToLower(name)]; s.Attributes != "" && !named {
			delete(all, name)
			continue
		} else if len(subs) > 0 {
			value = pickSubs(value, subs, true)
		}
		subs, named := unwanted[strings.ToLower(name)]
		if named && len(subs) == 0 {
			delete(all, name)
			continue
		}
		if named {
			value = pickSubs(value, subs, false)
		}
		all[name] = value
	}
	return json.MarshalWithOption(all, json.DisableHTMLEscape())
}

// pickSubs keeps, or removes, the named sub-attributes of a value or of each of its
// elements.
func pickSubs(value json.RawMessage, subs []string, keep bool) json.RawMessage {
	var elements []map[string]json.RawMessage
	single := false
	if json.Unmarshal(value, &elements) != nil {
		one := map[string]json.RawMessage{}
		if json.Unmarshal(value, &one) != nil {
			return value // not a complex attribute
		}
		elements, single = []map[string]json.RawMessage{one}, true
	}
	for _, element := range elements {
		for name := range element {
			named := false
			for _, sub := range subs {
				named = named || strings.EqualFold(name, sub)
			}
			if named != keep {
				delete(element, name)
			}
		}
	}
	var picked any = elements
	if single {
		picked = elements[0]
	}
	if body, err := json.Marshal(picked); err == nil {
		return body
	}
	return value
}
