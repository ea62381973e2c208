package tracker

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ListUsageIn asks for usage by one of its origins, and by the time of its report: from a
// time on, and before another.
type ListUsageIn struct {
	GroupBy string      `query:"groupBy" enum:"session,issue,agent,project,model,month" default:"month"`
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

const (
	// maxUsageGroups limits the groups of an answer to the most expensive.
	maxUsageGroups = 10_000
	// maxUsageSummed limits the groups that one request adds up from many rows each, since they
	// are in memory together. Which of them are the most expensive is known at the end.
	maxUsageSummed = 100_000
	// maxUsageSeen limits the decisions on issues and sessions that a request remembers.
	maxUsageSeen = 10_000
)

// ListUsage adds up what agents have used for the issues that the caller may see
// (Decision 67).
var ListUsage = NewQuery[ListUsageIn, UsageGroups]("ListUsage", "Add up what agents have used", Needs{Read, "sessions"}, listUsage, FromSnapshot, TakesATurn, Refuses(CodeConflict))

func listUsage(v *View, in *ListUsageIn) (Reply, error) {
	q := usageQuery{v: v, by: cmp.Or(in.GroupBy, "month"), found: []UsageGroup{}, most: maxUsageSummed}
	var err error
	if q.whole, err = v.canViewEveryIssue(); err != nil {
		return Reply{}, err
	}
	kind, summed := usageSums[q.by]
	if q.whole && v.Caller.Level < Admin && q.by != "issue" && q.by != "session" {
		if q.whole, err = v.keepsIssuesOfUsage(); err != nil {
			return Reply{}, fmt.Errorf("add up usage: %w", err)
		}
	}
	switch ever := !in.From.Set && !in.To.Set; {
	case ever && q.by == "session":
		err = q.sessions()
	case ever && summed && (q.whole || q.by == "issue"):
		err = q.sums(kind)
	default:
		err = q.between(snooze(in.From.Ptr()), snooze(in.To.Ptr()))
	}
	if err != nil {
		return Reply{}, fmt.Errorf("add up usage: %w", err)
	}
	return jsonReply(Done, UsageGroups{q.sorted()})
}

// usageSums are the kept sums that answer a question without times. Sessions have their own.
var usageSums = map[string]usageSumKind{"agent": usageOfAgent, "project": usageOfProject, "issue": usageOfIssue, "model": usageOfModel, "month": usageOfWorkspace}

// keepsIssuesOfUsage reports whether all issues with usage are there. Usage of a deleted issue may have
// been hidden from callers below admin, and is so still; what it is hidden by may be gone with the
// issue. The sums of issues go with them, so the rest no longer makes up the sum of the workspace.
func (v *View) keepsIssuesOfUsage() (bool, error) {
	var sum Usage
	prefix := storage.Key(nil).Byte(byte(usageOfIssue))
	if err := v.Rows(usageSumTable, prefix, nil, func(fields, value []byte) (bool, error) {
		if len(fields) < 4 {
			return false, fmt.Errorf("%w: sum of usage with %d bytes of key", storage.ErrFormat, len(fields))
		}
		if binary.BigEndian.Uint32(fields[len(fields)-4:]) != 0 {
			return true, nil // of a month
		}
		u, _, err := parseUsage(value)
		sum.add(&u)
		return true, err
	}); err != nil {
		return false, err
	}
	all, err := v.usageSum(usageSumTable, usageSumKey(usageOfWorkspace, "", 0))
	if err != nil {
		return false, err
	}
	// A sum at its limit says nothing of its parts.
	exact := max(all.InputTokens, all.OutputTokens, all.CacheReadTokens, all.CostMicros) < maxUsage
	return exact && sum == all, nil
}

// canViewEveryIssue reports whether no issue that is there is hidden from the caller.
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
	v     *View
	by    string
	whole bool // the caller sees every issue with usage
	// found are the groups whose sum is complete, at most twice as many as an answer has.
	found []UsageGroup
	// groups are those that are being added up, at most as many as most.
	groups map[string]*Usage
	most   int
	seen   map[storage.ID]bool // issues and sessions
}

// add adds to the sum of a group.
func (q *usageQuery) add(group string, u *Usage) error {
	sum := q.groups[group]
	if sum == nil {
		if len(q.groups) >= q.most {
			return Conflict(fmt.Sprintf("The usage of this time has more than %d groups.", q.most), "Ask for a shorter time with from and to, or for another groupBy.")
		}
		if q.groups == nil {
			q.groups = map[string]*Usage{}
		}
		sum = &Usage{}
		q.groups[group] = sum
	}
	sum.add(u)
	return nil
}

// find takes in a group with its sum.
func (q *usageQuery) find(group string, u *Usage) {
	if q.found = append(q.found, UsageGroup{Group: textOrNil(group), Usage: *u}); len(q.found) == 2*maxUsageGroups {
		q.found = q.largest()
	}
}

// sessions reads the sum that each session has of its own.
func (q *usageQuery) sessions() error {
	return sessions.Scan(q.v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		text := storedUsage(rec)
		if text == nil {
			return true, nil
		}
		if seen, err := q.v.canViewSession(rec); err != nil || !seen {
			return true, err
		}
		var u Usage
		if err := json.Unmarshal(text, &u); err != nil {
			return false, fmt.Errorf("decode a session's usage: %w", err)
		}
		q.find(string(storedText(rec.JSON(), "id")), &u)
		return true, nil
	})
}

// sums reads kept sums, of which each group has one.
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
		if !q.whole { // groups are issues
			issue, _ := storage.ParseID(group)
			if seen, err := q.v.hasIssue(issue); err != nil || !seen {
				return true, err
			}
		}
		u, _, err := parseUsage(value)
		q.find(group, &u)
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
	return q.add(group, u)
}

// includes reports whether usage is to be counted: the caller sees its session or, if that was
// deleted, its issue. Where groups are issues or sessions, these must be there.
func (q *usageQuery) includes(o *usageOrigin) (bool, error) {
	switch {
	case q.by == "issue":
		return q.sees(o.issue, q.v.hasIssue)
	case q.whole && q.by != "session":
		return true, nil
	}
	return q.sees(o.session, func(id storage.ID) (seen bool, err error) {
		found, err := sessions.Record(q.v, sessionKey(id), func(rec storage.Record) (err error) {
			seen, err = q.v.canViewSession(rec)
			return err
		})
		if err == nil && !found && q.by != "session" { // retention has deleted the session
			seen, err = q.v.hasIssue(o.issue)
		}
		return seen, err
	})
}

// sees decides on an issue or a session, and remembers the decision for a while: its usage of a day
// comes together.
func (q *usageQuery) sees(id storage.ID, decide func(storage.ID) (bool, error)) (bool, error) {
	if seen, known := q.seen[id]; known {
		return seen, nil
	}
	seen, err := decide(id)
	if len(q.seen) >= maxUsageSeen {
		clear(q.seen)
	}
	if q.seen == nil {
		q.seen = map[storage.ID]bool{}
	}
	q.seen[id] = seen
	return seen, err
}

// sorted returns the groups in their order.
func (q *usageQuery) sorted() []UsageGroup {
	for group, u := range q.groups {
		q.find(group, u)
	}
	if q.found = q.largest(); q.by == "month" {
		slices.SortFunc(q.found, func(a, b UsageGroup) int { return cmp.Compare(*a.Group, *b.Group) })
	}
	return q.found
}

// largest returns the most expensive groups in order.
func (q *usageQuery) largest() []UsageGroup {
	groups := q.found
	slices.SortFunc(groups, func(a, b UsageGroup) int {
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
