package node

import "switchyard/actors/tracker"

// Defaults of the limits on a workspace's stored bytes. A node that is not exposed serves
// its own machine: a bench with a million issues fits. On any other node workspaces may be
// hostile: 10 GiB are millions of short issues with their events, or 2,000 of the
// largest attachments; 1 GiB of answers is eight changes a second, kept for a day, at
// the usual 1.5 KB each, and far more of issues, whose answers are kept in their events.
const (
	looseBytes, strictBytes             = 64 << 30, 10 << 30
	looseAnswerBytes, strictAnswerBytes = 16 << 30, 1 << 30
)

// workspaceLimits returns the limits of workspaces that have none of their own.
func (c Config) workspaceLimits() tracker.Limits {
	limits := tracker.Limits{Bytes: strictBytes, AnswerBytes: strictAnswerBytes}
	if !c.exposed() {
		limits = tracker.Limits{Bytes: looseBytes, AnswerBytes: looseAnswerBytes}
	}
	if c.LimitBytes != nil {
		limits.Bytes = *c.LimitBytes
	}
	if c.LimitAnswerBytes != nil {
		limits.AnswerBytes = *c.LimitAnswerBytes
	}
	limits.Issues, limits.Sessions, limits.Tokens, limits.Subscriptions = c.LimitIssues, c.LimitSessions, c.LimitTokens, c.LimitSubscriptions
	limits.RequestsPerSecond, limits.CreatesPerSecond = c.LimitRequestsPerSecond, c.LimitCreatesPerSecond
	return limits
}
