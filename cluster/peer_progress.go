package cluster

import (
	"net"
	"sync/atomic"
	"time"
)

// Bounds of a snapshot on its way to a follower.
const (
	// streamStall is how long a follower may take nothing of it.
	streamStall = 15 * time.Second
	// streamPiece is the number of bytes that a follower must take in that time.
	streamPiece = 16 << 10
	// installTime is how long a follower may take to install it.
	installTime = 2 * time.Minute
)

// raftStream is a stream that Raft has dialed. Raft sets one deadline for a whole snapshot, by its
// size: hours for a large one. A follower that hangs would keep one of the few exports of its leader
// for as long, so this one looks at progress.
type raftStream struct {
	net.Conn
	clock func() time.Time
	short time.Duration             // limit of requests that are no snapshot
	long  atomic.Pointer[time.Time] // the deadline of a snapshot; nil for other requests
}

// SetDeadline sets the deadline of a request and its answer.
func (s *raftStream) SetDeadline(t time.Time) error {
	s.long.Store(nil)
	if t.Sub(s.clock()) > 2*s.short {
		s.long.Store(&t)
	}
	return s.Conn.SetDeadline(t)
}

// Write writes b. Of a snapshot each piece has its time.
func (s *raftStream) Write(b []byte) (written int, err error) {
	for err == nil && written < len(b) {
		piece := b[written:]
		if last := s.long.Load(); last != nil {
			piece = piece[:min(len(piece), streamPiece)]
			if err := s.Conn.SetWriteDeadline(earlier(*last, s.clock().Add(streamStall))); err != nil {
				return written, err
			}
		}
		var n int
		n, err = s.Conn.Write(piece)
		written += n
	}
	return written, err
}

// Read reads an answer.
func (s *raftStream) Read(b []byte) (int, error) {
	if last := s.long.Load(); last != nil {
		if err := s.Conn.SetReadDeadline(earlier(*last, s.clock().Add(installTime))); err != nil {
			return 0, err
		}
	}
	return s.Conn.Read(b)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
