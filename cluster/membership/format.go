package membership

import "switchyard/storage"

// format returns a format of a record or a list; those of older versions have none.
func format(f storage.Format) storage.Format { return max(f, storage.FormatFirst) }

// Common returns the newest format that all peers know.
func (r *List) Common() storage.Format {
	return r.least(func(rec *Record) storage.Format { return rec.Newest })
}

func (r *List) least(of func(*Record) storage.Format) storage.Format {
	peers := r.Peers()
	if len(peers) == 0 {
		return storage.FormatFirst
	}
	least := format(of(&peers[0]))
	for i := range peers {
		least = min(least, format(of(&peers[i])))
	}
	return least
}

// RaiseFormat raises the format of the cluster to the one that every peer's data directory has
// promised, and to that of the node that calls it. The format never goes down.
func (r *List) RaiseFormat(own storage.Format) {
	to := max(own, r.least(func(rec *Record) storage.Format { return rec.Format }))
	if to > format(r.Format) {
		r.Format = to
	}
}

// checkFormat refuses a node whose program can't read the format of the cluster.
func (r *List) checkFormat(rec *Record) error {
	cluster, oldest, newest := format(r.Format), format(rec.Oldest), format(rec.Newest)
	switch {
	case newest < cluster:
		return Permanent(ReasonFormat, "the cluster writes format %d, and node %q (version %s) knows formats up to %d: run a newer version of the program there", cluster, rec.Name, rec.Version, newest)
	case oldest > cluster:
		return Permanent(ReasonFormat, "the cluster writes format %d, and node %q (version %s) knows formats from %d on: run a version between the two on every node first", cluster, rec.Name, rec.Version, oldest)
	}
	return nil
}
