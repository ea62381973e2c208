package backup

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cluster"
)

// A clock that was an hour ahead is set back. The archive claims no moment that the log has not reached,
// also of a shard without writes and after a fail-over.
func TestLogArchiver_GoesBackWithTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(0, 3, 10)
		b.write(1, 5, 10)
		m := b.backUp()
		b.change(func() { b.ahead = time.Hour })
		b.run()
		b.write(1, 5, 10)
		b.pass(2*time.Minute + time.Second)
		if late := b.reach(m); late > -50*time.Minute {
			t.Fatalf("with the wrong clock the archive is %s behind", late)
		}
		b.change(func() { b.ahead = 0 })
		within := func(when string) {
			t.Helper()
			b.pass(2 * time.Minute)
			if late := b.reach(m); late < 0 || late > time.Minute {
				t.Errorf("%s the archive is %s behind", when, late)
			}
			for n := range b.nodes {
				if status := b.nodes[n].Status(); time.Since(status.Reach) > 2*time.Minute || status.Reach.After(time.Now()) {
					t.Errorf("%s node %d says that the logs are archived up to %s, %s ago", when, n, status.Reach, time.Since(status.Reach))
				}
			}
		}
		within("without a write")
		b.write(1, 5, 10)
		within("after a write")
		b.change(func() { b.owner = [2]int{1, 0} })
		within("after a fail-over")
		b.stop[1]()
		b.restart(1, time.Minute)
		within("after a restart")
	})
}

// at returns an entry that was appended so many seconds after noon.
func at(index uint64, second int) cluster.LogEntry {
	return cluster.LogEntry{Index: index, Term: 1, AppendedAt: noon.Add(time.Duration(second) * time.Second), Command: true, Data: []byte{1}}
}

// A moment that a clock has shown twice is refused, wherever the step is. The step of another owner's
// clock is not.
func TestRestoring_RefusesAMomentThatWasTwice(t *testing.T) {
	t.Parallel()
	type entries = []cluster.LogEntry
	for what, c := range map[string]struct {
		log     []entries // by segment
		at      int       // the moment restored
		late    int64
		refused bool
	}{
		"no step":                        {[]entries{{at(1, 1), at(2, 10)}, {at(3, 20)}}, 5, 0, false},
		"a small step":                   {[]entries{{at(1, 1), at(2, 10)}, {at(3, 4), at(4, 5), at(5, 12)}, {at(6, 20)}}, 5, 2, false},
		"in the segment of the moment":   {[]entries{{at(1, 1), at(2, 3600), at(3, 5)}}, 60, 0, true},
		"between segments":               {[]entries{{at(1, 1), at(2, 3600)}, {at(3, 30), at(4, 90)}}, 60, 0, true},
		"in a later segment":             {[]entries{{at(1, 1), at(2, 3600)}, {at(3, 3700), at(4, 30)}}, 60, 0, true},
		"behind the moment":              {[]entries{{at(1, 1), at(2, 100)}, {at(3, 3600)}, {at(4, 70)}}, 60, 0, false},
		"segments overlap":               {[]entries{{at(1, 1), at(2, 30), at(3, 3600)}, {at(2, 30), at(3, 3600), at(4, 3700)}}, 60, 0, false},
		"only Raft's own entries are it": {[]entries{{at(1, 1), at(2, 3600)}, {{Index: 3, Term: 2, AppendedAt: noon}}}, 60, 0, false},
	} {
		a := archives(t)["plain"]
		var chain []segment
		for _, some := range c.log {
			chain = append(chain, keepSegment(t, a, 1, some, some[len(some)-1].AppendedAt))
		}
		r := &Restoring{From: a, At: noon.Add(time.Duration(c.at) * time.Second)}
		o, err := a.openSegment(t.Context(), &chain[0])
		if err != nil {
			t.Fatal(err)
		}
		var e cluster.LogEntry
		for !e.AppendedAt.After(r.At) {
			if err := o.read(&e); err != nil {
				t.Fatal(err)
			}
		}
		late, err := r.finish(t.Context(), &cluster.Creation{}, &e, o, &logReader{logs: &logs{archive: a}, chain: chain[1:], opened: map[string]bool{}})
		if late != c.late || errors.Is(err, ErrOutOfReach) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %d entries are late, %v", what, late, err)
		}
	}
}

// The names of the segments say so before anything is restored. A backup behind the step has no such
// moments.
func TestLogs_SetBack(t *testing.T) {
	t.Parallel()
	of := logOf{logCluster, 1}
	span := func(first, last uint64, from, until int) segment {
		return segment{cluster: of.cluster, shard: of.shard, first: first, last: last, from: noon.Add(time.Duration(from) * time.Second), until: noon.Add(time.Duration(until) * time.Second)}
	}
	l := &logs{segments: map[logOf][]segment{of: {span(1, 4, 0, 60), span(5, 8, 3600, 3660), span(9, 12, 30, 90), span(13, 16, 95, 150)}}}
	for _, c := range []struct {
		image   uint64
		at      int
		refused bool
	}{{1, -5, false}, {1, 31, true}, {1, 120, true}, {6, 120, false}, {9, 120, false}, {1, 4000, false}} {
		m := &Manifest{ClusterID: logCluster, Files: []File{{Shard: 0, Index: 1}, {Shard: 1, Index: c.image}}}
		if err := l.setBack(t.Context(), m, noon.Add(time.Duration(c.at)*time.Second)); errors.Is(err, ErrOutOfReach) != c.refused {
			t.Errorf("%d seconds behind the image of %d: %v", c.at, c.image, err)
		}
	}
}

// The claim about the most entries counts: those of before the step are too high.
func TestLogs_ReachesWhatTheLastPassSaw(t *testing.T) {
	t.Parallel()
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	of := logOf{logCluster, 1}
	part := func(first, last uint64, until int) segment {
		return segment{cluster: of.cluster, shard: of.shard, first: first, last: last, from: minute(until - 1), until: minute(until)}
	}
	marked := func(logs ...archivedLog) (marks []mark) {
		for _, l := range logs {
			l.Shard = 1
			marks = append(marks, mark{Logs: []archivedLog{l}})
		}
		return marks
	}
	m := &Manifest{ClusterID: logCluster, Moment: minute(1), Files: []File{{}, {Shard: 1, Index: 4}}}
	for what, c := range map[string]struct {
		segments []segment
		marks    []mark
		want     int
	}{
		"nothing":            {nil, nil, 1},
		"a segment":          {[]segment{part(3, 8, 3)}, nil, 3},
		"a later mark":       {[]segment{part(3, 8, 3)}, marked(archivedLog{Last: 8, At: minute(5), Pass: 2}), 5},
		"an earlier mark":    {[]segment{part(3, 8, 3), part(9, 12, 6)}, marked(archivedLog{Last: 8, At: minute(5), Pass: 2}), 6},
		"of older programs":  {[]segment{part(3, 8, 3)}, marked(archivedLog{Last: 8, At: minute(5)}, archivedLog{Last: 8, At: minute(4)}), 5},
		"set back":           {[]segment{part(3, 8, 70)}, marked(archivedLog{Last: 8, At: minute(9), Pass: 3}, archivedLog{Last: 8, At: minute(71), Pass: 2}), 9},
		"set back, in parts": {[]segment{part(3, 8, 70), part(9, 12, 9)}, marked(archivedLog{Last: 8, At: minute(71), Pass: 2}), 9},
		"a gap":              {[]segment{part(3, 8, 3), part(20, 24, 9)}, marked(archivedLog{Last: 24, At: minute(9), Lost: 8, LostAt: minute(5), Pass: 9}), 5},
		"set back in a gap":  {[]segment{part(3, 8, 70), part(20, 24, 9)}, marked(archivedLog{Last: 24, At: minute(9), Lost: 8, LostAt: minute(71), Pass: 9}), 8},
	} {
		l := &logs{segments: map[logOf][]segment{of: c.segments}, marks: map[string][]mark{logCluster: c.marks}}
		if got, err := l.until(t.Context(), m, &m.Files[1]); !got.Equal(minute(c.want)) || err != nil {
			t.Errorf("%s: it reaches %s, not %s, %v", what, got, minute(c.want), err)
		}
	}
}
