package actors

import (
	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Engine.Admit looks at a caller's rights before the command waits for its turn. So that no
// command acts by rights that have ended meanwhile, the workspace's actor runs none whose
// caller was found out before the last change of what the rights come from.

// maxAdmissions is how often the rights to one command are looked at before it is refused.
const maxAdmissions = 8

// errOutdated is the answer to a command that was not run since its caller's rights may have
// changed. Callers see it if the rights change again each time.
var errOutdated = tracker.NotApplied("The rights in the workspace are being changed.")

// outdated reports whether the rights of a command's caller may have changed since Admit. The
// next step of a command that was applied in part is not looked at: it has to end.
func (w *workspaceActor) outdated(c *call) bool {
	a, _ := c.req.Access.(*admission)
	if c.partial {
		return false
	}
	for ; a != nil; a = a.maker {
		for _, p := range [...]*accessVersion{&a.home, &a.target} {
			if p.workspace != (storage.ID{}) && w.engine.generations.of(p.workspace).Load() != p.generation {
				return true
			}
		}
	}
	return false
}

// changesRights reports whether the open batch changes rights that a command may need. Its
// caller's are known again once the batch is committed.
func (w *workspaceActor) changesRights(c *call) bool {
	return len(w.batch) > 0 && w.buffer.Dirty()&tracker.DirtyAccess != 0 && c.req.Access != nil && !c.partial
}
