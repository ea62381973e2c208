package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"

	"switchyard/storage"
)

// raftLogger forwards Raft's messages to slog. Messages at Raft's information level become debug
// output: groups start and step down in normal operation.
type raftLogger struct{ to *slog.Logger }

// routine lists Raft's errors and warnings that occur whenever nodes come and go. The cluster's
// status shows a node that does not answer, once.
var routine = map[string]bool{
	"heartbeat timeout reached, starting election":                                                                   true,
	"heartbeat timeout reached, not part of a stable configuration or a non-voter, not triggering a leader election": true,
	"no known peers, aborting election":                                                                              true,
	"not part of stable configuration, aborting election":                                                            true,
	"Election timeout reached, restarting election":                                                                  true,
	"pre-vote campaign failed, waiting for election timeout":                                                         true,
	"failed to appendEntries to":                                                                                     true,
	"failed to heartbeat to":                                                                                         true,
	"failed to contact":                                                                                              true,
	"failed to contact quorum of nodes, stepping down":                                                               true,
	"failed to make requestVote RPC":                                                                                 true,
	"failed to send snapshot to":                                                                                     true,
	"failed to pipeline appendEntries":                                                                               true,
	"failed to start pipeline replication to":                                                                        true,
	"failed to decode incoming command":                                                                              true,
	"failed to get previous log":                                                                                     true,
	"failed to take snapshot":                                                                                        true, // its caller logs it
	"appendEntries rejected, sending older logs":                                                                     true,
	"previous log term mis-match":                                                                                    true,
	"rejecting appendEntries request since the last leader was contacted recently":                                   true,
	"rejecting pre-vote request since we have a leader":                                                              true,
	"rejecting vote request since we have a leader":                                                                  true,
	"rejecting pre-vote request since our last index is greater":                                                     true,
	"rejecting vote request since our last index is greater":                                                         true,
	"rejecting vote request since our last term is greater":                                                          true,
	"rejecting pre-vote request since our last term is greater":                                                      true,
	"peer has newer term, stopping replication":                                                                      true,
	"unable to get address for server, using fallback address":                                                       true,
}

// lacksRoom reports whether an argument is the error of a disk without room for a shard. Raft tries
// again soon, and the lack is logged once: by the disk's space, and by the group.
func lacksRoom(arg any) bool {
	err, ok := arg.(error)
	return ok && errors.Is(err, storage.ErrNoRoom)
}

// Log writes one message.
func (l raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case routine[msg] || slices.ContainsFunc(args, lacksRoom):
	case level >= hclog.Error:
		to = slog.LevelError
	case level == hclog.Warn:
		to = slog.LevelWarn
	}
	if !l.to.Enabled(context.Background(), to) {
		return
	}
	for i, arg := range args {
		if f, ok := arg.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	l.to.Log(context.Background(), to, msg, args...)
}

// Trace writes a message at debug level.
func (l raftLogger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }

// Debug writes a message at debug level.
func (l raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

// Info writes a message at debug level.
func (l raftLogger) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

// Warn writes a warning.
func (l raftLogger) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error writes an error.
func (l raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

// IsTrace reports false: nothing is traced.
func (l raftLogger) IsTrace() bool { return false }

// IsDebug reports whether debug output is enabled.
func (l raftLogger) IsDebug() bool { return l.to.Enabled(context.Background(), slog.LevelDebug) }

// IsInfo reports whether debug output is enabled, since Raft's information goes there.
func (l raftLogger) IsInfo() bool { return l.IsDebug() }

// IsWarn reports whether warnings are enabled.
func (l raftLogger) IsWarn() bool { return l.to.Enabled(context.Background(), slog.LevelWarn) }

// IsError reports true.
func (l raftLogger) IsError() bool { return true }

// ImpliedArgs returns nothing: slog keeps the attributes.
func (l raftLogger) ImpliedArgs() []any { return nil }

// With returns a logger with more attributes.
func (l raftLogger) With(args ...any) hclog.Logger { return raftLogger{l.to.With(args...)} }

// Name returns nothing: loggers have no names here.
func (l raftLogger) Name() string { return "" }

// Named returns l itself.
func (l raftLogger) Named(string) hclog.Logger { return l }

// ResetNamed returns l itself.
func (l raftLogger) ResetNamed(string) hclog.Logger { return l }

// SetLevel does nothing: slog's handler decides.
func (l raftLogger) SetLevel(hclog.Level) {}

// GetLevel returns the lowest level that is written.
func (l raftLogger) GetLevel() hclog.Level {
	if l.IsDebug() {
		return hclog.Debug
	}
	return hclog.Warn
}

// StandardLogger returns a logger that writes nothing: Raft does not use it.
func (l raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}

// StandardWriter returns a writer that writes nothing: Raft does not use it.
func (l raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
