package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// sight is what the caller gets to see of stored issues in one answer. A parent
// that it may not see is none to it (Decision 26): such a link is taken out of the
// JSON. A caller who sees every issue pays nothing for that, nor does an issue
// without a parent.
type sight struct {
	v *View
	// looked: restricted says whether the workspace has any restricted issue.
	looked, restricted bool
	// seen says whether the caller sees parent, the last that was asked for: children
	// of one parent are often listed together.
	parent storage.ID
	seen   bool
	// spent counts what was looked at beside the issues of the answer, against
	// maxExamined.
	spent int
}

// partial tells whether there may be issues that the caller does not see.
func (s *sight) partial() (bool, error) {
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

// links tells whether the caller may see an issue that is linked, as a parent is,
// which need not be there.
func (s *sight) links(parent storage.ID) (bool, error) {
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

// append appends an issue's JSON as the caller may see it; whole is false when its
// parent was left out.
func (s *sight) append(dst []byte, rec storage.Record) (_ []byte, whole bool, err error) {
	if rec.Flags()&issueHasParent == 0 || s.v.Caller.Level >= Admin {
		return append(dst, rec.JSON()...), true, nil
	}
	return s.appendLinked(dst, rec.JSON(), "parentId")
}

// appendLinked appends the JSON of what may link an issue in a field.
func (s *sight) appendLinked(dst, body []byte, field string) (_ []byte, whole bool, err error) {
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

// shownIssue is an issue's JSON, such as changeIssue gives, as the caller may see
// it; it is the shorter for a parent that is left out.
func (v *View) shownIssue(body []byte) ([]byte, error) {
	if v.Caller.Level >= Admin {
		return body, nil
	}
	shown, _, err := (&sight{v: v}).appendLinked(make([]byte, 0, len(body)), body, "parentId")
	return shown, err
}

// hasChild tells whether an issue, given by its primary key, has a child that the
// caller may see: a hidden one must not show in its parent. Only who may not see
// every issue needs a look at the children themselves.
func (s *sight) hasChild(pk []byte) (found bool, err error) {
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
		found, err = s.v.seesIssue(rec)
		return !found, err
	})
	return found, err
}
