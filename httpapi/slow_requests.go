package httpapi

import (
	"cmp"
	"slices"
	"time"
)

// slowKept is the number of workspaces whose slowest request a stripe keeps in a window: as many as an answer
// lists, so that the slowest of all are among those of the stripes.
const slowKept = busyShown + slowShown

// slowRequests are the slowest requests that ended in a window, one of each workspace. They are kept beside the
// counters: a workspace with a slow request may have few others, and lose its counter.
type slowRequests struct {
	used  int
	of    [slowKept]slowRequest
	least time.Duration // the shortest time, when all places are taken
}

type slowRequest struct {
	workspace [16]byte
	took      time.Duration
}

// kept returns the requests, in no order.
func (s *slowRequests) kept() []slowRequest { return s.of[:s.used] }

func (s *slowRequests) forget() { s.used, s.least = 0, 0 }

// add adds a request if it is one of the slowest.
func (s *slowRequests) add(workspace [16]byte, took time.Duration) {
	if took <= s.least {
		return
	}
	at := slices.IndexFunc(s.kept(), func(r slowRequest) bool { return r.workspace == workspace })
	switch {
	case at >= 0:
		took = max(took, s.of[at].took)
	case s.used < slowKept:
		at = s.used
		s.used++
	default:
		at = slices.IndexFunc(s.of[:], func(r slowRequest) bool { return r.took == s.least })
	}
	s.of[at] = slowRequest{workspace, took}
	if s.used == slowKept {
		s.least = slices.MinFunc(s.of[:], func(a, b slowRequest) int { return cmp.Compare(a.took, b.took) }).took
	}
}
