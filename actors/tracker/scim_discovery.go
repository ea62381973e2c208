package tracker

import "strings"

// SCIMDocument is an answer of those that describe a SCIM base (RFC 7643, sections 5
// to 7); beside its schemas it has what those say.
type SCIMDocument struct {
	Schemas []string `json:"schemas"`
}

// SCIMDocumentList is a list of them.
type SCIMDocumentList struct {
	Schemas      []string       `json:"schemas"`
	TotalResults int            `json:"totalResults"`
	StartIndex   int            `json:"startIndex"`
	ItemsPerPage int            `json:"itemsPerPage"`
	Resources    []SCIMDocument `json:"Resources"`
}

// SCIMDocumentIn names one description.
type SCIMDocumentIn struct {
	SCIMBase
	ID string `path:"id"`
}

// scimObject is a JSON object written by hand.
type scimObject = map[string]any

// SCIMServiceProvider says what the SCIM base can do.
var SCIMServiceProvider = NewQuery[SCIMBase, SCIMDocument]("ScimServiceProviderConfig", "Say what the SCIM base can do", Needs{Level: Read}, func(v *View, in *SCIMBase) (Reply, error) {
	no := scimObject{"supported": false}
	return jsonReply(Done, scimObject{
		"schemas":          []string{"urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"},
		"documentationUri": in.Base + "/docs",
		"patch":            scimObject{"supported": true},
		"bulk":             scimObject{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter":           scimObject{"supported": true, "maxResults": maxSCIMPage},
		"changePassword":   no,
		"sort":             no,
		"etag":             scimObject{"supported": true},
		"authenticationSchemes": []scimObject{{
			"type": "oauthbearertoken", "name": "Bearer token", "description": "The token of a SCIM connection.",
			"specUri": "https://www.rfc-editor.org/info/rfc6750", "primary": true,
		}},
		"meta": scimObject{"resourceType": "ServiceProviderConfig", "location": in.url(v) + "/ServiceProviderConfig"},
	})
}, Provisions(SCIMAny))

// ListSCIMResourceTypes says what kinds of resources there are.
var ListSCIMResourceTypes = NewQuery[SCIMBase, SCIMDocumentList]("ListScimResourceTypes", "List the kinds of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMBase) (Reply, error) {
	return replySCIMDocuments(scimResourceTypes(in.url(v)))
}, Provisions(SCIMAny))

// SCIMResourceType says what one kind of resource is.
var SCIMResourceType = NewQuery[SCIMDocumentIn, SCIMDocument]("ScimResourceType", "Get a kind of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMDocumentIn) (Reply, error) {
	return replySCIMDocument(scimResourceTypes(in.url(v)), in.ID, "resource type")
}, Provisions(SCIMAny))

// ListSCIMSchemas says what the resources have.
var ListSCIMSchemas = NewQuery[SCIMBase, SCIMDocumentList]("ListScimSchemas", "List the schemas of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMBase) (Reply, error) {
	return replySCIMDocuments(scimSchemas(in.url(v)))
}, Provisions(SCIMAny))

// SCIMSchema says what one kind of resource has.
var SCIMSchema = NewQuery[SCIMDocumentIn, SCIMDocument]("ScimSchema", "Get a schema of provisioned resources", Needs{Level: Read}, func(v *View, in *SCIMDocumentIn) (Reply, error) {
	return replySCIMDocument(scimSchemas(in.url(v)), in.ID, "schema")
}, Provisions(SCIMAny))

func replySCIMDocuments(all []scimObject) (Reply, error) {
	return jsonReply(Done, scimObject{
		"schemas": []string{scimListURN}, "totalResults": len(all), "startIndex": 1, "itemsPerPage": len(all), "Resources": all,
	})
}

func replySCIMDocument(all []scimObject, id, what string) (Reply, error) {
	for _, one := range all {
		if strings.EqualFold(one["id"].(string), id) {
			return jsonReply(Done, one)
		}
	}
	return Reply{}, NotFound(what)
}

func scimResourceTypes(url string) []scimObject {
	kind := func(name, endpoint, schema, description string) scimObject {
		return scimObject{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:ResourceType"},
			"id":      name, "name": name, "endpoint": endpoint, "description": description, "schema": schema,
			"meta": scimObject{"resourceType": "ResourceType", "location": url + "/ResourceTypes/" + name},
		}
	}
	return []scimObject{
		kind("User", "/Users", scimUserURN, "A person, who is a member of the workspace while active."),
		kind("Group", "/Groups", scimGroupURN, "A team of the workspace."),
	}
}

// scimAttribute describes an attribute; changes are what it differs in from most.
func scimAttribute(name, kind, description string, changes scimObject) scimObject {
	a := scimObject{
		"name": name, "type": kind, "multiValued": false, "description": description, "required": false,
		"mutability": "readWrite", "returned": "default",
	}
	if kind == "string" {
		a["caseExact"], a["uniqueness"] = false, "none"
	}
	for what, value := range changes {
		a[what] = value
	}
	return a
}

func scimSchemas(url string) []scimObject {
	schema := func(id, name, description string, attributes ...scimObject) scimObject {
		return scimObject{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:Schema"},
			"id":      id, "name": name, "description": description, "attributes": attributes,
			"meta": scimObject{"resourceType": "Schema", "location": url + "/Schemas/" + id},
		}
	}
	external := scimAttribute("externalId", "string", "The provider's own id.", scimObject{"caseExact": true})
	fixed := scimObject{"mutability": "immutable"}
	reference := func(kind string) scimObject {
		return scimAttribute("$ref", "reference", "The address.", scimObject{"mutability": "immutable", "caseExact": true, "referenceTypes": []string{kind}})
	}
	return []scimObject{
		schema(scimUserURN, "User", "A person.",
			scimAttribute("userName", "string", "What the person signs in with.", scimObject{"required": true, "uniqueness": "server"}),
			external,
			scimAttribute("displayName", "string", "What the person is called; the member's name.", nil),
			scimAttribute("name", "complex", "The parts of the name.", scimObject{"subAttributes": []scimObject{
				scimAttribute("formatted", "string", "The whole name.", nil),
				scimAttribute("familyName", "string", "The family name.", nil),
				scimAttribute("givenName", "string", "The given name.", nil),
			}}),
			scimAttribute("active", "boolean", "Whether the person is a member of the workspace.", nil),
			scimAttribute("emails", "complex", "E-mail addresses; the primary one is the member's.", scimObject{"multiValued": true, "subAttributes": []scimObject{
				scimAttribute("value", "string", "The address.", nil),
				scimAttribute("type", "string", "What it is for.", scimObject{"canonicalValues": []string{"work", "home", "other"}}),
				scimAttribute("primary", "boolean", "Whether it is the one to use.", nil),
			}}),
			scimAttribute("groups", "complex", "The provisioned groups the person is in.", scimObject{"multiValued": true, "mutability": "readOnly", "subAttributes": []scimObject{
				scimAttribute("value", "string", "The group's id.", scimObject{"mutability": "readOnly"}),
				scimAttribute("$ref", "reference", "The group's address.", scimObject{"mutability": "readOnly", "caseExact": true, "referenceTypes": []string{"Group"}}),
				scimAttribute("display", "string", "The group's displayName.", scimObject{"mutability": "readOnly"}),
				scimAttribute("type", "string", "Always direct.", scimObject{"mutability": "readOnly", "canonicalValues": []string{"direct"}}),
			}}),
		),
		schema(scimGroupURN, "Group", "A team.",
			scimAttribute("displayName", "string", "The group's name, and the team's when it is written.", scimObject{"required": true, "uniqueness": "server"}),
			external,
			scimAttribute("members", "complex", "The provisioned users in the group.", scimObject{"multiValued": true, "subAttributes": []scimObject{
				scimAttribute("value", "string", "The user's id.", fixed),
				reference("User"),
				scimAttribute("type", "string", "Always User.", scimObject{"mutability": "immutable", "canonicalValues": []string{"User"}}),
			}}),
		),
	}
}
