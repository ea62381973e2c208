package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shelf is an archive with backups, whose files are made up.
type shelf struct {
	t   *testing.T
	a   *Archive
	now time.Time
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{t, NewArchive(InDir(t.TempDir()), nil), time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)}
}

// add makes a backup that a clock calls so many hours from now, whose shard is at an index.
func (s *shelf) add(cluster string, hours int, index uint64) string {
	s.t.Helper()
	m := manifestOf(cluster, s.now.Add(time.Duration(hours)*time.Hour))
	m.Files[1].Index = index
	m.Files[1].SHA256 = fmt.Sprintf("%064x", index)
	file := filepath.Join(s.a.place.Dir(), s.a.shardName(&m.Files[1]))
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = os.WriteFile(file, []byte("x"), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	name, err := (&taken{Taking: Taking{To: s.a}}).finish(s.t.Context(), m)
	if err != nil {
		s.t.Fatal(err)
	}
	return name
}

// The logs say which backup is the newest, whatever time a clock gave it.
func TestArchive_NewestByTheLogs(t *testing.T) {
	t.Parallel()
	type backup struct {
		cluster string
		hours   int
		index   uint64
	}
	for what, c := range map[string]struct {
		backups []backup
		newest  int // index in backups
		later   []int
	}{
		"one":                        {[]backup{{"a", -1, 5}}, 0, nil},
		"by time":                    {[]backup{{"a", -2, 5}, {"a", -1, 6}}, 1, nil},
		"unchanged":                  {[]backup{{"a", -2, 5}, {"a", -1, 5}}, 1, nil},
		"a time in the future":       {[]backup{{"a", 900, 5}, {"a", -1, 6}}, 1, []int{0}},
		"a future that has passed":   {[]backup{{"a", -1, 5}, {"a", -2, 6}}, 1, []int{0}},
		"only the future is newer":   {[]backup{{"a", -1, 5}, {"a", 900, 6}}, 1, nil},
		"another cluster":            {[]backup{{"a", -2, 900}, {"b", -1, 6}}, 1, nil},
		"another cluster's future":   {[]backup{{"a", 900, 900}, {"a", -3, 7}, {"b", -1, 6}, {"b", -2, 5}}, 2, []int{0}},
		"all are of the future":      {[]backup{{"a", 900, 5}, {"b", 901, 4}}, 1, nil},
		"the clock was ahead thrice": {[]backup{{"a", 10, 3}, {"a", 30, 4}, {"a", 20, 5}, {"a", -9, 6}, {"a", -8, 7}}, 4, []int{0, 2, 1}},
	} {
		s := newShelf(t)
		var names, later []string
		for _, b := range c.backups {
			names = append(names, s.add(b.cluster, b.hours, b.index))
		}
		for _, i := range c.later {
			later = append(later, names[i])
		}
		r := &Restoring{From: s.a, Now: func() time.Time { return s.now }}
		m, _, passed, err := r.choose(t.Context())
		if err != nil || s.a.manifestName(m.Moment) != names[c.newest] || !slices.Equal(passed, later) {
			t.Errorf("%s: %+v is the newest, %q are later, %v", what, m, passed, err)
		}
	}
}

// A backup that can't be read is passed over only if its time is earlier.
func TestArchive_NewestIsNotGuessed(t *testing.T) {
	t.Parallel()
	for broken := range 2 {
		s := newShelf(t)
		names := []string{s.add("a", -2, 5), s.add("a", -1, 6)}
		if err := os.WriteFile(filepath.Join(s.a.place.Dir(), names[broken]), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := &Restoring{From: s.a, Now: func() time.Time { return s.now }}
		m, _, _, err := r.choose(t.Context())
		if (err == nil) != (broken == 0) || err == nil && s.a.manifestName(m.Moment) != names[1] || err != nil && !strings.Contains(err.Error(), "--backup") {
			t.Errorf("%d is damaged: %+v, %v", broken, m, err)
		}
		if r.Backup = names[1-broken]; err != nil {
			if _, _, _, err := r.choose(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Backups with times in the future do not displace those of today, nor stay for ever.
func TestPrune_AfterAWrongClock(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var names []string
	take := func(hours int, index uint64) string {
		t.Helper()
		name := s.add("a", hours, index)
		names = append(names, name)
		tk := &taken{Taking: Taking{To: s.a, Keep: 2, Now: func() time.Time { return s.now }}}
		if err := tk.prune(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	expect := func(when string, want ...string) {
		t.Helper()
		got, err := s.a.List(t.Context())
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: there are %q, not %q, %v", when, got, want, err)
		}
		for _, name := range got {
			m, err := s.a.Open(t.Context(), name)
			if err == nil {
				_, err = s.a.place.Size(t.Context(), s.a.shardName(&m.Files[1]))
			}
			if err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		files, err := s.a.place.List(t.Context(), shardDir)
		if err != nil || len(files) != len(got) {
			t.Errorf("%s: %d files of %d backups, %v", when, len(files), len(got), err)
		}
	}
	for i := range 3 { // a clock is far ahead
		take(9000+i, uint64(10+i))
	}
	expect("with the wrong clock", names[1], names[2])
	take(-9, 13)
	expect("after one", names[2], names[3])
	take(-8, 14)
	take(-7, 15)
	expect("after three", names[4], names[5])

	// A node's data was put back: its log goes on behind an earlier entry.
	take(-6, 3)
	take(-5, 4)
	expect("after the data was put back", names[4], names[5], names[6], names[7])
	take(-4, 5)
	expect("later", names[4], names[5], names[7], names[8])
	if _, err := s.a.Open(t.Context(), names[0]); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
