package cluster

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger hands Raft's messages to slog. What Raft calls information is debug
// output here: a group starts and steps down as a matter of course.
type raftLogger struct{ to *slog.Logger }

// startsElection is a warning of Raft's at every start of a group of one.
const startsElection = "heartbeat timeout reached, starting election"

// repeated are the messages that Raft repeats, per group and several times a
// second, for as long as a peer can't be reached. Who is reachable is told
// elsewhere, once.
var repeated = map[string]bool{
	"failed to heartbeat to":                            true,
	"failed to appendEntries to":                        true,
	"failed to start pipeline replication to":           true,
	"failed to pipeline appendEntries":                  true,
	"failed to contact":                                 true,
	"failed to make requestVote RPC":                    true,
	"Election timeout reached, restarting election":     true,
	"rejecting pre-vote request since we have a leader": true,
}

// Log writes one message.
func (l raftLogger) Log(level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch {
	case repeated[msg]:
	case level >= hclog.Error:
		to = slog.LevelError
	case level == hclog.Warn && msg != startsElection:
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

// IsTrace is false: nothing is traced.
func (l raftLogger) IsTrace() bool { return false }

// IsDebug tells whether debug output is wanted.
func (l raftLogger) IsDebug() bool { return l.to.Enabled(context.Background(), slog.LevelDebug) }

// IsInfo tells whether what Raft calls information is wanted.
func (l raftLogger) IsInfo() bool { return l.IsDebug() }

// IsWarn tells whether warnings are wanted.
func (l raftLogger) IsWarn() bool { return l.to.Enabled(context.Background(), slog.LevelWarn) }

// IsError is true.
func (l raftLogger) IsError() bool { return true }

// ImpliedArgs are kept by slog.
func (l raftLogger) ImpliedArgs() []any { return nil }

// With adds attributes.
func (l raftLogger) With(args ...any) hclog.Logger { return raftLogger{l.to.With(args...)} }

// Name is not used.
func (l raftLogger) Name() string { return "" }

// Named returns l itself.
func (l raftLogger) Named(string) hclog.Logger { return l }

// ResetNamed returns l itself.
func (l raftLogger) ResetNamed(string) hclog.Logger { return l }

// SetLevel does nothing: slog's handler decides.
func (l raftLogger) SetLevel(hclog.Level) {}

// GetLevel tells the least level that is written.
func (l raftLogger) GetLevel() hclog.Level {
	if l.IsDebug() {
		return hclog.Debug
	}
	return hclog.Warn
}

// StandardLogger writes nothing: nobody here asks for one.
func (l raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(io.Discard, "", 0)
}

// StandardWriter writes nothing: nobody here asks for one.
func (l raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
