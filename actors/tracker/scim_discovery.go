package tracker

import "strings"

// SCIMPlace is the type and address of a description of a SCIM base.
type SCIMPlace struct {
	ResourceType string `json:"resourceType"`
	Location     string `json:"location"`
}

// SCIMSupported says whether the SCIM base has a feature.
type SCIMSupported struct {
	Supported bool `json:"supported"`
}

// SCIMBulk says that the SCIM base has no bulk operations.
type SCIMBulk struct {
	Supported      bool `json:"supported"`
	MaxOperations  int  `json:"maxOperations"`
	MaxPayloadSize int  `json:"maxPayloadSize"`
}

// SCIMFiltering is the size of the largest filtered list.
type SCIMFiltering struct {
	Supported  bool `json:"supported"`
	MaxResults int  `json:"maxResults"`
}

// SCIMScheme is an authentication scheme.
type SCIMScheme struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	SpecURI     string `json:"specUri"`
	Primary     bool   `json:"primary"`
}

// SCIMProvider is the list of the SCIM base's features (RFC 7643, section 5).
type SCIMProvider struct {
	Schemas               []string      `json:"schemas"`
	DocumentationURI      string        `json:"documentationUri"`
	Patch                 SCIMSupported `json:"patch"`
	Bulk                  SCIMBulk      `json:"bulk"`
	Filter                SCIMFiltering `json:"filter"`
	ChangePassword        SCIMSupported `json:"changePassword"`
	Sort                  SCIMSupported `json:"sort"`
	ETag                  SCIMSupported `json:"etag"`
	AuthenticationSchemes []SCIMScheme  `json:"authenticationSchemes"`
	Meta                  SCIMPlace     `json:"meta"`
}

// SCIMKind is a type of resource (RFC 7643, section 6).
type SCIMKind struct {
	Schemas     []string  `json:"schemas"`
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Endpoint    string    `json:"endpoint"`
	Description string    `json:"description"`
	Schema      string    `json:"schema"`
	Meta        SCIMPlace `json:"meta"`
}

// SCIMDefinition is the schema of a type of resource (RFC 7643, section 7).
type SCIMDefinition struct {
	Schemas     []string        `json:"schemas"`
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Attributes  []SCIMAttribute `json:"attributes"`
	Meta        SCIMPlace       `json:"meta"`
}

// SCIMAttribute describes an attribute, or one of its parts.
type SCIMAttribute struct {
	Name            string          `json:"name"`
	Type            string          `json:"type"`
	MultiValued     bool            `json:"multiValued"`
	Description     string          `json:"description"`
	Required        bool            `json:"required"`
	CaseExact       *bool           `json:"caseExact,omitempty"`
	Mutability      string          `json:"mutability"`
	Returned        string          `json:"returned"`
	Uniqueness      string          `json:"uniqueness,omitempty"`
	CanonicalValues []string        `json:"canonicalValues,omitempty"`
	ReferenceTypes  []string        `json:"referenceTypes,omitempty"`
	SubAttributes   []SCIMAttribute `json:"subAttributes,omitempty"`
}

// SCIMKindList is a list of types of resources.
type SCIMKindList struct {
	SCIMListHead
	Resources []SCIMKind `json:"Resources"`
}

// SCIMDefinitionList is a list of schemas.
type SCIMDefinitionList struct {
	SCIMListHead
	Resources []SCIMDefinition `json:"Resources"`
}

// SCIMListHead is the head of a list without pages.
type SCIMListHead struct {
	Schemas      []string `json:"schemas"`
	TotalResults int      `json:"totalResults"`
	StartIndex   int      `json:"startIndex"`
	ItemsPerPage int      `json:"itemsPerPage"`
}

func scimWhole(n int) SCIMListHead { return SCIMListHead{[]string{scimListURN}, n, 1, n} }

// SCIMDocumentIn identifies a description.
type SCIMDocumentIn struct {
	SCIMBase
	ID string `path:"id"`
}

// SCIMServiceProvider returns the features of the SCIM base.
var SCIMServiceProvider = NewQuery[SCIMBase, SCIMProvider]("ScimServiceProviderConfig", "Describe the capabilities of the SCIM base", Needs{Level: Read}, func(v *View, in *SCIMBase) (Reply, error) {
	return jsonReply(Done, &SCIMProvider{
		Schemas:          []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		DocumentationURI: in.Base + "/docs",
		Patch:            SCIMSupported{true},
		Filter:           SCIMFiltering{true, maxSCIMPage},
		ETag:             SCIMSupported{true},
		AuthenticationSchemes: []SCIMScheme{{
			Type: "oauthbearertoken", Name: "Bearer token", Description: "The token of a SCIM connection.",
			SpecURI: "https://www.rfc-editor.org/info/rfc6750", Primary: true,
		}},
		Meta: SCIMPlace{"ServiceProviderConfig", in.url(v) + "/ServiceProviderConfig"},
	})
}, SCIMScope(SCIMAny))

// ListSCIMResourceTypes lists the types of resources.
var ListSCIMResourceTypes = NewQuery[SCIMBase, SCIMKindList]("ListScimResourceTypes", "List the kinds of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMBase) (Reply, error) {
	all := scimResourceTypes(in.url(v))
	return jsonReply(Done, &SCIMKindList{scimWhole(len(all)), all})
}, SCIMScope(SCIMAny))

// SCIMResourceType returns the description of one type of resource.
var SCIMResourceType = NewQuery[SCIMDocumentIn, SCIMKind]("ScimResourceType", "Get a kind of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMDocumentIn) (Reply, error) {
	for _, one := range scimResourceTypes(in.url(v)) {
		if strings.EqualFold(one.ID, in.ID) {
			return jsonReply(Done, &one)
		}
	}
	return Reply{}, NotFound("resource type")
}, SCIMScope(SCIMAny))

// ListSCIMSchemas lists the schemas of resources.
var ListSCIMSchemas = NewQuery[SCIMBase, SCIMDefinitionList]("ListScimSchemas", "List the schemas of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMBase) (Reply, error) {
	all := scimSchemas(in.url(v))
	return jsonReply(Done, &SCIMDefinitionList{scimWhole(len(all)), all})
}, SCIMScope(SCIMAny))

// SCIMSchema returns the schema of one type of resource.
var SCIMSchema = NewQuery[SCIMDocumentIn, SCIMDefinition]("ScimSchema", "Get a schema of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMDocumentIn) (Reply, error) {
	for _, one := range scimSchemas(in.url(v)) {
		if strings.EqualFold(one.ID, in.ID) {
			return jsonReply(Done, &one)
		}
	}
	return Reply{}, NotFound("schema")
}, SCIMScope(SCIMAny))

func scimResourceTypes(url string) []SCIMKind {
	kind := func(name, endpoint, schema, description string) SCIMKind {
		return SCIMKind{
			Schemas: []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"},
			ID:      name, Name: name, Endpoint: endpoint, Description: description, Schema: schema,
			Meta: SCIMPlace{"ResourceType", url + "/ResourceTypes/" + name},
		}
	}
	return []SCIMKind{
		kind("User", "/Users", scimUserURN, "A person, who is a member of the workspace while active."),
		kind("Group", "/Groups", scimGroupURN, "A team of the workspace."),
	}
}

// scimAttribute returns the description of an attribute; change sets the fields that
// differ from the defaults.
func scimAttribute(name, kind, description string, change func(*SCIMAttribute)) SCIMAttribute {
	a := SCIMAttribute{Name: name, Type: kind, Description: description, Mutability: "readWrite", Returned: "default"}
	if kind == "string" {
		a.CaseExact, a.Uniqueness = new(bool), "none"
	}
	if change != nil {
		change(&a)
	}
	return a
}

func scimSchemas(url string) []SCIMDefinition {
	schema := func(id, name, description string, attributes ...SCIMAttribute) SCIMDefinition {
		return SCIMDefinition{
			Schemas: []string{"urn:ietf:params:scim:schemas:core:2.0:Schema"},
			ID:      id, Name: name, Description: description, Attributes: attributes,
			Meta: SCIMPlace{"Schema", url + "/Schemas/" + id},
		}
	}
	yes := true
	external := scimAttribute("externalId", "string", "The provider's own id.", func(a *SCIMAttribute) { a.CaseExact = &yes })
	unique := func(a *SCIMAttribute) { a.Required, a.Uniqueness = true, "server" }
	fixed := func(a *SCIMAttribute) { a.Mutability = "immutable" }
	shown := func(a *SCIMAttribute) { a.Mutability = "readOnly" }
	reference := func(kind, mutability, description string) SCIMAttribute {
		return scimAttribute("$ref", "reference", description, func(a *SCIMAttribute) {
			a.Mutability, a.CaseExact, a.ReferenceTypes = mutability, &yes, []string{kind}
		})
	}
	one := func(mutability string, values ...string) func(*SCIMAttribute) {
		return func(a *SCIMAttribute) { a.Mutability, a.CanonicalValues = mutability, values }
	}
	parts := func(many bool, mutability string, of ...SCIMAttribute) func(*SCIMAttribute) {
		return func(a *SCIMAttribute) { a.MultiValued, a.Mutability, a.SubAttributes = many, mutability, of }
	}
	return []SCIMDefinition{
		schema(scimUserURN, "User", "A person.",
			scimAttribute("userName", "string", "What the person signs in with.", unique),
			external,
			scimAttribute("displayName", "string", "What the person is called; the member's name.", nil),
			scimAttribute("name", "complex", "The parts of the name.", parts(false, "readWrite",
				scimAttribute("formatted", "string", "The whole name.", nil),
				scimAttribute("familyName", "string", "The family name.", nil),
				scimAttribute("givenName", "string", "The given name.", nil),
			)),
			scimAttribute("active", "boolean", "Whether the person is a member of the workspace.", nil),
			scimAttribute("emails", "complex", "E-mail addresses; the primary one is the member's.", parts(true, "readWrite",
				scimAttribute("value", "string", "The address.", nil),
				scimAttribute("type", "string", "What it is for.", one("readWrite", "work", "home", "other")),
				scimAttribute("primary", "boolean", "Whether it is the one to use.", nil),
			)),
			scimAttribute("groups", "complex", "The provisioned groups the person is in.", parts(true, "readOnly",
				scimAttribute("value", "string", "The group's id.", shown),
				reference("Group", "readOnly", "The group's address."),
				scimAttribute("display", "string", "The group's displayName.", shown),
				scimAttribute("type", "string", "Always direct.", one("readOnly", "direct")),
			)),
		),
		schema(scimGroupURN, "Group", "A team.",
			scimAttribute("displayName", "string", "The group's name, and the team's when it is written.", unique),
			external,
			scimAttribute("members", "complex", "The provisioned users in the group.", parts(true, "readWrite",
				scimAttribute("value", "string", "The user's id.", fixed),
				reference("User", "immutable", "The address."),
				scimAttribute("type", "string", "Always User.", one("immutable", "User")),
			)),
		),
	}
}
