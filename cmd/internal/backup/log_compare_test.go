package backup

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cluster"
)

// A moment behind the first entry that is another one in another segment is refused.
func TestLogs_RefusesTwoHistories(t *testing.T) {
	t.Parallel()
	// The history that was left has entries up to 30, and the other one differs from entry 16 on, ten minutes later.
	left := logEntries(1, 30, 10)
	other := slices.Clone(left[:15])
	for _, e := range logEntries(16, 50, 12) {
		e.AppendedAt = e.AppendedAt.Add(10 * time.Minute)
		other = append(other, e)
	}
	type of struct {
		entries     []cluster.LogEntry
		first, last int
	}
	for what, c := range map[string]struct {
		segments []of
		image    uint64
		at       int
		refused  bool
	}{
		"one history":                   {[]of{{left, 1, 10}, {left, 8, 20}, {left, 9, 12}, {left, 18, 30}}, 2, 30, false},
		"the chain has both":            {[]of{{left, 1, 10}, {left, 11, 30}, {other, 19, 50}}, 2, 650, true},
		"the longest has the entries":   {[]of{{left, 1, 10}, {left, 11, 20}, {left, 21, 30}, {other, 1, 50}}, 2, 650, true},
		"the entries that were left":    {[]of{{left, 1, 10}, {left, 11, 30}, {other, 5, 18}}, 2, 30, true},
		"only the longer one, at 18 s":  {[]of{{left, 1, 10}, {left, 11, 30}, {other, 5, 50}}, 2, 18, true},
		"before the first that differs": {[]of{{left, 1, 10}, {left, 11, 30}, {other, 5, 50}}, 2, 15, false},
		"an image of either":            {[]of{{left, 11, 30}, {other, 5, 50}}, 25, 640, true},
		"an image behind what differs":  {[]of{{left, 11, 30}, {other, 5, 32}, {other, 33, 50}}, 32, 640, false},
	} {
		for key, a := range archives(t) {
			for _, s := range c.segments {
				some := s.entries[s.first-1 : s.last]
				keepSegment(t, a, 1, some, some[len(some)-1].AppendedAt)
			}
			got, _, err := readLog(t, a, c.image, noon.Add(time.Duration(c.at)*time.Second))
			if refused := errors.Is(err, ErrOutOfReach); refused != c.refused || err != nil && !strings.Contains(err.Error(), "two histories") {
				t.Errorf("%s, %s: there are %d, %v", what, key, got, err)
			}
		}
	}
}

// After data was put back to an earlier state, all of the log is archived again, once.
func TestLogArchiver_TellsOfDataThatWasPutBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(1, 5, 10)
		b.backUp()
		b.run()
		b.write(1, 25, 10)
		b.pass(2*time.Minute + time.Second)
		b.stop[0]()
		b.stop[1]()
		b.change(func() { b.entries[1] = b.entries[1][:15] })
		b.write(1, 3, 10)
		before, _ := b.nodes[0].To.segments(t.Context())
		b.restart(0, time.Minute)
		b.restart(1, time.Minute)
		for range 5 {
			b.write(1, 1, 10)
			b.pass(time.Minute)
		}
		if status := b.nodes[0].Status(); status.Lost != 1 || status.Failures != 0 {
			t.Errorf("%+v", status)
		}
		after, _ := b.nodes[0].To.segments(t.Context())
		if i := slices.IndexFunc(after, func(s segment) bool { return s.shard == 1 && s.first == 1 && s.last >= 18 }); i < 0 || len(after) > len(before)+6 {
			t.Errorf("there are %+v", after)
		}
	})
}
