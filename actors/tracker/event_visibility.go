package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// storedEvent is an event of the log, with the facts that decide who sees it.
type storedEvent struct {
	sequence uint64
	kind     EventSet // the bit of its type
	name     []byte   // its type; part of body
	body     []byte   // its JSON
	issue    *issueState
	// other is the second issue of an event about a relation.
	other  *issueState
	header storage.Header
	// adminsOnly is set if it is not known who else may see the event.
	adminsOnly bool
	// links are the ids of other issues in the body: parents, issues made from tickets, and
	// issues that released one.
	links []linkAt
}

// issueState holds what decides who sees an issue now. It is read once for all the
// events and callers of a batch.
type issueState struct {
	id         storage.ID
	there      bool
	restricted bool
	team       storage.ID
	// gone is set if the issue was deleted and its last state is known; false for
	// issues deleted before that state was recorded.
	gone bool
	// granted caches which actors the grants admit.
	granted map[grantee]bool
}

type grantee struct {
	kind ActorType
	id   string
}

// eventReader reads events of one snapshot.
type eventReader struct {
	v      *View
	places map[storage.ID]*issueState
	// teams caches which teams exist.
	teams map[storage.ID]bool
}

func (v *View) eventReader() *eventReader {
	return &eventReader{v: v, places: map[storage.ID]*issueState{}, teams: map[storage.ID]bool{}}
}

var errEvent = fmt.Errorf("%w: event", storage.ErrFormat)

// read parses an event without decoding its JSON as a whole. rec is its whole row, which must
// not change afterwards.
func (r *eventReader) read(sequence uint64, rec storage.Record) (e storedEvent, err error) {
	e = storedEvent{sequence: sequence, body: rec.JSON(), header: rec.Header()}
	if e.name = eventTypeIn(e.body); e.name == nil {
		return e, errEvent
	}
	kind := eventsByName[string(e.name)]
	if kind == nil {
		e.kind = otherEvent
		return e, nil
	}
	e.kind = kind.bit
	if kind.issueFrom == onNoIssue {
		return e, nil
	}
	at, end := eventDataIn(e.body)
	if at < 0 {
		return e, errEvent
	}
	switch data := e.body[at:end]; kind.issueFrom {
	case onTicket:
		err = r.findLinks(&e, at, end, "issueId")
	case onItself:
		if err = r.setIssue(&e, firstText(data, "id")); err == nil {
			err = r.findLinks(&e, at, end, "parentId")
		}
		if err == nil && kind == eventIssueReady {
			err = r.findReleasers(&e, at, end)
		}
	case onRelation:
		if err = r.setIssue(&e, firstText(data, "toId")); err == nil && !e.adminsOnly {
			e.other = e.issue
			err = r.setIssue(&e, firstText(data, "fromId"))
		}
	default:
		issue := firstText(data, "issueId")
		if issue == nil && kind.issueFrom == onDraft {
			err = r.findDraft(&e, firstText(data, "id"))
		} else {
			err = r.setIssue(&e, issue)
		}
	}
	return e, err
}

// setIssue sets the issue that decides who sees an event. An event whose data has no issue,
// though its type requires it, is for admins only, so that it does not fail the whole
// list.
func (r *eventReader) setIssue(e *storedEvent, issue []byte) (err error) {
	id, ok := storage.ParseID(issue)
	if e.adminsOnly = !ok; ok {
		e.issue, err = r.issueStateOf(id)
	}
	return err
}

// findDraft sets the issue of an event of a draft that had no issue: the draft may have
// become one since. Otherwise the event's team decides.
func (r *eventReader) findDraft(e *storedEvent, draft []byte) error {
	id, ok := storage.ParseID(draft)
	if e.adminsOnly = !ok; !ok {
		return nil
	}
	var issue storage.ID
	there, err := drafts.Record(r.v, storage.Key(nil).DescID(id), func(rec storage.Record) error {
		if rec.Flags()&draftOnIssue != 0 {
			issue = issueIn(rec)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for a draft: %w", err)
	}
	e.adminsOnly = !there
	if issue != (storage.ID{}) {
		e.issue, err = r.issueStateOf(issue)
	}
	return err
}

// eventTypeIn returns the type at the beginning of an event's JSON.
func eventTypeIn(body []byte) []byte {
	const before = len(`{"id":"01890000-0000-7000-8000-000000000000`)
	rest, ok := bytes.CutPrefix(body[min(before, len(body)):], []byte(`","type":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return nil
	}
	return rest[:end]
}

// eventDataIn returns the range of data in an event's JSON. Searching for names is
// exact, as in storedText: the only external text in front of data is the actor's id,
// and data ends before changes, if there are any.
func eventDataIn(body []byte) (from, to int) {
	const name = `"data":`
	at := bytes.Index(body, []byte(name))
	if at < 0 {
		return -1, -1
	}
	at += len(name)
	if end := bytes.LastIndex(body, []byte(changesMark)); end > at {
		return at, end
	}
	return at, len(body)
}

const changesMark = `,"changes":{`

// firstText returns the text of the first field of that name, or nil if it is null.
func firstText(body []byte, field string) []byte {
	at := bytes.Index(body, []byte(`"`+field+`":`))
	if at < 0 {
		return nil
	}
	rest, text := bytes.CutPrefix(body[at+len(field)+3:], []byte(`"`))
	end := bytes.IndexByte(rest, '"')
	if !text || end < 0 {
		return nil
	}
	return rest[:end]
}

// issueStateOf returns an issue's place, from the cache or the store.
func (r *eventReader) issueStateOf(id storage.ID) (*issueState, error) {
	if p := r.places[id]; p != nil {
		return p, nil
	}
	p := &issueState{id: id}
	var err error
	p.there, err = issues.Record(r.v, issueKey(id), func(rec storage.Record) error {
		p.team, p.restricted = rec.Team(), rec.Flags()&issueRestricted != 0
		return nil
	})
	if err == nil && !p.there {
		err = r.v.readTombstone(p)
	}
	if err != nil {
		return nil, fmt.Errorf("look where an issue is: %w", err)
	}
	r.places[id] = p
	return p, nil
}

// canView reports whether the view's caller may see an event. Events of an existing issue
// are seen by the callers who see the issue now. Events of a deleted one are seen by
// those who could see it both at the event and at its deletion; only admins see them if
// it was restricted, or if its team is deleted, since the team may have been private
// (Decision 44).
//
// An event about a relation is seen by those who would see it if it were about either of
// its issues.
func (r *eventReader) canView(e *storedEvent) (bool, error) {
	seen, err := r.canViewFirst(e)
	if !seen || err != nil || e.other == nil || r.v.Caller.Level >= Admin {
		return seen, err
	}
	switch p := e.other; {
	case p.there:
		return r.canViewPlace(p)
	case !p.gone || p.restricted || e.header.Flags&issueRestricted != 0:
		return false, nil
	default:
		return r.canViewTeam(p.team)
	}
}

// canViewFirst decides by the issue that an event hangs on.
func (r *eventReader) canViewFirst(e *storedEvent) (bool, error) {
	switch c := r.v.Caller; {
	case c.Level >= Admin:
		return true, nil
	case e.issue != nil && e.issue.there:
		return r.canViewPlace(e.issue)
	case e.adminsOnly || e.header.Flags&issueRestricted != 0 || e.issue != nil && e.issue.gone && e.issue.restricted:
		return false, nil
	}
	seen, err := r.canViewTeam(e.header.Team)
	if seen && err == nil && e.issue != nil && e.issue.gone {
		seen, err = r.canViewTeam(e.issue.team)
	}
	return seen, err
}

// canViewTeam reports whether the view's caller, who is not an admin, may see records of a
// team.
func (r *eventReader) canViewTeam(team storage.ID) (bool, error) {
	if !r.v.Caller.CanViewTeam(team) {
		return false, nil
	}
	if team == (storage.ID{}) {
		return true, nil
	}
	there, known := r.teams[team]
	if !known {
		var err error
		if there, err = r.v.Has(teamTable, storage.Key(nil).DescID(team)); err != nil {
			return false, fmt.Errorf("look for a team: %w", err)
		}
		r.teams[team] = there
	}
	return there, nil
}

// canViewPlace reports whether the view's caller may see an issue. It decides as
// View.canViewIssue does, with a cache for many callers.
func (r *eventReader) canViewPlace(p *issueState) (bool, error) {
	c := r.v.Caller
	switch {
	case c.Level >= Admin:
		return true, nil
	case !p.there || c.Lane != nil || !c.CanViewTeam(p.team):
		return false, nil
	case !p.restricted:
		return true, nil
	}
	who := grantee{c.Type, c.ID}
	in, known := p.granted[who]
	if !known {
		var err error
		if in, err = r.v.granted(c, p.id); err != nil {
			return false, err
		}
		if p.granted == nil {
			p.granted = map[grantee]bool{}
		}
		p.granted[who] = in
	}
	return in, nil
}
