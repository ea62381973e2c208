package tracker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SCIMOperation is one operation of a PATCH.
type SCIMOperation struct {
	Op    string          `json:"op" rules:"required,max=20"`
	Path  Opt[string]     `json:"path" rules:"nullable,max=1000"`
	Value json.RawMessage `json:"value"`
}

// SCIMOperations is the body of a PATCH (RFC 7644, section 3.5.2).
type SCIMOperations struct {
	Operations []SCIMOperation `json:"Operations" rules:"required,min=1,max=1000"`
}

// scimEdit is an operation on one attribute.
type scimEdit struct {
	add, remove bool // neither: replace
	path        scimPath
	raw         json.RawMessage // the value; empty for none
	value       any             // raw as decode leaves it; nil for none
}

const (
	// maxSCIMEdits limits the attributes that the operations of a PATCH name.
	maxSCIMEdits = 10_000
	// maxSCIMValues limits the JSON values in the value of an attribute other than members.
	maxSCIMValues = 10_000
)

// edits parses the operations of a PATCH. An operation without a path is split into one
// for each attribute of its value. Values are decoded when they are applied: those of
// several operations must not be in memory as maps at the same time.
func (o *SCIMOperations) edits() ([]scimEdit, error) {
	var edits []scimEdit
	for i := range o.Operations {
		op := &o.Operations[i]
		e := scimEdit{}
		switch strings.ToLower(op.Op) { // some providers send Add and Replace
		case "add":
			e.add = true
		case "remove":
			e.remove = true
		case "replace":
		default:
			return nil, scimRefusal("invalidSyntax", fmt.Sprintf("Operations[%d].op must be add, remove or replace.", i))
		}
		e.raw = op.Value
		if path := op.Path.Or(""); path != "" {
			var err error
			if e.path, err = parseSCIMPath(path); err != nil {
				return nil, err
			}
			if len(edits) == maxSCIMEdits {
				return nil, manySCIMEdits()
			}
			edits = append(edits, e)
			continue
		}
		if e.remove || len(e.raw) == 0 || e.raw[0] != '{' {
			return nil, scimRefusal(scimNoTarget, fmt.Sprintf("Operations[%d] has neither a path nor a value that names attributes.", i))
		}
		attributes, err := scimAttributes(e.raw, maxSCIMEdits-len(edits))
		if err != nil {
			return nil, err
		}
		for _, a := range attributes {
			one := e
			if one.path, err = parseSCIMPath(a.name); err != nil {
				return nil, err
			}
			one.raw = a.value
			edits = append(edits, one)
		}
	}
	return edits, nil
}

// scimNamed is an attribute in a value.
type scimNamed struct {
	name  string
	value json.RawMessage
}

func manySCIMEdits() error {
	return scimRefusal(scimInvalidValue, fmt.Sprintf("The operations name more than %d attributes.", maxSCIMEdits))
}

// scimAttributes returns the attributes of an object, sorted by name, and refuses more than most.
func scimAttributes(object json.RawMessage, most int) (all []scimNamed, err error) {
	err = eachProperty(object, func(name string, value []byte) error {
		if len(all) == most {
			return manySCIMEdits()
		}
		all = append(all, scimNamed{name, bytes.Clone(value)})
		return nil
	})
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return nil, refused
	}
	if err != nil {
		return nil, unreadableSCIM()
	}
	slices.SortFunc(all, func(a, b scimNamed) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

func unreadableSCIM() error { return scimRefusal("invalidSyntax", "A value can't be read.") }

// decode decodes the value.
func (e *scimEdit) decode() error {
	switch {
	case len(e.raw) == 0:
		return nil
	case TooMany(e.raw, maxSCIMValues):
		return scimRefusal(scimInvalidValue, fmt.Sprintf("%s must have at most %d JSON values.", e.path.attribute, maxSCIMValues))
	case json.Unmarshal(e.raw, &e.value) != nil:
		return unreadableSCIM()
	}
	return nil
}

// text returns the value of an edit of a single text, or nil to remove it.
func (e *scimEdit) text(most int) (*string, error) {
	if e.remove || e.value == nil {
		return nil, nil
	}
	text, ok := e.value.(string)
	if !ok || len([]rune(text)) > most || !indexable(text) {
		return nil, scimRefusal(scimInvalidValue, fmt.Sprintf("%s must be a string of at most %d characters.", e.path.attribute, most))
	}
	if text == "" {
		return nil, nil
	}
	return &text, nil
}

// scimTruth parses a boolean, or a string of one in any case, which Microsoft Entra ID
// sends.
func scimTruth(value any) (bool, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		switch {
		case strings.EqualFold(v, "true"):
			return true, nil
		case strings.EqualFold(v, "false"):
			return false, nil
		}
	}
	return false, scimNotTruth()
}

func scimNotTruth() error { return scimRefusal(scimInvalidValue, "active must be true or false.") }

// scimObjects parses a value that is an object or an array of objects.
func scimObjects(value any) ([]map[string]any, bool) {
	if one, ok := value.(map[string]any); ok {
		return []map[string]any{one}, true
	}
	list, ok := value.([]any)
	if !ok {
		return nil, false
	}
	all := make([]map[string]any, 0, len(list))
	for _, v := range list {
		one, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}

// scimProperty returns a property of an object by its name, case-insensitively, or nil.
func scimProperty(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	for key, v := range object {
		if strings.EqualFold(key, name) {
			return v
		}
	}
	return nil
}

// scimUnkept are the attributes of RFC 7643's users that are not stored. Providers send
// them by default, so they are accepted and dropped. Attributes that are in no schema
// are refused.
var scimUnkept = map[string]bool{
	"schemas": true, "id": true, "meta": true, "groups": true,
	"nickname": true, "profileurl": true, "title": true, "usertype": true, "preferredlanguage": true, "locale": true, "timezone": true,
	"password": true, "phonenumbers": true, "ims": true, "photos": true, "addresses": true, "entitlements": true, "roles": true, "x509certificates": true,
}

// apply applies an edit to a user. It sets active if the edit has it.
func (e *scimEdit) apply(u *SCIMUserAttributes, active *Opt[bool]) (err error) {
	p := &e.path
	if p.foreign || scimUnkept[p.attribute] {
		return nil
	}
	if p.selects && p.attribute != "emails" || p.sub != "" && p.attribute != "emails" && p.attribute != "name" {
		return scimRefusal(scimInvalidPath, "A path names an attribute that users do not have.")
	}
	if err := e.decode(); err != nil {
		return err
	}
	defer func() { e.value = nil }() // it is decoded for one edit at a time
	switch p.attribute {
	case "username":
		name, err := e.text(255)
		if err != nil {
			return err
		}
		if name == nil {
			return scimRefusal(scimMutability, "userName can't be removed.")
		}
		u.UserName = *name
	case "externalid":
		u.ExternalID, err = e.text(255)
	case "displayname":
		u.DisplayName, err = e.text(200)
	case "active":
		if e.remove {
			return scimRefusal(scimMutability, "active can't be removed.")
		}
		value, err := scimTruth(e.value)
		if err != nil {
			return err
		}
		*active = Some(value)
	case "name":
		err = e.applyName(u)
	case "emails":
		err = e.applyEmails(u)
	default:
		return scimRefusal(scimInvalidPath, "A path names an attribute that users do not have.")
	}
	return err
}

// keepsID refuses to change a resource's id. Some providers send the present one.
func (e *scimEdit) keepsID(id string) error {
	if e.path.attribute != "id" {
		return nil
	}
	var sent string
	if !e.remove && e.path.sub == "" && json.Unmarshal(e.raw, &sent) == nil && sent == id {
		return nil
	}
	return scimRefusal(scimMutability, "id can't be changed.")
}

func (e *scimEdit) applyName(u *SCIMUserAttributes) error {
	if e.path.sub == "" {
		if e.remove || e.value == nil {
			u.Name = nil
			return nil
		}
		parts, ok := e.value.(map[string]any)
		if !ok {
			return scimRefusal(scimInvalidValue, "name must be an object.")
		}
		for _, sub := range slices.Sorted(maps.Keys(parts)) {
			one := *e
			one.path.sub, one.value = strings.ToLower(sub), parts[sub]
			if err := one.applyName(u); err != nil {
				return err
			}
		}
		return nil
	}
	text, err := e.text(200)
	if err != nil {
		return err
	}
	value := ""
	if text != nil {
		value = *text
	}
	n := SCIMName{}
	if u.Name != nil {
		n = *u.Name
	}
	switch e.path.sub {
	case "formatted":
		n.Formatted = value
	case "givenname":
		n.GivenName = value
	case "familyname":
		n.FamilyName = value
	case "middlename", "honorificprefix", "honorificsuffix":
		return nil
	default:
		return scimRefusal(scimInvalidPath, "A path names a part that names do not have.")
	}
	u.Name = &n
	if n == (SCIMName{}) {
		u.Name = nil
	}
	return nil
}
