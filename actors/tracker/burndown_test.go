package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

func (w *issueFixture) burndown(cycle string) BurndownSeries {
	w.Helper()
	reply, err := w.ask(&w.ann, Burndown, &BurndownIn{CycleID: cycle})
	if err != nil {
		w.Fatal(err)
	}
	return decode[BurndownSeries](w, reply.Body)
}

// addCycle writes the fields of a cycle that a burndown reads.
func (w *issueFixture) addCycle(id storage.ID, body string) {
	w.Helper()
	w.run(&w.ann, NewCommand[None, None]("cycle", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		value := append(storage.AppendHeader(nil, storage.Header{Version: 1}), body...)
		return Reply{}, tx.Writer().SetValue(cycleTable, storage.Key(nil).DescID(id), value)
	}), &None{})
}

// The fixture's clock starts on 2026-11-20.
func TestBurndown_FollowsTheSpanOfItsCycle(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		cycle string
		days  int // days after the issue was added, and closed a day later
		want  string
	}{
		"no dates":                {`{"startsAt":null,"endsAt":null}`, 2, "[{2026-11-20 1 1} {2026-11-21 1 0} {2026-11-22 1 0}]"},
		"starts before any issue": {`{"startsAt":"2026-11-18T12:00:00.000Z"}`, 1, "[{2026-11-18 0 0} {2026-11-19 0 0} {2026-11-20 1 1} {2026-11-21 1 0}]"},
		"starts after an issue":   {`{"startsAt":"2026-11-21T00:00:00.000Z","endsAt":null}`, 2, "[{2026-11-21 1 0} {2026-11-22 1 0}]"},
		"has ended":               {`{"startsAt":"2026-11-19T00:00:00.000Z","endsAt":"2026-11-20T23:59:59.999Z"}`, 9, "[{2026-11-19 0 0} {2026-11-20 1 1}]"},
		"ended before any issue":  {`{"endsAt":"2026-11-01T00:00:00.000Z"}`, 1, "[]"},
		"is to come":              {`{"startsAt":"2027-01-01T00:00:00.000Z","endsAt":"2027-02-01T00:00:00.000Z"}`, 1, "[]"},
		"ends before it starts":   {`{"startsAt":"2026-11-20T00:00:00.000Z","endsAt":"2026-11-10T00:00:00.000Z"}`, 1, "[]"},
		"ends later than today":   {`{"endsAt":"2027-02-01T00:00:00.000Z"}`, 1, "[{2026-11-20 1 1} {2026-11-21 1 0}]"},
		"was long ago":            {`{"startsAt":"0000-01-01T00:00:00.000Z","endsAt":"0000-01-01T00:00:00.000Z"}`, 1, "[{0000-01-01 0 0}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			id := storage.ID{0: 1, 6: 0x70, 15: 3}
			w.addCycle(id, row.cycle)
			issue := w.create(CreateIssueIn{IssueFields: IssueFields{CycleID: Some(id.String()), Estimate: Some[int64](3)}})
			w.now = w.now.AddDate(0, 0, 1)
			w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}})
			w.now = w.now.AddDate(0, 0, row.days-1)
			got := w.burndown(id.String())
			if got.Total != 1 || got.TotalEstimate != 3 || fmt.Sprint(got.Series) != row.want {
				t.Errorf("got %v, want %s", got, row.want)
			}
		})
	}
}

func TestBurndown_GivesTheNewestDays(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{IssueFields: IssueFields{CycleID: Some("c")}})
	w.now = w.now.AddDate(20, 0, 0)
	got := w.burndown("c").Series
	if len(got) != maxBurndownDays || got[0].Scope != 1 || got[len(got)-1].Date != "2046-11-20" {
		t.Errorf("%d days, from %v to %v", len(got), got[0], got[len(got)-1])
	}
	id := storage.ID{0: 1, 15: 3}
	w.addCycle(id, `{"startsAt":"1990-01-01T00:00:00.000Z"}`)
	if got := w.burndown(id.String()).Series; len(got) != maxBurndownDays || got[0].Scope != 0 {
		t.Errorf("%d days of an old cycle", len(got))
	}
}

// A change that is undone on the same day leaves no trace.
func TestBurndown_OfADayItsEndCounts(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{CycleID: Some("c1")}})
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{CycleID: Some("c2"), Status: Some(StatusDone)}})
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Status: Some(StatusTodo)}})
	if got := fmt.Sprint(w.burndown("c1"), w.burndown("c2")); got != "{0 0 []} {1 0 [{2026-11-20 1 1}]}" {
		t.Error(got)
	}
	w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{IsDraft: Some(true)}})
	if got := fmt.Sprint(w.burndown("c2")); got != "{0 0 []}" {
		t.Error(got)
	}
	for _, table := range []storage.TableID{burndownTable, burndownByIssue} {
		v := storage.NewView(w.db, 1, w.workspace)
		if has, err := v.Has(table, nil); has || err != nil {
			t.Errorf("rows of %d are left: %v", table, err)
		}
	}
	w.verify()
}

// The number of cycles that an issue has rows in is limited; deleting it removes all of
// them.
func TestBurndown_BoundsTheCyclesOfAnIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{CycleID: Some("c0")}})
	for i := range maxBurndownCycles + 4 {
		w.now = w.now.AddDate(0, 0, 1)
		w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{CycleID: Some(fmt.Sprint("c", i+1))}})
	}
	rows := func(table storage.TableID) (n int) {
		v := storage.NewView(w.db, 1, w.workspace)
		if err := v.Rows(table, nil, nil, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if a, b := rows(burndownTable), rows(burndownByIssue); a != maxBurndownCycles || b != maxBurndownCycles {
		t.Errorf("there are %d and %d rows, want %d", a, b, maxBurndownCycles)
	}
	if got := w.burndown("c4"); len(got.Series) != 0 {
		t.Errorf("the cycle left first is still told of: %v", got)
	}
	if got := w.burndown("c5"); len(got.Series) == 0 {
		t.Error("a cycle is forgotten too early")
	}
	w.verify()
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if a, b := rows(burndownTable), rows(burndownByIssue); a+b != 0 {
		t.Errorf("%d and %d rows are left", a, b)
	}
	w.verify()
}

func TestBurndown_BoundsTheDaysOfARow(t *testing.T) {
	t.Parallel()
	var changes []burndownChange
	for day := range int64(maxBurndownChanges + 101) {
		changes = withChange(changes, burndownChange{20_000 + day, []burndownState{burndownOpen, burndownOut}[day%2]})
	}
	if n := len(changes); n > maxBurndownChanges || n < maxBurndownChanges-1 || changes[0].state == burndownOut || changes[n-1].day != 20_000+maxBurndownChanges+100 {
		t.Errorf("%d changes, from %v to %v", n, changes[0], changes[n-1])
	}
	now := aggregated{team: storage.ID{3: 4}, restricted: true}
	rec, estimate, walk, err := parseBurndown(now.appendBurndown(nil, 77, changes))
	if err != nil || estimate != 77 || rec.Header() != now.burndownHeader() {
		t.Fatalf("%v, %d, %v", rec.Header(), estimate, err)
	}
	for i := 0; ; i++ {
		more, err := walk.next()
		if err != nil {
			t.Fatal(err)
		}
		if !more && i == len(changes) {
			break
		}
		if !more || walk.burndownChange != changes[i] {
			t.Fatalf("change %d is %v", i, walk.burndownChange)
		}
	}
}

func TestBurndownDay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1970-01-01T00:00:00Z": 0, "1970-01-01T23:59:59Z": 0, "1970-01-02T00:00:00Z": 1, "1969-12-31T23:59:59Z": -1, "1969-12-31T00:00:00Z": -1,
		"2026-11-20T23:30:00-01:00": 20778,
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := burndownDay(at); got != want {
			t.Errorf("%s is day %d, want %d", text, got, want)
		}
	}
}

// Sums of estimates are exact internally, and limited in answers to what a JSON number
// represents exactly.
func TestIssueAnalytics_SumsOfHugeEstimates(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	var ids []IssueID
	for range 2100 {
		in := &CreateIssueIn{Title: "t", IssueFields: IssueFields{Estimate: Some[int64](maxEstimateTotal), CycleID: Some("c")}}
		reply, err := w.buffer.Run(CreateIssue, w.request(&w.ann), in, w.now)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, decode[Issue](t, reply.Body).ID)
	}
	w.commit()
	w.verify()
	if got := w.burndown("c"); got.Total != 2100 || got.TotalEstimate != maxEstimateTotal {
		t.Errorf("burndown of %d, estimates %d", got.Total, got.TotalEstimate)
	}
	if got := w.groups("status"); got != "backlog 2100 9007199254740991" {
		t.Error(got)
	}
	for _, id := range ids[1:] {
		w.patch(id, IssuePatch{IssueFields: IssueFields{Estimate: Some[int64](1), CycleID: Opt[string]{Set: true, Null: true}}})
	}
	w.patch(ids[0], IssuePatch{IssueFields: IssueFields{Estimate: Opt[int64]{Set: true, Null: true}}})
	if got := w.groups("cycleId"); got != "null 2099 2099, c 1 0" {
		t.Error(got)
	}
	w.verify()
}

// groups returns a grouping as ann sees it.
func (w *issueFixture) groups(by string) string {
	w.Helper()
	reply, err := w.ask(&w.ann, IssueAnalytics, &IssueAnalyticsIn{GroupBy: by})
	if err != nil {
		w.Fatal(err)
	}
	var all []string
	for _, g := range decode[IssueGroups](w, reply.Body).Groups {
		group := "null"
		if g.Group != nil {
			group = *g.Group
		}
		all = append(all, fmt.Sprint(group, " ", g.Count, " ", g.EstimateTotal))
	}
	return strings.Join(all, ", ")
}

// More aggregates than the write buffer caches are read again from their rows.
func TestIssueAnalytics_MoreAggregatesThanAreCached(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for round := range 2 {
		for i := range maxCounters + 200 {
			in := &CreateIssueIn{Title: "t", IssueFields: IssueFields{AssigneeID: Some(fmt.Sprint("a", i)), Status: Some(issueStatuses[round])}}
			if _, err := w.buffer.Run(CreateIssue, w.request(&w.ann), in, w.now); err != nil {
				t.Fatal(err)
			}
			if i%100 == 99 {
				w.commit()
			}
		}
	}
	w.commit()
	if n := len(w.buffer.counters.known); n > maxCounters+100 {
		t.Errorf("%d counters are kept", n)
	}
	w.verify()
	if got := w.groups("status"); got != "backlog 1224 0, triage 1224 0" {
		t.Error(got)
	}
}

// If there are too many groups, the largest are returned.
func TestIssueGroups_KeepsTheLargest(t *testing.T) {
	t.Parallel()
	var g issueGroups
	for i := range 5 * maxIssueGroups / 2 {
		g.add(fmt.Sprintf("%06d", i), amount{n: uint64(1 + i%7)})
	}
	g.add("", amount{n: 1e6})
	got := g.largest()
	if len(got) != maxIssueGroups || got[0].Group != nil || *got[1].Group != "000006" || got[1].Count != 7 {
		t.Errorf("%d groups, first %+v", len(got), got[:2])
	}
	if !slices.IsSortedFunc(got, func(a, b IssueGroup) int { return int(b.Count - a.Count) }) {
		t.Error("out of order")
	}
}

func TestVerify_TellsWhatIsWrongWithAnalytics(t *testing.T) {
	t.Parallel()
	row := func(t *Issue, cycle string) storage.Key {
		return burndownKey(storage.Key(nil).Str(cycle), t.id())
	}
	for want, harm := range map[string]func(tx *Tx, t *Issue) error{
		"says 2 issues and estimates of 3, there are 1 and 3": func(tx *Tx, t *Issue) error {
			return tx.count(&aggregated{}, &aggregated{team: t.team(), counts: true, state: aggregateState(t.Status, t.Priority)})
		},
		"says 1 issues and estimates of 2, there are 0 and 0": func(tx *Tx, t *Issue) error {
			a, err := tx.buffer.counters.change(tx, counterKey{table: issueAggregateTable, kind: aggregateProject, text: "p", subject: t.team()})
			*a = amount{n: 1, sum: 2}
			return err
		},
		"1 aggregates are missing": func(tx *Tx, t *Issue) error {
			a, err := tx.buffer.counters.change(tx, counterKey{table: issueAggregateTable, kind: aggregateCycle, text: "c", subject: t.team()})
			*a = amount{}
			return err
		},
		"key of an aggregate": func(tx *Tx, _ *Issue) error {
			return tx.Writer().SetValue(issueAggregateTable, []byte{9, 9}, make([]byte, amountLen))
		},
		"aggregate of 1 bytes": func(tx *Tx, t *Issue) error {
			k := counterKey{table: issueAggregateTable, kind: aggregateProject, text: "p", subject: t.team()}
			return tx.Writer().SetValue(issueAggregateTable, k.appendTo(nil), []byte{1})
		},
		"the burndown of its cycle": func(tx *Tx, t *Issue) error { return tx.Writer().DeleteValue(burndownTable, row(t, "c")) },
		"leads to a burndown that is not there": func(tx *Tx, t *Issue) error {
			return tx.Writer().DeleteValue(burndownTable, row(t, "c"))
		},
		"its issue does not lead to it": func(tx *Tx, t *Issue) error { return tx.dropAll(burndownByIssue) },
		"its issue is not there": func(tx *Tx, t *Issue) error {
			a := aggregatedOf(t, false)
			return tx.Writer().SetValue(burndownTable, row(&Issue{ID: IssueID(storage.ID{1: 1}.String())}, "c"), a.appendBurndown(nil, 0, []burndownChange{{1, burndownOpen}}))
		},
		"says state 2 and estimate 3, its issue state 1 and estimate 3": func(tx *Tx, t *Issue) error {
			a := aggregatedOf(t, false)
			return tx.Writer().SetValue(burndownTable, row(t, "c"), a.appendBurndown(nil, 3, []burndownChange{{1, burndownClosed}}))
		},
		"says state 1 and estimate 0, its issue state 0": func(tx *Tx, t *Issue) error {
			a := aggregatedOf(t, false)
			return tx.Writer().SetValue(burndownTable, row(t, "d"), a.appendBurndown(nil, 0, []burndownChange{{1, burndownOpen}}))
		},
		"is not a change from day 1": func(tx *Tx, t *Issue) error {
			a := aggregatedOf(t, false)
			return tx.Writer().SetValue(burndownTable, row(t, "c"), a.appendBurndown(nil, 3, []burndownChange{{1, burndownOpen}, {2, burndownOpen}}))
		},
		"its header says": func(tx *Tx, t *Issue) error {
			a := aggregatedOf(t, true)
			return tx.Writer().SetValue(burndownTable, row(t, "c"), a.appendBurndown(nil, 3, []burndownChange{{1, burndownOpen}}))
		},
		"has 0 changes": func(tx *Tx, t *Issue) error {
			a := aggregatedOf(t, false)
			return tx.Writer().SetValue(burndownTable, row(t, "c"), a.appendBurndown(nil, 3, nil))
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			issue := w.create(CreateIssueIn{IssueFields: IssueFields{CycleID: Some("c"), Estimate: Some[int64](3)}})
			w.verify()
			w.run(&w.ann, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, harm(tx, &issue.Issue)
			}), &None{})
			w.verifyFinds(want)
		})
	}
}

// dropAll removes the rows of a table.
func (tx *Tx) dropAll(table storage.TableID) error {
	var keys []storage.Key
	err := tx.Rows(table, nil, nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, append(storage.Key(nil), fields...))
		return true, nil
	})
	for _, key := range keys {
		if err == nil {
			err = tx.Writer().DeleteValue(table, key)
		}
	}
	return err
}

// The burndowns of a file have the bounds and the states that those of the service have.
func TestImport_HoldsBurndownsToTheirIssue(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const team = "01935000-0000-7000-8000-0000000000bb"
	if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
		t.Fatal(err)
	}
	if err := w.line("issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1")); err != nil {
		t.Fatal(err)
	}
	line := func(cycle, estimate int, days string) error {
		return w.line("burndown", fmt.Sprintf(`{"issueId":"01935001-0001-7000-8000-000000000000","cycleId":"c%d","estimate":%d,"days":[%s]}`, cycle, estimate, days))
	}
	const open, out = `{"date":"2026-01-02","state":"open"}`, `{"date":"2026-01-03","state":"out"}`
	wantLineFault(t, line(0, 0, out), "another state each")
	wantLineFault(t, line(0, 0, open+`,{"date":"2026-01-03","state":"open"}`), "another state each")
	wantLineFault(t, line(0, 0, open), "must end with the state")
	wantLineFault(t, line(0, 1, open+","+out), "what it adds")
	for cycle := range maxBurndownCycles {
		if err := line(cycle, 0, open+","+out); err != nil {
			t.Fatal(err)
		}
	}
	wantLineFault(t, line(maxBurndownCycles, 0, open+","+out), "100 cycles")
	if err := line(0, 0, open+","+out); err != nil {
		t.Errorf("a cycle that is known: %v", err)
	}
	w.verify()
}
