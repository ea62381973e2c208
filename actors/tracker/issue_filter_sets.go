package tracker

import "switchyard/storage"

// IssueSets says from which rows the sets are made that lists of issues are filtered
// with.
var IssueSets = storage.FilterSpec{
	Table: issueTable,
	Indexes: []storage.TableID{
		issueByStatus, issueByPriority, issueByTeam, issueByParent, issueByHasParent, issueByAssignee,
		issueByProject, issueByCycle, issueByLabel, issueByDraft, issueByArchived, restrictedTable, blockedTable,
	},
	Leading:    []storage.TableID{accessTable},
	Owned:      []storage.OwnedRows{{Table: sessionActive, Counts: occupies}},
	Referenced: issueByParent,
	Version:    clockTable,
	Sleeps: func(rec storage.Record) int64 {
		if rec.Flags()&issueSnoozed == 0 {
			return 0
		}
		return Timestamp(storedText(rec.JSON(), "snoozedUntil")).Time().UnixMilli()
	},
}

// listFilters is how one list was filtered.
type listFilters struct {
	sets *storage.FilterSets // nil: there are none
	used bool
	// work is what the list cost beside its page: how often streams were moved and
	// issues looked at in vain.
	work int
}

// Filter gives the view the sets of its workspace's issues.
func (v *View) Filter(sets *storage.FilterSets) { v.filters.sets = sets }

// Filtered gives the sets that the answer comes from; nil when it does without.
func (v *View) Filtered() *storage.FilterSets {
	if !v.filters.used {
		return nil
	}
	return v.filters.sets
}

// Wasted returns the work of a list without sets besides its page, in steps of some
// hundred nanoseconds.
func (v *View) Wasted() int { return v.filters.work }

// selects answers the filter of a list by the sets; nil where the list does without
// them. stale says that they are of a later moment than v.
func (v *View) selects(f *IssueFilter, matches []storage.Match, p *issuePage) (s *storage.Selection, stale bool, err error) {
	sets := v.filters.sets
	if sets == nil || !sets.Ready() || v.Caller.Lane != nil {
		return nil, false, nil
	}
	for _, m := range matches {
		if !sets.Covers(m) {
			return nil, false, nil
		}
	}
	q := storage.FilterQuery{Matches: matches}
	if err := v.complete(&q, p, f); err != nil {
		return nil, false, err
	}
	s, stale, err = sets.Select(&v.View, &q, p.after)
	v.filters.used = s != nil
	return s, stale, err
}

// complete adds to a query by the filter's matches the conditions that depend on the
// caller and the clock, or are the lack of something. The sets may select more issues
// than the residual filter lets through.
func (v *View) complete(q *storage.FilterQuery, p *issuePage, f *IssueFilter) error {
	partial, err := p.visibility.partial()
	if err != nil {
		return err
	}
	q.Without, q.AwakeAt = q.Without[:0], 0
	without := func(index storage.TableID, fields storage.Key) {
		q.Without = append(q.Without, storage.Without{Match: storage.Equal(index, fields)})
	}
	if !f.IncludeSnoozed.Value {
		q.AwakeAt = v.now.UnixMilli()
	}
	if f.IsDraft.Set && !f.IsDraft.Value {
		without(issueByDraft, nil)
	}
	if f.hidesArchived() {
		without(issueByArchived, nil)
	}
	q.Enough = 0
	exact := f.selectReady(q, v.now)
	if f.Blocked.Set && !f.Blocked.Value {
		without(blockedTable, nil)
	}
	if !partial {
		if f.HasParent.Set && !f.HasParent.Value {
			without(issueByHasParent, nil)
		}
		if f.IsParent.Set && !f.IsParent.Value {
			q.Without = append(q.Without, storage.Without{Match: storage.Referenced(issueByParent)})
		}
		if !f.Search.Set && exact {
			q.Enough = p.limit + 2 // one shows that there is another page, and one may be the cursor's
		}
		return nil
	}
	for team := range v.Caller.Hidden {
		without(issueByTeam, storage.Key(nil).ID(team))
	}
	if v.Caller.Level < Admin {
		q.Without = append(q.Without, storage.Without{Match: storage.Equal(restrictedTable, nil), Unless: v.Caller.grants()})
	}
	return nil
}

// grants matches the issues that may be granted to the caller: the kinds of the grants
// are not looked at.
func (c *Caller) grants() []storage.Match {
	all := []storage.Match{storage.Equal(accessTable, storage.Key(nil).Str(c.ID))}
	for team := range c.Teams {
		all = append(all, storage.Equal(accessTable, storage.Key(nil).Str(team.String())))
	}
	return all
}
