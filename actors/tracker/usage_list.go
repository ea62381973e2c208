package tracker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"switchyard/storage"
)

// ListUsageIn asks for usage by one of its origins, and by the time of its report: from a
// time on, and before another.
type ListUsageIn struct {
	GroupBy string      `query:"groupBy" enum:"session,issue,agent,project,model,month" default:"session"`
	From    Opt[string] `query:"from" rules:"datetime"`
	To      Opt[string] `query:"to" rules:"datetime"`
}

// Validate checks what the tags can't express.
func (in *ListUsageIn) Validate(faults *Faults) {
	momentFault("query.from", &in.From, faults)
	momentFault("query.to", &in.To, faults)
	if from, to := snooze(in.From.Ptr()), snooze(in.To.Ptr()); from != nil && to != nil && *to < *from {
		faults.Add("query.to", "Must not be before from.")
	}
}

// UsageGroups are groups of usage, the most expensive first, months in their order.
type UsageGroups struct {
	Groups []UsageGroup `json:"groups"`
}

// UsageGroup is the usage of one origin. Group is null for usage without a project or a
// model.
type UsageGroup struct {
	Group *string `json:"group"`
	Usage
}

// maxUsageGroups limits the groups of an answer to the most expensive.
const maxUsageGroups = 10_000

// ListUsage adds up what agents have used for the issues that the caller may see
// (Decision 67).
var ListUsage = NewQuery[ListUsageIn, UsageGroups]("ListUsage", "Add up what agents have used", Needs{Read, "sessions"}, listUsage, FromSnapshot, TakesATurn)

func listUsage(v *View, in *ListUsageIn) (Reply, error) {
	q := usageQuery{v: v, by: cmp.Or(in.GroupBy, "session"), groups: map[string]*Usage{}, seen: map[storage.ID]bool{}}
	var err error
	if q.whole, err = v.canViewEveryIssue(); err != nil {
		return Reply{}, err
	}
	if kind, summed := usageSums[q.by]; summed && q.whole && !in.From.Set && !in.To.Set {
		err = q.sums(kind)
	} else {
		err = q.between(snooze(in.From.Ptr()), snooze(in.To.Ptr()))
	}
	if err != nil {
		return Reply{}, fmt.Errorf("add up usage: %w", err)
	}
	return jsonReply(Done, UsageGroups{q.sorted()})
}

// usageSums are the kept sums that answer a question without times.
var usageSums = map[string]usageSumKind{"agent": usageOfAgent, "project": usageOfProject, "issue": usageOfIssue, "model": usageOfModel, "month": usageOfWorkspace}

// canViewEveryIssue reports whether no issue of the workspace is hidden from the caller.
func (v *View) canViewEveryIssue() (bool, error) {
	c := v.Caller
	if len(c.Hidden) > 0 {
		return false, nil
	}
	if c.Root || c.Level >= Admin {
		return true, nil
	}
	restricted := false
	err := v.Rows(restrictedTable, nil, nil, func(_, _ []byte) (bool, error) {
		restricted = true
		return false, nil
	})
	return !restricted, err
}

// usageQuery adds up usage.
type usageQuery struct {
	v      *View
	by     string
	whole  bool // the caller sees every issue
	groups map[string]*Usage
	seen   map[storage.ID]bool // issues and sessions
}

func (q *usageQuery) add(group string, u *Usage) {
	sum := q.groups[group]
	if sum == nil {
		sum = &Usage{}
		q.groups[group] = sum
	}
	sum.add(u)
}

// sums reads kept sums.
func (q *usageQuery) sums(kind usageSumKind) error {
	prefix := storage.Key(nil).Byte(byte(kind))
	return q.v.Rows(usageSumTable, prefix, nil, func(fields, value []byte) (bool, error) {
		group, rest, ok := cutStr(fields[len(prefix):])
		if !ok || len(rest) != 4 {
			return false, fmt.Errorf("%w: sum of usage with %d bytes of key", storage.ErrFormat, len(fields))
		}
		month := binary.BigEndian.Uint32(rest)
		if (month == 0) == (q.by == "month") {
			return true, nil
		}
		if q.by == "month" {
			group = monthText(month)
		}
		u, _, err := parseUsage(value)
		q.add(group, &u)
		return true, err
	})
}

func monthText(month uint32) string { return fmt.Sprintf("%04d-%02d", month/100, month%100) }

// between adds up what was reported from one time on and before another; nil stands for
// no limit. It reads whole days, and the reports of the rest.
func (q *usageQuery) between(from, to *Timestamp) error {
	const day = 24 * time.Hour
	first, last := uint32(0), ^uint32(0) // whole days from first up to, but without, last
	var start, end time.Time
	if from != nil {
		start = from.Time()
		first = dayOf(start.Add(day - time.Millisecond))
	}
	if to != nil {
		end = to.Time()
		last = dayOf(end)
	}
	if start.Before(time.Unix(0, 0)) {
		first, start = 0, time.Unix(0, 0)
	}
	if to != nil && end.Before(time.Unix(0, 0)) {
		return nil
	}
	at := func(day uint32) uint64 { return uint64(day) * uint64((24 * time.Hour).Milliseconds()) }
	if first >= last { // no whole day
		if to == nil {
			return nil
		}
		return q.entries(uint64(start.UnixMilli()), uint64(end.UnixMilli()))
	}
	if from != nil {
		if err := q.entries(uint64(start.UnixMilli()), at(first)); err != nil {
			return err
		}
	}
	if err := q.days(first, last); err != nil || to == nil {
		return err
	}
	return q.entries(at(last), uint64(end.UnixMilli()))
}

// days adds up whole days, from first up to, but without, last.
func (q *usageQuery) days(first, last uint32) error {
	return q.v.Rows(usageDayTable, nil, binary.BigEndian.AppendUint32(nil, first), func(fields, value []byte) (bool, error) {
		day, o, u, err := parseUsageDay(fields, value)
		if err != nil || day >= last {
			return false, err
		}
		return true, q.count(&o, &u, time.UnixMilli(int64(day)*(24*time.Hour).Milliseconds()))
	})
}

// entries adds up reports, from one time in milliseconds up to, but without, another.
func (q *usageQuery) entries(from, to uint64) error {
	return q.v.Rows(usageEntryTable, nil, storage.Key(nil).U64(from), func(fields, value []byte) (bool, error) {
		if len(fields) != 8+16 {
			return false, fmt.Errorf("%w: usage entry with %d bytes of key", storage.ErrFormat, len(fields))
		}
		at := binary.BigEndian.Uint64(fields)
		if at >= to {
			return false, nil
		}
		o, u, err := parseUsageEntry(value)
		if err != nil {
			return false, err
		}
		return true, q.count(&o, &u, time.UnixMilli(int64(at)))
	})
}

// count adds usage to its group, if the caller may see it.
func (q *usageQuery) count(o *usageOrigin, u *Usage, at time.Time) error {
	seen, err := q.includes(o)
	if err != nil || !seen {
		return err
	}
	var group string
	switch q.by {
	case "session":
		group = o.session.String()
	case "issue":
		group = o.issue.String()
	case "agent":
		group = o.agent
	case "project":
		group = o.project
	case "model":
		group = o.model
	default:
		group = monthText(monthOf(at))
	}
	q.add(group, u)
	return nil
}

// includes reports whether usage is to be counted: the caller sees its session or, if that was
// deleted, its issue. Where groups are issues or sessions, these must be there.
func (q *usageQuery) includes(o *usageOrigin) (seen bool, err error) {
	if q.whole && q.by != "issue" && q.by != "session" {
		return true, nil
	}
	if q.by == "issue" {
		seen, known := q.seen[o.issue]
		if !known {
			seen, err = q.v.hasIssue(o.issue)
			q.seen[o.issue] = seen
		}
		return seen, err
	}
	seen, known := q.seen[o.session]
	if !known {
		var found bool
		found, err = sessions.Record(q.v, sessionKey(o.session), func(rec storage.Record) (err error) {
			seen, err = q.v.canViewSession(rec)
			return err
		})
		if err == nil && !found && q.by != "session" { // retention has deleted the session
			seen, err = q.v.hasIssue(o.issue)
		}
		q.seen[o.session] = seen
	}
	return seen, err
}

// sorted returns the groups in their order.
func (q *usageQuery) sorted() []UsageGroup {
	groups := make([]UsageGroup, 0, len(q.groups))
	for group, u := range q.groups {
		groups = append(groups, UsageGroup{Group: textOrNil(group), Usage: *u})
	}
	slices.SortFunc(groups, func(a, b UsageGroup) int {
		if q.by == "month" {
			return cmp.Compare(*a.Group, *b.Group)
		}
		return cmp.Or(cmp.Compare(b.CostMicros, a.CostMicros), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(fromPtr(a.Group), fromPtr(b.Group)))
	})
	return groups[:min(len(groups), maxUsageGroups)]
}

func fromPtr(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
