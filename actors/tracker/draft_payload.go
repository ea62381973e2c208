package tracker

import (
	"fmt"
	"reflect"
	"slices"

	json "github.com/goccy/go-json"
)

// DraftPayload is a proposed write: the body and parentId of a comment, the fields of a
// new issue, or a patch of an issue. Whole is the object as it was sent, which is
// stored; the fields are parsed to check that it can be applied. Properties that the
// draft's kind doesn't use may have any value: they are stored and ignored.
type DraftPayload struct {
	Whole json.RawMessage `json:"*"`
	Body  Opt[string]     `json:"body" rules:"min=1,max=65536"`
	IssuePatch
}

// unusedInPayload has the names of DraftPayload's fields that a kind doesn't use.
var unusedInPayload = map[DraftKind][]string{
	DraftComment:     payloadNamesBeside(reflect.TypeFor[CreateCommentIn]()),
	DraftIssueCreate: payloadNamesBeside(reflect.TypeFor[CreateIssueIn]()),
	DraftIssueUpdate: payloadNamesBeside(reflect.TypeFor[PatchIssueIn]()),
}

// payloadNamesBeside returns the names of DraftPayload's fields that an input lacks.
func payloadNamesBeside(input reflect.Type) []string {
	used := propertyNames(input)
	return slices.DeleteFunc(propertyNames(reflect.TypeFor[DraftPayload]()), func(name string) bool { return slices.Contains(used, name) })
}

// propertyNames returns the names of an input's properties.
func propertyNames(input reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(input) {
		if name := field.Tag.Get("json"); name != "" && name != "*" {
			names = append(names, name)
		}
	}
	return names
}

// validate checks what the draft's kind requires of the payload.
func (p *DraftPayload) validate(kind DraftKind, faults *Faults) {
	const at, missing = "payload.", "Is required."
	switch {
	case p.Whole == nil: // absent, or not an object
		return
	case kind == DraftComment && !p.Body.Set && !faults.Has(at+"body"):
		faults.Add(at+"body", missing)
	case kind == DraftIssueCreate && !p.Title.Set && !faults.Has(at+"title"):
		faults.Add(at+"title", missing)
	}
	if kind != DraftComment {
		p.validateAt(at, faults)
	}
}

// parentComment returns the comment that the proposed one replies to, or nil.
func (p *DraftPayload) parentComment() *CommentID {
	if parent := p.ParentID.Ptr(); parent != nil {
		id := CommentID(*parent)
		return &id
	}
	return nil
}

// readPayload decodes what a kind uses of a stored payload. That was valid when the draft
// was made, so an error means that it is damaged.
func readPayload(kind DraftKind, stored json.RawMessage) (*DraftPayload, error) {
	var properties map[string]json.RawMessage
	if err := json.Unmarshal(stored, &properties); err != nil {
		return nil, fmt.Errorf("read a draft's payload: %w", err)
	}
	for _, name := range unusedInPayload[kind] {
		delete(properties, name)
	}
	p := &DraftPayload{Whole: stored}
	if err := readOpts(reflect.ValueOf(p).Elem(), properties); err != nil {
		return nil, fmt.Errorf("read a draft's payload: %w", err)
	}
	return p, nil
}

// readOpts sets the Opt fields of a struct from the properties of their json tags.
func readOpts(dst reflect.Value, properties map[string]json.RawMessage) error {
	for i := range dst.NumField() {
		field, place := dst.Type().Field(i), dst.Field(i)
		if field.Anonymous {
			if err := readOpts(place, properties); err != nil {
				return err
			}
			continue
		}
		raw, given := properties[field.Tag.Get("json")]
		if !given || place.Kind() != reflect.Struct {
			continue
		}
		place.FieldByName("Set").SetBool(true)
		if string(raw) == "null" {
			place.FieldByName("Null").SetBool(true)
			continue
		}
		if err := readValue(place.FieldByName("Value"), raw); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	return nil
}

func readValue(value reflect.Value, raw json.RawMessage) error {
	if value.CanInt() { // may be written as 3.0 or 3e2
		var n float64
		if err := json.Unmarshal(raw, &n); err != nil {
			return err
		}
		value.SetInt(int64(n))
		return nil
	}
	return json.Unmarshal(raw, value.Addr().Interface())
}
