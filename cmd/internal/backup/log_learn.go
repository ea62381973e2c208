package backup

import (
	"context"
	"errors"
	"time"
)

// While nodes run, the file system of the archive can be unmounted for a time, so that an empty directory is in its
// place. Files can be removed, or put back to an earlier state. So each pass first compares the archive with what
// this node left there: its mark is the one that it wrote last, and its file among the segments exists.

// foreignFor is how long passes fail in a place that has nothing of what this node has archived. After that time
// the node begins anew there.
const foreignFor = 10 * time.Minute

var (
	// errForeign ends a pass in a place that has nothing of what this node has archived.
	errForeign = errors.New("the logs that this node has archived are not there: the directory was emptied, or another one has its name")
	// errGone ends a pass during which the files of this node were removed.
	errGone = errors.New("the archived logs were removed meanwhile")
)

// learn reads what other nodes, or this one before its start, have archived.
func (a *LogArchiver) learn(ctx context.Context, newest *Manifest, owned map[int]bool) error {
	marks, unread, err := a.To.marks(ctx, a.Logs.ClusterID())
	if err != nil {
		return err
	}
	if unread != nil {
		a.Logger.Warn("marks of archived logs can't be read", "in", a.To.String(), "error", unread)
	}
	if len(owned) > 0 {
		if err := a.look(ctx, marks); err != nil {
			return err
		}
	}
	for shard := range a.Logs.Shards() + 1 {
		// This node may have archived more than its mark has. Of others the marks have all.
		if a.doubted || !owned[shard] && a.left[shard] == 0 {
			delete(a.known, shard)
		}
	}
	for _, m := range marks {
		for _, l := range m.Logs {
			is, ok := a.known[l.Shard]
			if l.Shard >= 0 && l.Shard <= a.Logs.Shards() && l.Last > a.left[l.Shard] && (!ok || l.newer(&is)) {
				a.known[l.Shard] = l
			}
		}
	}
	if a.doubted {
		return a.prove(ctx, newest)
	}
	return nil
}

// look compares the archive with what this node has left there.
func (a *LogArchiver) look(ctx context.Context, marks []mark) error {
	node := a.To.markedBy(a.Node)
	begun, err := a.To.begun(ctx, a.Logs.ClusterID(), node)
	if err != nil {
		return err
	}
	var own string
	for i := range marks {
		if marks[i].Node == node {
			if own, err = marks[i].text(); err != nil {
				return err
			}
		}
	}
	same := a.marked == "" || own == a.marked || own == a.marking
	if !begun && !same {
		clear(a.known)
		if a.foreign.IsZero() {
			a.foreign = a.Now()
		}
		if a.Now().Sub(a.foreign) < foreignFor {
			return errForeign
		}
	}
	if a.foreign = (time.Time{}); !begun || !same {
		if a.marked != "" {
			a.Logger.Error("the archived logs are not as this node left them: entries that are missing there are archived again, if this node still has them", "in", a.To.String())
		}
		a.doubted, a.marked, a.marking = true, "", ""
	}
	a.unbegun = !begun
	return nil
}

// prove corrects what is known by the segments that are in the archive.
func (a *LogArchiver) prove(ctx context.Context, newest *Manifest) error {
	l, err := a.To.listLogs(ctx)
	if err != nil {
		return err
	}
	for shard, claim := range a.known {
		if a.known[shard], err = l.proved(ctx, a.Logs.ClusterID(), claim, newest); err != nil {
			return err
		}
	}
	return nil
}

// proved returns the part of a claim that the newest backup and the segments bear out.
func (l *logs) proved(ctx context.Context, cluster string, claim archivedLog, newest *Manifest) (archivedLog, error) {
	after, at := claim.After, time.Time{}
	if image := newest.file(claim.Shard); image != nil && image.Index >= after {
		after, at = image.Index, newest.Moment // segments before it may have been removed
	}
	if after >= claim.Last {
		return claim, nil
	}
	chain, last, err := l.chain(ctx, logOf{cluster, claim.Shard}, after)
	if err != nil || last >= claim.Last {
		return claim, err
	}
	if len(chain) > 0 {
		at = chain[len(chain)-1].until
	}
	claim.After, claim.Last, claim.At = after, last, at
	return claim, nil
}

// mark writes what is archived, as far as this node knows. It replaces no mark in a place that has changed since
// the pass began.
func (a *LogArchiver) mark(ctx context.Context) error {
	m := &mark{Version: markVersion, ClusterID: a.Logs.ClusterID(), Node: a.To.markedBy(a.Node)}
	for shard := range a.Logs.Shards() + 1 {
		if l, ok := a.known[shard]; ok {
			m.Logs = append(m.Logs, l)
		}
	}
	text, err := m.text()
	if err != nil {
		return err
	}
	if a.unbegun {
		if err := a.To.putBegun(ctx, m.ClusterID, m.Node); err != nil {
			return err
		}
		a.unbegun = false
	} else {
		begun, err := a.To.begun(ctx, m.ClusterID, m.Node)
		if err == nil && !begun {
			err = errGone
		}
		if err != nil {
			a.doubted = true
			return err
		}
	}
	a.marking = text
	if err := a.To.putMark(ctx, m); err != nil {
		return err
	}
	a.marked = text
	return nil
}
