package tracker

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// IssueHistoryIn identifies the issue whose history is listed.
type IssueHistoryIn struct {
	ID     string `path:"id"`
	Limit  int    `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor string `query:"cursor" rules:"max=1024"`
}

// HistoryEntry is a change of one field. From and To have the field's values in the
// form that the issue shows.
type HistoryEntry struct {
	ID             string          `json:"id"`
	OrganizationID WorkspaceID     `json:"organizationId"`
	IssueID        IssueID         `json:"issueId"`
	Field          string          `json:"field"`
	From           json.RawMessage `json:"from"`
	To             json.RawMessage `json:"to"`
	ActorID        string          `json:"actorId"`
	ActorType      ActorType       `json:"actorType"`
	CreatedAt      Timestamp       `json:"createdAt"`
}

// HistoryPage is a page of an issue's history. NextCursor is absent on the last page.
type HistoryPage struct {
	History    []HistoryEntry `json:"history"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

// IssueHistory lists the changes of an issue, newest first, and the fields of one
// change in the order of the issue's fields (Decision 42).
var IssueHistory = NewQuery[IssueHistoryIn, HistoryPage]("IssueHistory", "List an issue's history", Needs{Read, "issues"}, issueHistory, FromSnapshot)

func issueHistory(v *View, in *IssueHistoryIn) (Reply, error) {
	issue, seen := storage.ParseID(in.ID)
	if seen {
		var err error
		if seen, err = v.hasIssue(issue); err != nil {
			return Reply{}, err
		}
	}
	if !seen {
		return Reply{}, NotFound("issue")
	}
	// A position is the key of a change and the index of the last entry shown: a page
	// may end within a change.
	const keyLen = len(issue)
	p, err := newPage(v.Buf, pageSpec{
		name: "history", limit: cmp.Or(in.Limit, 50), cursor: sent(in.Cursor), query: listQuery(issue, "history"), keyLen: keyLen + 1,
	})
	if err != nil {
		return Reply{}, err
	}
	var (
		row  historyRow
		body []byte
		at   [keyLen + 1]byte
		from []byte
		look = historyLinks{issues: v.eventReader(), visibility: visibility{v: v}}
	)
	if p.after != nil {
		from = p.after[:keyLen]
	}
	err = v.Rows(historyTable, issue[:], from, func(fields, value []byte) (bool, error) {
		key := fields[keyLen:]
		if err := row.parse(key, value); err != nil {
			return false, err
		}
		if err := row.hideParents(&look); err != nil {
			return false, err
		}
		first := 0
		if p.after != nil && string(key) == string(from) {
			first = int(p.after[keyLen]) + 1
		}
		copy(at[:], key)
		for n := first; n < len(row.entries); n++ {
			if !p.hasRoom() {
				return false, nil
			}
			if body, err = row.appendEntry(body[:0], v.Workspace(), issue, n); err != nil {
				return false, err
			}
			at[keyLen] = byte(n)
			p.add(at[:], body)
		}
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list an issue's history: %w", err)
	}
	return p.reply(), nil
}

// historyLinks decides which issues the caller sees in the histories of others.
type historyLinks struct {
	issues     *eventReader
	visibility visibility
}

// shows reports whether the caller may see an issue, which may have been deleted since.
func (l *historyLinks) shows(issue storage.ID) (bool, error) {
	p, err := l.issues.issueStateOf(issue)
	if err != nil {
		return false, err
	}
	if p.there || p.gone {
		return l.issues.showsLink(p)
	}
	// Its state at its deletion is not known any more.
	partial, err := l.visibility.partial()
	return !partial, err
}

// hideParents replaces parents that the caller may not see by null, as the issue itself
// does (Decision 26).
func (r *historyRow) hideParents(links *historyLinks) error {
	for n := range r.entries {
		e := &r.entries[n]
		if string(e.field) != "parentId" {
			continue
		}
		for _, value := range [...]*[]byte{&e.from, &e.to} {
			parent, ok := storage.ParseID(bytes.Trim(*value, `"`))
			if !ok {
				continue
			}
			shown, err := links.shows(parent)
			if err != nil {
				return err
			}
			if !shown {
				*value = []byte("null")
			}
		}
	}
	return nil
}

// appendEntry appends the n-th entry of a change in the form that clients get.
func (r *historyRow) appendEntry(b []byte, workspace, issue storage.ID, n int) ([]byte, error) {
	e := &r.entries[n]
	actor, err := json.MarshalWithOption(string(r.actor), json.DisableHTMLEscape())
	if err != nil {
		return nil, err
	}
	b = r.entryID(n).AppendText(append(b, `{"id":"`...))
	b = workspace.AppendText(append(b, `","organizationId":"`...))
	b = issue.AppendText(append(b, `","issueId":"`...))
	b = strconv.AppendQuote(append(b, `","field":`...), string(e.field)) // consists of letters
	b = append(append(b, `,"from":`...), e.from...)
	b = append(append(b, `,"to":`...), e.to...)
	b = append(append(b, `,"actorId":`...), actor...)
	b = append(append(b, `,"actorType":"`...), r.kind...)
	b = append(append(b, `","createdAt":"`...), r.at...)
	return append(b, `"}`...), nil
}
