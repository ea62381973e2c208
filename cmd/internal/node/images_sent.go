package node

import (
	"sync"

	"switchyard/httpapi"
)

// sentImages remembers the last image of each shard that this process has made, so that a backup need not copy
// a shard again that has not changed. An index alone does not say that: when data was put back to an earlier
// state, the log has other entries under the same indexes. An image of the same history that is still at the
// shard's index is always in this memory: a restart, and another owner, append an entry.
type sentImages struct {
	mu   sync.Mutex
	last map[int]httpapi.ImageHead // by shard; guarded by mu
}

// note remembers an image.
func (s *sentImages) note(head *httpapi.ImageHead) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[int]httpapi.ImageHead{}
	}
	s.last[head.Shard] = *head
}

// at returns the head of the image of a shard at an index, for an answer that has no image. It returns false
// if this process has made none, or a later one since.
func (s *sentImages) at(shard int, index uint64) (httpapi.ImageHead, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	head, ok := s.last[shard]
	if !ok || head.Index != index {
		return httpapi.ImageHead{}, false
	}
	head.Unchanged, head.Bytes = true, 0
	return head, true
}
