package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// visibility decides what the caller sees of stored issues in one answer. The id of a parent
// that the caller may not see is replaced by null in the JSON (Decision 26). Callers
// who see every issue, and issues without a parent, cost no look-up.
type visibility struct {
	v *View
	// restricted is valid if looked is set: the workspace has restricted issues.
	looked, restricted bool
	// seen caches whether the caller sees parent: children of one parent are often
	// listed together.
	parent storage.ID
	seen   bool
	// spent counts the records read in addition to the answer's issues, against
	// maxExamined.
	spent int
}

// partial reports whether there may be issues that the caller does not see.
func (s *visibility) partial() (bool, error) {
	switch c := s.v.Caller; {
	case c.Lane != nil || len(c.Hidden) > 0:
		return true, nil
	case c.Level >= Admin:
		return false, nil
	}
	if !s.looked {
		var err error
		if s.restricted, err = s.v.Has(restrictedTable, nil); err != nil {
			return false, fmt.Errorf("look for restricted issues: %w", err)
		}
		s.looked = true
	}
	return s.restricted, nil
}

// links reports whether the caller may see a linked issue, such as a parent, which need
// not exist.
func (s *visibility) links(parent storage.ID) (bool, error) {
	partial, err := s.partial()
	if err != nil || !partial {
		return err == nil, err
	}
	if parent != s.parent {
		if s.seen, err = s.v.hasIssue(parent); err != nil {
			return false, err
		}
		s.parent = parent
	}
	return s.seen, nil
}

// append appends an issue's JSON as the caller may see it; whole is false if the parent
// was left out.
func (s *visibility) append(dst []byte, rec storage.Record) (_ []byte, whole bool, err error) {
	if rec.Flags()&issueHasParent == 0 || s.v.Caller.Level >= Admin {
		return append(dst, rec.JSON()...), true, nil
	}
	return s.appendLinked(dst, rec.JSON(), "parentId")
}

// appendLinked appends the JSON of a record with a field that may link an issue.
func (s *visibility) appendLinked(dst, body []byte, field string) (_ []byte, whole bool, err error) {
	issue, ok := storage.ParseID(storedText(body, field))
	if !ok {
		return append(dst, body...), true, nil
	}
	if whole, err = s.links(issue); err != nil || whole {
		return append(dst, body...), whole, err
	}
	start := bytes.Index(body, []byte(`"`+field+`":"`)) + len(field) + len(`"":`)
	end := start + 1 + len(`01890000-0000-7000-8000-000000000000"`)
	return append(append(append(dst, body[:start]...), "null"...), body[end:]...), false, nil
}

// shownIssue returns an issue's JSON as the caller may see it. It is shorter if the
// parent was left out.
func (v *View) shownIssue(body []byte) ([]byte, error) {
	if v.Caller.Level >= Admin {
		return body, nil
	}
	shown, _, err := (&visibility{v: v}).appendLinked(make([]byte, 0, len(body)), body, "parentId")
	return shown, err
}

// hasChild reports whether an issue, given by its primary key, has a child that the
// caller may see: the existence of hidden ones must not show. Only callers who don't
// see every issue need a look at the children.
func (s *visibility) hasChild(pk []byte) (found bool, err error) {
	partial, err := s.partial()
	if err != nil {
		return false, err
	}
	if !partial {
		return s.v.Has(issueByParent, pk)
	}
	children := []storage.Match{storage.Equal(issueByParent, storage.Key(pk))}
	err = issues.List(s.v, children, nil, func(_ []byte, rec storage.Record) (bool, error) {
		if s.spent++; rec.Flags()&issueRestricted != 0 {
			s.spent += grantsCost
		}
		found, err = s.v.canViewIssue(rec)
		return !found, err
	})
	return found, err
}

// accessCache has the decisions on records that belong to issues, such as sessions and
// drafts: by issue, whether the caller may see them.
type accessCache struct{ decided map[storage.ID]bool }

// byIssue calls decide once for each issue.
func (c *accessCache) byIssue(rec storage.Record, decide func(storage.Record) (bool, error)) (bool, error) {
	issue := issueIn(rec)
	if seen, known := c.decided[issue]; known {
		return seen, nil
	}
	seen, err := decide(rec)
	if err != nil {
		return false, err
	}
	if c.decided == nil {
		c.decided = map[storage.ID]bool{}
	}
	c.decided[issue] = seen
	return seen, nil
}
