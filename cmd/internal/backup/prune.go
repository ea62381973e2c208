package backup

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// unlockedFor is how long a file that no backup has is kept in a place without a lock: another
// backup may just have written it, and not its manifest yet.
const unlockedFor = 24 * time.Hour

// prune removes backups beyond those that are kept, the oldest first, and then the files that
// no backup has, and the segments of logs that none of them can be continued with.
func (t *taken) prune(ctx context.Context, newest string) error {
	names, err := t.To.List(ctx)
	if err != nil {
		return err
	}
	for t.Keep > 0 && len(names) > t.Keep && names[0] != newest {
		if err := t.To.place.Remove(ctx, names[0]); err != nil {
			return fmt.Errorf("remove an old backup: %w", err)
		}
		names = names[1:]
	}
	used := map[string]bool{}
	oldest := map[logOf]uint64{} // index of the oldest image of a shard
	for _, name := range names {
		from := t.To
		if _, sealed, _ := momentOf(name); !sealed {
			from = NewArchive(t.To.place, nil)
		} else if from.key == nil {
			return nil // nobody knows which files it has
		}
		m, err := from.manifest(ctx, name)
		if err != nil {
			return nil // as above
		}
		for i := range m.Files {
			f := &m.Files[i]
			used[from.shardName(f)] = true
			of := logOf{m.ClusterID, f.Shard}
			if is, ok := oldest[of]; !ok || f.Index < is {
				oldest[of] = f.Index
			}
		}
	}
	if err := t.pruneLogs(ctx, oldest); err != nil {
		return err
	}
	files, err := t.To.place.List(ctx, shardDir)
	if err != nil {
		return err
	}
	var latest time.Time // by the clock of the place
	for _, file := range files {
		if file.Changed.After(latest) {
			latest = file.Changed
		}
	}
	for _, file := range files {
		ours := strings.HasSuffix(strings.TrimSuffix(file.Name, sealedSuffix), shardSuffix)
		if !ours || used[file.Name] || t.To.place.Dir() == "" && latest.Sub(file.Changed) < unlockedFor {
			continue
		}
		if err := t.To.place.Remove(ctx, file.Name); err != nil {
			return fmt.Errorf("remove a file: %w", err)
		}
	}
	return nil
}
