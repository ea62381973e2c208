package tracker

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"switchyard/storage"
)

func takeDraft(im *importing, data []byte) error {
	var d draftRecord
	if err := im.decode(data, &d.Draft); err != nil {
		return err
	}
	d.Inner = draftInner{}
	if err := im.checkPayload(&d.Draft); err != nil {
		return err
	}
	// The issue may come later: publishing a draft makes one.
	if d.IssueID == nil && (d.Kind != DraftIssueCreate || d.Status == DraftPublished) {
		return im.refuse("data.issueId is missing.")
	}
	if d.SessionID != nil {
		session, err := im.needSession(*d.SessionID)
		if err != nil {
			return err
		}
		if err := im.needNewer(string(d.ID), session.Value.id()); err != nil {
			return err
		}
	}
	decided := d.Status != DraftPending
	commented := d.Kind == DraftComment && d.Status == DraftPublished
	if decided != (d.ReviewedAt != nil) || decided != (d.ReviewedByID != nil) || commented != (d.PublishedCommentID != nil) {
		return im.refuse("data.status contradicts the review.")
	}
	if err := im.awaitIssue(d.IssueID); err != nil {
		return err
	}
	return restore(im, &drafts, &d)
}

func takeDraftState(im *importing, data []byte) error {
	var t transferredDraft
	if err := im.decode(data, &t); err != nil {
		return err
	}
	id, _ := storage.ParseID(t.DraftID)
	row, err := drafts.Get(im.tx, storage.Key(nil).DescID(id))
	if err != nil {
		return fmt.Errorf("read a draft: %w", err)
	}
	if row == nil {
		return im.refuse("There is no draft %s before this line.", t.DraftID)
	}
	d := row.Value
	d.Inner = t.draftInner
	if _, err := drafts.Update(im.tx, row, &d); err != nil {
		return fmt.Errorf("store a draft: %w", err)
	}
	return nil
}

// checkPayload holds the payload of a draft to the rules that the creation of a draft has: when
// the draft is published, nothing checks them again. Times are left out, since earlier versions
// took texts that are refused now.
func (im *importing) checkPayload(d *Draft) error {
	p, err := readPayload(d.Kind, d.Payload)
	if err != nil {
		return im.refuse("data.payload is not valid: %v.", err)
	}
	switch {
	case d.Payload[0] != '{':
		return im.refuse("data.payload must be an object.")
	case d.Kind == DraftComment && (!p.Body.Set || p.Body.Null):
		return im.refuse("data.payload.body is missing.")
	case d.Kind == DraftIssueCreate && (!p.Title.Set || p.Title.Null):
		return im.refuse("data.payload.title is missing.")
	}
	if fault := proposalFault(reflect.ValueOf(p).Elem()); fault != "" {
		return im.refuse("%s", fault)
	}
	return nil
}

// proposalFault returns what is wrong with the fields of a payload that are set, by their types and
// rules, or "".
func proposalFault(payload reflect.Value) string {
	for i := range payload.NumField() {
		field, place := payload.Type().Field(i), payload.Field(i)
		if field.Anonymous {
			if fault := proposalFault(place); fault != "" {
				return fault
			}
			continue
		}
		if place.Kind() != reflect.Struct || !place.FieldByName("Set").Bool() {
			continue
		}
		at, rules := "data.payload."+field.Tag.Get("json"), strings.Split(field.Tag.Get("rules"), ",")
		if place.FieldByName("Null").Bool() {
			if !slices.Contains(rules, "nullable") {
				return at + " must not be null."
			}
			continue
		}
		if fault := proposalValueFault(at, field.Tag, rules, place.FieldByName("Value")); fault != "" {
			return fault
		}
	}
	return ""
}

// proposalValueFault returns what is wrong with the value of a field, or "".
func proposalValueFault(at string, tag reflect.StructTag, rules []string, value reflect.Value) string {
	lengths := map[string]int{}
	addLength(lengths, at, tag.Get("rules"))
	addLength(lengths, at+"[]", tag.Get("items"))
	if fault := faultIn(lengths, at, value, false); fault != "" {
		return fault
	}
	most, bounded := lengths[at]
	words := tag.Get("enum")
	switch {
	case value.Kind() == reflect.String && words != "" && !slices.Contains(strings.Split(words, ","), value.String()):
		return at + " must be one of " + strings.ReplaceAll(words, ",", ", ") + "."
	case value.Kind() == reflect.String && value.Len() == 0 && slices.Contains(rules, "min=1"):
		return at + " must not be empty."
	case value.Kind() == reflect.Slice && bounded && value.Len() > most:
		return at + " must have at most " + strconv.Itoa(most) + " items."
	case value.CanInt() && (value.Int() < 0 || bounded && value.Int() > int64(most)):
		return at + " must be a number of 0 to " + strconv.Itoa(most) + "."
	}
	for n := 0; value.Kind() == reflect.Slice && n < value.Len(); n++ {
		if value.Index(n).Len() == 0 {
			return fmt.Sprintf("%s[%d] must not be empty.", at, n)
		}
	}
	return ""
}
