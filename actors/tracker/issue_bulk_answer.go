package tracker

import (
	"bytes"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// bulkAnswer is the answer to a bulk creation, while it is put together.
type bulkAnswer struct {
	body  []byte
	parts []replyPart
}

func (r *bulkRun) answer() (Reply, error) {
	a := &bulkAnswer{body: append(make([]byte, 0, 1024*len(r.items)), `{"issues":[`...)}
	for i := range r.items {
		if i > 0 {
			a.body = append(a.body, ',')
		}
		if err := r.answerItem(a, i); err != nil {
			return Reply{}, err
		}
		if len(a.body) > maxBulkAnswer {
			return Reply{}, &Error{
				Code: CodePayloadTooLarge, Message: fmt.Sprintf("The answer would have more than %d MiB, with the issues whose externalRef is taken.", maxBulkAnswer>>20),
				Hint: "Nothing was changed. Send fewer items at a time.",
			}
		}
	}
	a.body = append(a.body, `],"sessions":[`...)
	for i := range r.sessions {
		if i > 0 {
			a.body = append(a.body, ',')
		}
		s := &r.sessions[i]
		if r.in.DryRun {
			s.body = withoutID(withoutID(s.body, "id", s.id), "issueId", s.issue)
		}
		a.add(s.body, &s.created)
	}
	reply := Reply{Outcome: Created, Body: append(a.body, `]}`...), parts: a.parts}
	if r.in.DryRun {
		reply.Outcome, reply.parts, reply.undo = Done, nil, true
	}
	return reply, nil
}

// add appends an object, which may begin with the data of an event.
func (a *bulkAnswer) add(object []byte, e *eventNote) {
	if e.begins(object) {
		a.parts = append(a.parts, replyPart{len(a.body), e.part})
	}
	a.body = append(a.body, object...)
}

func (r *bulkRun) answerItem(a *bulkAnswer, i int) error {
	t := &r.items[i]
	// Relations and the rules of teams may have changed a new issue.
	shown, err := r.tx.storedIssue(t.id)
	if err != nil {
		return err
	}
	if shown, err = r.tx.shownIssue(shown); err != nil {
		return err
	}
	if r.in.DryRun && !t.existing {
		shown = withoutText(withoutText(withoutID(shown, "id", t.id), "identifier"), "number")
		if parent := r.plan.parents[i]; parent != noItem && !r.items[parent].existing {
			shown = withoutID(shown, "parentId", r.items[parent].id)
		}
	}
	ref, err := json.MarshalWithOption(r.in.Items[i].Ref.Ptr(), json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode a ref: %w", err)
	}
	a.add(shown[:len(shown)-1], &t.created)
	a.body = append(append(a.body, `,"ref":`...), ref...)
	a.body = fmt.Appendf(a.body, `,"created":%t}`, !t.existing)
	return nil
}

// withoutID returns an object with null in place of an id.
func withoutID(object []byte, field string, id storage.ID) []byte {
	return bytes.Replace(object, []byte(`"`+field+`":"`+id.String()+`"`), []byte(`"`+field+`":null`), 1)
}

// withoutText returns an object with null in place of a field's value, which has neither
// quotes nor commas in it. See storedText for why the search is exact.
func withoutText(object []byte, field string) []byte {
	name := []byte(`"` + field + `":`)
	at := bytes.Index(object, name)
	if at < 0 {
		return object
	}
	at += len(name)
	end := bytes.IndexAny(object[at:], ",}")
	return append(append(append(make([]byte, 0, len(object)), object[:at]...), "null"...), object[at+end:]...)
}
