package tracker

import (
	"fmt"

	"switchyard/storage"
)

// checkDirectory checks that the directory and the workspaces agree, except for
// differences that a timer is set to repair. Nothing is compared with shards that the state lacks.
func checkDirectory(w *storage.Walk, add func(storage.Problem)) error {
	if w.Lacks(storage.DirectoryShard) {
		return nil
	}
	d := w.Directory()
	here := func(shard storage.Shard, workspace storage.ID, across bool) reporter {
		return reportTo(func(p storage.Problem) {
			p.Shard, p.Workspace, p.Across = shard, workspace, across
			add(p)
		})
	}
	report, across := here(storage.DirectoryShard, storage.DirectoryID, false), here(storage.DirectoryShard, storage.DirectoryID, true)
	if err := checkEntries(w, d, report, across); err != nil {
		return err
	}
	if err := checkMemberships(w, d, report, across); err != nil {
		return err
	}
	if err := checkRoutes(d, report); err != nil {
		return err
	}
	return w.Workspaces(func(v *storage.View) (bool, error) {
		if w.Lacks(v.Shard()) { // its replica is being deleted
			return true, nil
		}
		return true, checkListed(d, v, here(v.Shard(), v.Workspace(), true))
	})
}

// checkEntries checks each entry of the directory against its workspace. It reports differences of two shards
// to across.
func checkEntries(w *storage.Walk, d *storage.View, report, across reporter) error {
	return directory.Scan(d, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := directory.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		e := &row.Value
		kind := map[slugState]string{slugReserved: timerResolve, slugDeleting: timerErase}[e.State]
		if e.State != slugActive {
			set, err := d.Has(timerTable, timerKey(nil, kind, string(e.Workspace)))
			if err == nil && !set {
				report(directory.Name, pk, "is %s, and no timer is set to settle it", e.State)
			}
			return true, err
		}
		if w.LacksWorkspace(e.Workspace.raw()) {
			return true, nil
		}
		v, found, err := w.Find(e.Workspace.raw())
		if err != nil {
			return false, err
		}
		if !found {
			across(directory.Name, pk, "is active, and there is no workspace")
			return true, nil
		}
		ws, err := workspaces.Get(v, nil)
		switch {
		case err != nil: // the check of the workspace reports it
		case ws == nil:
			across(directory.Name, pk, "is active, and there is no workspace")
		case ws.Value.Slug != e.Slug || ws.Value.OwnerID != e.Owner:
			across(directory.Name, pk, "has slug %s and owner %s, the workspace %s and %s", e.Slug, e.Owner, ws.Value.Slug, ws.Value.OwnerID)
		}
		return true, nil
	})
}

// checkMemberships checks each membership of the directory against the workspace's
// members. It reports differences of two shards to across.
func checkMemberships(w *storage.Walk, d *storage.View, report, across reporter) error {
	return memberships.Scan(d, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := memberships.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		m := &row.Value
		entry, err := directory.Get(d, workspaceKey(nil, m.Workspace))
		if err != nil {
			return true, nil // the table's own check reports it
		}
		if entry == nil {
			report(memberships.Name, pk, "the directory knows no such workspace")
			return true, nil
		}
		if entry.Value.State == slugDeleting || w.LacksWorkspace(m.Workspace.raw()) {
			return true, nil // it is being deleted, or can't be compared
		}
		v, found, err := w.Find(m.Workspace.raw())
		if err != nil {
			return false, err
		}
		if !found {
			across(memberships.Name, pk, "there is no such workspace")
			return true, nil
		}
		is, err := v.Has(memberTable, memberKey(nil, m.User))
		if err != nil {
			return false, err
		}
		pending, err := v.Has(pendingTable, memberKey(nil, m.User))
		if err == nil && is != (m.RemovedAt == nil) && !pending {
			across(memberships.Name, pk, "the members contradict it, and no change is noted")
		}
		return true, err
	})
}

// checkListed checks a workspace against the directory, which must have its slug and
// its members.
func checkListed(d, v *storage.View, report reporter) error {
	entry, err := directory.Get(d, storage.Key(nil).DescID(v.Workspace()))
	if err != nil {
		return nil // the table's own check reports it
	}
	if arriving, err := isArriving(v); err != nil || arriving {
		return err
	}
	if entry == nil {
		report(workspaces.Name, nil, "the directory does not know it")
		return nil
	}
	if entry.Value.State != slugActive {
		return nil // a timer completes it
	}
	err = members.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := members.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		pending, err := v.Has(pendingTable, pk)
		if err != nil || pending {
			return true, err
		}
		m, err := memberships.Get(d, membershipKey(nil, row.Value.UserID, entry.Value.Workspace))
		if err == nil && (m == nil || m.Value.RemovedAt != nil) {
			report(members.Name, pk, "the directory does not know of it")
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read the members: %w", err)
	}
	return nil
}
