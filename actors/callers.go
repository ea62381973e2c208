package actors

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// generations counts, per workspace, the committed changes of the rows that a Caller is
// derived from. Workspaces share counters: a change in one then costs the others
// a look-up.
type generations [4096]atomic.Uint64

func (g *generations) of(workspace storage.ID) *atomic.Uint64 {
	// The last bytes of a UUIDv7 are random.
	return &g[binary.LittleEndian.Uint16(workspace[14:])%uint16(len(g))]
}

func (g *generations) bump(workspace storage.ID) { g.of(workspace).Add(1) }

// accessVersion is the state of one workspace as far as callers are concerned: its access
// generation and the epoch in which this node owns its shard.
type accessVersion struct {
	workspace  storage.ID // zero: there is none
	shard      storage.Shard
	generation uint64
	epoch      uint64
}

// owned is a shard whose state this node has shown to be the latest, and the epoch in
// which it owns the shard; the zero owned is none.
type owned struct {
	shard storage.Shard
	epoch uint64
}

// unchanged reports whether nothing has changed of a place since. last is the shard that was
// asked last, which is not asked again.
func (e *Engine) unchanged(p *accessVersion, last *owned, deadline time.Time) (bool, error) {
	if p.workspace == (storage.ID{}) {
		return true, nil
	}
	if last.epoch == 0 || last.shard != p.shard {
		epoch, err := e.readable(p.shard, deadline)
		if err != nil {
			return false, e.unlessMoved(p, err)
		}
		*last = owned{p.shard, epoch}
	}
	return last.epoch == p.epoch && e.generations.of(p.workspace).Load() == p.generation, nil
}

// admission is a caller that was resolved. Only used changes.
type admission struct {
	remote       bool // another node said who it is: not to be remembered
	credential   [sha256.Size]byte
	home, target accessVersion
	caller       tracker.Caller
	// maker is the caller that made the lane of a lane token; nil for other credentials.
	maker *admission
	// used is when the use of the caller's token was noted last, in Unix milliseconds.
	used atomic.Int64
}

// admissionOf returns the admission of a request; nil if nothing can change the rights to it.
func admissionOf(req *tracker.Request) *admission {
	a, _ := req.Access.(*admission)
	return a
}

// renewed returns the admission of the same credential with the rights that a view of the
// addressed workspace has, which is in the state of at. Neither the credential nor the maker of
// a lane is looked at.
func (a *admission) renewed(v *storage.View, at accessVersion) (*admission, error) {
	caller, err := tracker.ResolveCaller(v, a.caller.Principal)
	if err != nil {
		return nil, err
	}
	return &admission{remote: a.remote, credential: a.credential, home: a.home, target: at, caller: caller}, nil
}

// callers remembers resolved callers: a table in which each slot holds the last
// that fell there, so its size is fixed and no lock is needed. Only credentials
// that were found valid get in.
type callers [8192]atomic.Pointer[admission]

func (c *callers) slot(credential *[sha256.Size]byte, workspace storage.ID) *atomic.Pointer[admission] {
	n := binary.LittleEndian.Uint64(credential[:]) ^ binary.LittleEndian.Uint64(workspace[8:])
	return &c[n%uint64(len(c))]
}

// find gives the admission of a credential to a workspace; nil when it is not
// remembered.
func (c *callers) find(credential *[sha256.Size]byte, workspace storage.ID) *admission {
	a := c.slot(credential, workspace).Load()
	if a == nil || a.target.workspace != workspace || subtle.ConstantTimeCompare(a.credential[:], credential[:]) != 1 {
		return nil
	}
	return a
}

func (c *callers) keep(a *admission) { c.slot(&a.credential, a.target.workspace).Store(a) }
