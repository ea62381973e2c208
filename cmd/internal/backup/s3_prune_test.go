package backup_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/internal/testkit/bucket"
)

// hookedPlace calls hook before a manifest gets its name.
type hookedPlace struct {
	backup.Place
	hook func()
}

func (p *hookedPlace) Draft(folder string) (backup.Draft, error) {
	d, err := p.Place.Draft(folder)
	return &hookedDraft{d, p}, err
}

type hookedDraft struct {
	backup.Draft
	to *hookedPlace
}

func (d *hookedDraft) Keep(ctx context.Context, name string) error {
	if strings.HasPrefix(name, "backup-") {
		d.to.hook()
	}
	return d.Draft.Keep(ctx, name)
}

// slowly takes a backup that has all of its files when during is called, and no manifest yet.
func (s *service) slowly(place backup.Place, during func()) (name string, err error) {
	s.t.Helper()
	name, _, err = backup.Take(s.t.Context(), backup.Taking{Client: client(s.t, s.url), To: backup.NewArchive(&hookedPlace{place, during}, nil), Keep: 1, Now: time.Now})
	return name, err
}

// A backup to a bucket keeps the files that it uses again, also if another one removes the backup that
// had them before.
func TestS3_KeepsTheFilesOfABackupUnderWay(t *testing.T) {
	t.Parallel()
	s, b := startService(t, 1), bucket.New(t)
	place := hurried(t, b)
	to := backup.NewArchive(place, nil)
	first, _ := s.takeTo(to, 0)
	b.Age(25 * time.Hour)
	second := ""
	slow, err := s.slowly(place, func() {
		s.write("A change")
		second, _ = s.takeTo(to, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{slow, second} {
		if _, err := backup.Drill(t.Context(), backup.Drilling{From: to, Backup: name, Now: time.Now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	names, err := to.List(t.Context())
	if err != nil || slices.Contains(names, first) {
		t.Errorf("there are %q, %v", names, err)
	}
	if removed := b.Names("some/where/removed/"); !slices.Equal(removed, []string{"some/where/removed/" + first}) {
		t.Errorf("%q were removed", removed)
	}

	// A day later nothing is left of what was removed.
	used := map[string]bool{}
	for _, change := range []string{"A further change", "The last one"} {
		b.Age(25 * time.Hour)
		s.write(change)
		name, _ := s.takeTo(to, 1)
		m, err := to.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Files {
			used["some/where/shards/"+m.Files[i].SHA256+".shard"] = true
		}
	}
	for _, name := range b.Names("some/where/shards/") {
		if !used[name] {
			t.Errorf("%s is left", name)
		}
	}
	if removed := b.Names("some/where/removed/"); len(removed) != 1 {
		t.Errorf("the manifests %q are left", removed)
	}
}

// Files that are lost until the manifest is there, to whatever removes them, make it no backup.
func TestS3_LooksForAllFilesBehindTheManifest(t *testing.T) {
	t.Parallel()
	s, b := startService(t, 1), bucket.New(t)
	place := hurried(t, b)
	first, _ := s.takeTo(backup.NewArchive(place, nil), 0)
	_, err := s.slowly(place, func() {
		for _, name := range b.Names("some/where/shards/") {
			b.Edit(name, func([]byte) []byte { return nil })
		}
	})
	var pruned *backup.PruneError
	if err == nil || errors.As(err, &pruned) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a backup without one of its files: %v", err)
	}
	if names, err := backup.NewArchive(place, nil).List(t.Context()); err != nil || !slices.Equal(names, []string{first}) {
		t.Errorf("there are %q, %v", names, err)
	}
}
