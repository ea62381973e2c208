package httpapi

import (
	"hash/maphash"
	"sync/atomic"
)

// known remembers which credentials other nodes have found to be valid in which
// workspaces. It decides nothing but shares: who a forwarded request is charged to
// before its owner has looked at the credential. It holds hashes under a secret
// seed, the last one of each slot.
type known struct {
	seed  maphash.Seed
	slots [8192]atomic.Uint64
}

func newKnown() *known { return &known{seed: maphash.MakeSeed()} }

func (k *known) hash(credential string, workspace [16]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(k.seed)
	_, _ = h.Write(workspace[:])
	_, _ = h.WriteString(credential)
	return h.Sum64() | 1 // an empty slot is 0
}

func (k *known) has(credential string, workspace [16]byte) bool {
	sum := k.hash(credential, workspace)
	return k.slots[sum>>1%uint64(len(k.slots))].Load() == sum
}

func (k *known) keep(credential string, workspace [16]byte) {
	sum := k.hash(credential, workspace)
	if slot := &k.slots[sum>>1%uint64(len(k.slots))]; slot.Load() != sum {
		slot.Store(sum)
	}
}

func (k *known) forget(credential string, workspace [16]byte) {
	sum := k.hash(credential, workspace)
	k.slots[sum>>1%uint64(len(k.slots))].CompareAndSwap(sum, 0)
}
