package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// pruneLogs removes the segments that end before the oldest image of their shard. Those of clusters
// without a backup, their marks, and what nodes have left that were killed while they wrote, go a day
// after they were written: the first backup of that cluster may be on its way.
func (t *taken) pruneLogs(ctx context.Context, oldest map[logOf]uint64) error {
	all, err := t.listed(ctx, logDir)
	if err != nil || len(all) == 0 {
		return err
	}
	marks, err := t.listed(ctx, markDir)
	if err != nil {
		return err
	}
	all = append(all, marks...)
	var latest time.Time // by the clock of the place
	for _, file := range all {
		if file.Changed.After(latest) {
			latest = file.Changed
		}
	}
	for _, file := range all {
		needed := latest.Sub(file.Changed) < unlockedFor
		if s, ok := parseSegment(file.Name); ok {
			if image, ok := oldest[logOf{s.cluster, s.shard}]; ok {
				needed = s.last > image
			}
		} else if !strings.HasPrefix(path.Base(file.Name), partPrefix) && !isForgotten(file.Name, oldest) {
			needed = true
		}
		if needed {
			continue
		}
		// Another node may have removed it.
		if err := t.To.place.Remove(ctx, file.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a file of the logs: %w", err)
		}
	}
	return nil
}

// listed lists a folder, which need not be there.
func (t *taken) listed(ctx context.Context, folder string) ([]Kept, error) {
	files, err := t.To.place.List(ctx, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return files, err
}

// isForgotten reports whether a file is the mark of a node of a cluster without a backup, or its file among the
// segments.
func isForgotten(name string, oldest map[logOf]uint64) bool {
	rest, ok := strings.CutPrefix(name, markDir)
	if !ok {
		rest, ok = strings.CutPrefix(name, logDir)
	}
	for of := range oldest {
		ok = ok && !strings.HasPrefix(rest, of.cluster+"-")
	}
	return ok && strings.HasSuffix(strings.TrimSuffix(name, sealedSuffix), manifestSuffix)
}
