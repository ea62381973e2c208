package tracker

import (
	"fmt"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// BurndownIn identifies a cycle.
type BurndownIn struct {
	CycleID string `query:"cycleId" rules:"required,min=1,max=255"`
}

// BurndownSeries is a cycle's burndown: the number of its present issues, the sum of
// their estimates, and the state at the end of each day.
type BurndownSeries struct {
	Total         int64          `json:"total"`
	TotalEstimate int64          `json:"totalEstimate"`
	Series        []BurndownDate `json:"series"`
}

// BurndownDate is the number of issues that were in a cycle at the end of a day, and of
// those that were not closed.
type BurndownDate struct {
	Date      string `json:"date"`
	Scope     int64  `json:"scope"`
	Remaining int64  `json:"remaining"`
}

// Burndown returns the burndown of a cycle, from the recorded changes of the issues
// that the caller may see (Decision 25).
var Burndown = NewQuery[BurndownIn, BurndownSeries]("Burndown", "Show the burndown of a cycle", Needs{Read, "issues"}, burndown, FromSnapshot, TakesATurn)

// maxBurndownDays limits a series to the newest days.
const maxBurndownDays = 3660

func burndown(v *View, in *BurndownIn) (Reply, error) {
	start, end, err := cycleSpan(v, in.CycleID)
	if err != nil {
		return Reply{}, err
	}
	last := burndownDay(v.Now())
	if end != nil {
		last = min(last, burndownDay(end.Time()))
	}
	s := burndownSum{oldest: last - maxBurndownDays + 1, last: last, none: true}
	if err := v.sumBurndown(in.CycleID, &s); err != nil {
		return Reply{}, fmt.Errorf("add up a burndown: %w", err)
	}
	if start != nil {
		s.first, s.none = burndownDay(start.Time()), false
	}
	return jsonReply(Done, BurndownSeries{Total: int64(s.now.n), TotalEstimate: s.now.shownSum(), Series: s.series()})
}

// cycleSpan returns the start and end of a cycle; nil if they are not known.
func cycleSpan(v *View, cycle string) (start, end *Timestamp, err error) {
	id, ok := storage.ParseID(cycle)
	if !ok {
		return nil, nil, nil
	}
	value, err := v.Value(cycleTable, storage.Key(nil).DescID(id), nil)
	if err != nil || value == nil {
		return nil, nil, err
	}
	rec, err := storage.ParseRecord(value)
	if err != nil {
		return nil, nil, fmt.Errorf("read a cycle: %w", err)
	}
	var span struct {
		StartsAt *Timestamp `json:"startsAt"`
		EndsAt   *Timestamp `json:"endsAt"`
	}
	if err := json.Unmarshal(rec.JSON(), &span); err != nil {
		return nil, nil, fmt.Errorf("decode a cycle: %w", err)
	}
	return span.StartsAt, span.EndsAt, nil
}

// burndownSum adds up the rows of a cycle.
type burndownSum struct {
	oldest, last int64 // range of the days in a series
	first        int64 // first day of the series
	none         bool  // no issue was in the cycle by the last day
	now          amount
	// changes are the differences of scope and remaining from the previous day. Those
	// of all earlier days are added to the oldest.
	changes [maxBurndownDays]struct{ scope, remaining int64 }
}

// sumBurndown adds up the rows of the issues that the caller may see.
func (v *View) sumBurndown(cycle string, s *burndownSum) error {
	prefix := storage.Key(nil).Str(cycle)
	return v.Rows(burndownTable, prefix, nil, func(fields, value []byte) (bool, error) {
		rec, estimate, walk, err := parseBurndown(value)
		if err != nil {
			return false, err
		}
		if seen, err := v.canViewBurndown(rec, fields[len(prefix):]); err != nil || !seen {
			return err == nil, err
		}
		return true, s.add(estimate, walk)
	})
}

// canViewBurndown reports whether the caller may see the issue of a row. The row's own
// header decides unless the issue is restricted.
func (v *View) canViewBurndown(rec storage.Record, pk []byte) (seen bool, err error) {
	if rec.Flags()&issueRestricted == 0 {
		return v.canViewIssue(rec)
	}
	_, err = issues.Record(v, pk, func(rec storage.Record) (err error) {
		seen, err = v.canViewIssue(rec)
		return err
	})
	return seen, err
}

// add adds one issue.
func (s *burndownSum) add(estimate uint64, walk burndownWalk) error {
	state := burndownOut
	for {
		more, err := walk.next()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if walk.day <= s.last {
			if s.none || walk.day < s.first {
				s.first, s.none = walk.day, false
			}
			c := &s.changes[max(walk.day-s.oldest, 0)]
			c.scope += int64(boolInt(walk.state != burndownOut) - boolInt(state != burndownOut))
			c.remaining += int64(boolInt(walk.state == burndownOpen) - boolInt(state == burndownOpen))
		}
		state = walk.state
	}
	if state != burndownOut {
		s.now.add(amount{n: 1, sum: estimate})
	}
	return nil
}

// series returns the days from the first to the last.
func (s *burndownSum) series() []BurndownDate {
	series := []BurndownDate{}
	if s.none {
		return series
	}
	var scope, remaining int64
	for i, c := range s.changes {
		scope, remaining = scope+c.scope, remaining+c.remaining
		if day := s.oldest + int64(i); day >= s.first {
			date := time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly)
			series = append(series, BurndownDate{Date: date, Scope: scope, Remaining: remaining})
		}
	}
	return series
}
