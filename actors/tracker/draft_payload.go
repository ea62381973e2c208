package tracker

import (
	"fmt"
	"reflect"

	json "github.com/goccy/go-json"
)

// DraftPayload is what a draft proposes to write: the body and parentId of a
// comment, what creates an issue, or a patch of one. Whole is the object as it was
// sent, which is what is kept; the fields say that it can be applied. Properties
// that the draft's kind doesn't use are kept and left alone.
type DraftPayload struct {
	Whole json.RawMessage `json:"*"`
	Body  Opt[string]     `json:"body" rules:"min=1,max=65536"`
	IssuePatch
}

// validate looks at what the draft's kind asks of the payload.
func (p *DraftPayload) validate(kind DraftKind, faults *Faults) {
	const at, missing = "payload.", "Is required."
	switch {
	case p.Whole == nil: // absent, or no object
		return
	case kind == DraftComment && !p.Body.Set && !faults.Has(at+"body"):
		faults.Add(at+"body", missing)
	case kind == DraftIssueCreate && !p.Title.Set && !faults.Has(at+"title"):
		faults.Add(at+"title", missing)
	}
	p.validateAt(at, faults)
}

// parentComment is the comment that a proposed one replies to; nil for none.
func (p *DraftPayload) parentComment() *CommentID {
	if parent := p.ParentID.Ptr(); parent != nil {
		id := CommentID(*parent)
		return &id
	}
	return nil
}

// readPayload reads a stored payload back. Its fields were valid when the draft was
// made, so it is damaged when one can't be read.
func readPayload(stored json.RawMessage) (*DraftPayload, error) {
	var properties map[string]json.RawMessage
	if err := json.Unmarshal(stored, &properties); err != nil {
		return nil, fmt.Errorf("read a draft's payload: %w", err)
	}
	p := &DraftPayload{Whole: stored}
	if err := readOpts(reflect.ValueOf(p).Elem(), properties); err != nil {
		return nil, fmt.Errorf("read a draft's payload: %w", err)
	}
	return p, nil
}

// readOpts fills the fields of a struct that are Opts from the properties they are
// tagged with.
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
	if value.CanInt() { // may be written 3.0 or 3e2
		var n float64
		if err := json.Unmarshal(raw, &n); err != nil {
			return err
		}
		value.SetInt(int64(n))
		return nil
	}
	return json.Unmarshal(raw, value.Addr().Interface())
}
