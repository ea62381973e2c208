package backup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// held is a backup in an archive.
type held struct {
	name string
	from *Archive  // with the key of the backup
	m    *Manifest // nil: it can't be read
	err  error     // why
}

// hold reads the manifest of a backup from a file, also of one that is not encrypted among those that
// are.
func (a *Archive) hold(ctx context.Context, file, name string) *held {
	h := &held{name: name, from: a}
	_, sealed, _ := momentOf(name)
	switch {
	case sealed && a.key == nil:
		h.err = fmt.Errorf("%s in %s is encrypted: give its key with --key-file", name, a)
		return h
	case !sealed:
		h.from = NewArchive(a.place, nil)
	}
	h.m, h.err = h.from.manifestAt(ctx, file, name)
	return h
}

// moment is when the backup began, as its name has it.
func (h *held) moment() time.Time {
	moment, _, _ := momentOf(h.name)
	return moment
}

// all reads the manifests of all backups, in order. Those that the key is not for have an error.
func (a *Archive) all(ctx context.Context) ([]held, error) {
	names, err := a.List(ctx)
	if err != nil {
		return nil, err
	}
	var all []held
	for _, name := range names {
		h := held{name: name, from: a}
		h.m, h.err = a.Open(ctx, name)
		all = append(all, h)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return inOrder(all), nil
}

// inOrder returns backups that are sorted by their names in the order of their states, the oldest
// first. The logs decide among the backups of a cluster: a clock may have been wrong, and the indexes
// of entries only grow. Those of different clusters, and those that can't be read, are in the order of
// their times.
func inOrder(byTime []held) []held {
	out := slices.Clone(byTime)
	places := map[string][]int{} // by cluster
	for i := range out {
		if m := out[i].m; m != nil {
			places[m.ClusterID] = append(places[m.ClusterID], i)
		}
	}
	for _, of := range places {
		var some []held
		for _, i := range of {
			some = append(some, byTime[i])
		}
		slices.SortStableFunc(some, func(a, b held) int { return cmp.Compare(a.m.entries(), b.m.entries()) })
		for n, i := range of {
			out[i] = some[n]
		}
	}
	return out
}

// newest returns the newest of the backups in an archive, which are in order, and the names of those
// that are of an older state although their times are later. The cluster is that of the latest backup
// whose time is not in the future. A later backup that can't be read is an error: it may be the newest.
func (a *Archive) newest(all []held, now time.Time) (best *held, later []string, err error) {
	future := func(h *held) bool { return h.moment().After(now.Add(skew)) }
	var latest *held
	for i := range all {
		if h := &all[i]; h.m != nil && (latest == nil || future(latest) && !future(h) || future(latest) == future(h) && h.name > latest.name) {
			latest = h
		}
	}
	for i := range all {
		if h := &all[i]; h.m != nil && h.m.ClusterID == latest.m.ClusterID {
			best = h
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		switch h := &all[i]; {
		case best == nil:
			return nil, nil, h.err
		case h.name <= best.name:
		case h.m == nil:
			return nil, nil, fmt.Errorf("%w; an older backup has to be named with --backup", h.err)
		default:
			later = append(later, h.name)
		}
	}
	if best == nil {
		return nil, nil, fmt.Errorf("there is no complete backup in %s", a)
	}
	slices.Sort(later)
	return best, later, nil
}
