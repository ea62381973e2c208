package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// unlockedFor is how long a file that no backup has is kept in a place without a lock: another
// backup may just have written it, and not its manifest yet. Files of a backup that was removed are kept
// as long, since the other one may have begun before and use them again.
const unlockedFor = 24 * time.Hour

// removedDir is the folder of the manifests of removed backups, in a place without a lock.
const removedDir = "removed/"

// prune removes backups beyond those that are kept, the oldest first, and then the files that
// no backup has, and the segments of logs that none of them can be continued with.
func (t *taken) prune(ctx context.Context, newest string) error {
	names, latest, err := t.backups(ctx)
	if err != nil {
		return err
	}
	keep := t.keeps(ctx, names, newest)
	used := map[string]bool{}
	oldest := map[logOf]uint64{} // index of the oldest image of a shard
	known := true
	for _, name := range names {
		if keep == nil || keep[name] {
			known = t.To.hold(ctx, name, name).uses(used, oldest) && known
		} else if err := t.remove(ctx, name); err != nil {
			return fmt.Errorf("remove an old backup: %w", err)
		}
	}
	// Backups that were removed before the first look are looked for after it.
	removed, err := t.listed(ctx, removedDir)
	if err != nil {
		return err
	}
	for _, file := range removed {
		if latest.Sub(file.Changed) >= unlockedFor {
			if err := t.To.place.Remove(ctx, file.Name); err != nil {
				return fmt.Errorf("remove the manifest of a removed backup: %w", err)
			}
			continue
		}
		known = t.To.hold(ctx, file.Name, strings.TrimPrefix(file.Name, removedDir)).uses(used, oldest) && known
	}
	if !known {
		return nil // a backup that can't be read may have any of the files
	}
	if err := t.pruneLogs(ctx, oldest); err != nil {
		return err
	}
	return t.removeShards(ctx, used, latest)
}

// tidy removes the files of shards in a directory that no backup has, as a backup that met a full disk or was
// killed has left them: those after it would find no room either. The lock keeps other backups away. What can't
// be removed is passed over, since prune tells of it.
func (t *taken) tidy(ctx context.Context) {
	if t.To.place.Dir() == "" {
		return
	}
	names, latest, err := t.backups(ctx)
	if err != nil {
		return
	}
	used := map[string]bool{}
	for _, name := range names {
		if !t.To.hold(ctx, name, name).uses(used, map[logOf]uint64{}) {
			return // it may have any of the files
		}
	}
	_ = t.removeShards(ctx, used, latest)
}

// removeShards removes the files of shards that are not used. latest is when the latest manifest was written.
func (t *taken) removeShards(ctx context.Context, used map[string]bool, latest time.Time) error {
	files, err := t.To.place.List(ctx, shardDir)
	if err != nil {
		return err
	}
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

// backups returns the names of the backups, sorted by time, and when the latest manifest was written, by
// the clock of the place.
func (t *taken) backups(ctx context.Context) (names []string, latest time.Time, err error) {
	files, err := t.To.place.List(ctx, "")
	for _, file := range files {
		if _, _, ok := momentOf(file.Name); ok {
			names = append(names, file.Name)
			if file.Changed.After(latest) {
				latest = file.Changed
			}
		}
	}
	slices.Sort(names)
	return names, latest, err
}

// keeps returns which backups are kept; nil: all are. They are the newest ones by the order of their
// states, and also those by time, since neither is certain after a clock was wrong or a node's data was
// put back. Times in the future prove nothing.
func (t *taken) keeps(ctx context.Context, names []string, newest string) map[string]bool {
	if t.Keep == 0 || len(names) <= t.Keep {
		return nil
	}
	var all, past []held // by time
	for _, name := range names {
		h := *t.To.hold(ctx, name, name)
		if all = append(all, h); !h.moment().After(t.Now().Add(skew)) {
			past = append(past, h)
		}
	}
	keep := map[string]bool{newest: true}
	for _, some := range [][]held{inOrder(all), past} {
		for _, h := range some[max(0, len(some)-t.Keep):] {
			keep[h.name] = true
		}
	}
	return keep
}

// remove removes a backup. In a place without a lock its manifest moves into a folder of its own for a
// time.
func (t *taken) remove(ctx context.Context, name string) error {
	if t.To.place.Dir() == "" {
		err := t.To.copyFile(ctx, name, removedDir, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another backup has removed it
		}
		if err != nil {
			return err
		}
	}
	return t.To.place.Remove(ctx, name)
}

// copyFile copies a manifest as it is into a folder.
func (a *Archive) copyFile(ctx context.Context, from, folder, name string) (err error) {
	in, err := a.place.Open(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := a.place.Draft(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Discard()) }()
	if _, err := io.Copy(out, io.LimitReader(in, maxManifest)); err != nil {
		return err
	}
	return out.Keep(ctx, folder+name)
}

// uses notes the files and the images that a backup has. It reports whether they are known.
func (h *held) uses(files map[string]bool, oldest map[logOf]uint64) bool {
	if h.m == nil {
		return false
	}
	for i := range h.m.Files {
		f := &h.m.Files[i]
		files[h.from.shardName(f)] = true
		of := logOf{h.m.ClusterID, f.Shard}
		if is, ok := oldest[of]; !ok || f.Index < is {
			oldest[of] = f.Index
		}
	}
	return true
}
