package httpapi

import (
	"encoding/json"
	"slices"

	"switchyard/actors/tracker"
)

// toolSpec is a tool as it is declared. Its arguments are the properties of the
// operation's input, its answer the operation's.
type toolSpec struct {
	name, title, description string
	op                       *tracker.Op
	// ofIssue: the id in the operation's path is the issue's, not the session's.
	ofIssue bool
	// input makes the arguments where they are not the operation's own.
	input func() any
	// arguments says of arguments what their names don't.
	arguments map[string]string
}

// translated are arguments that are turned into an operation's input, unless the operation's
// path would refuse that before it is read.
type translated interface {
	operation(id string) (any, error)
}

// toolReport may be called when the session is over, to repeat the report that ended
// it.
const toolReport = "report"

// toolInstructions tell an agent how the tools go together.
const toolInstructions = "You work on one issue, in one session. Start with read_issue. Log what you do while you do it: silence looks like a stall. " +
	"A session that you claimed has a lease, and is given to another agent when the lease runs out. Every log, report and heartbeat renews it; reading does not. " +
	"Ask when only a person can decide, and wait for the answer with read_session, with a heartbeat before each call. If the answer may take long, give the session up with wait instead. " +
	"Spawn a child for work that stands on its own. When you are done, report with status completed or failed and the result: that ends the session for good."

// toolSpecs are the tools of every session (Decision 36).
var toolSpecs = []toolSpec{
	{
		name: "read_issue", title: "Read the issue", op: tracker.SessionIssue, ofIssue: true,
		description: "Read the issue this session works on: its title, description, status, priority, labels, repository and branch, and its relations to other issues.",
	},
	{
		name: "read_session", title: "Read the session", op: tracker.PollSession,
		description: "Read this session and its log, the oldest activity first: its status, and people's answers (activities of type response). " +
			"With since and wait it returns as soon as there is something new, which is how to wait for the answer to a question. " +
			"It does not renew the session's lease: call heartbeat before each call that waits.",
		arguments: map[string]string{
			"since": "The id of an activity: only later ones are returned, and of more than 1 MiB the oldest. Without it the newest 500 are, and of more than 1 MiB the newest.",
			"wait":  "How many seconds to wait for something new.",
		},
	},
	{
		name: "log", title: "Log activities", op: tracker.LogActivities,
		description: "Log what you do or think: one activity, or up to 100 in activities. Renews the session's lease.",
		arguments: map[string]string{
			"type":       "What kind of activity it is. Questions that need an answer are asked with ask.",
			"message":    "What happened, in a sentence or more. Required unless activities is given.",
			"payload":    "Any JSON that belongs to it, up to 64 KiB.",
			"parentId":   "The id of the activity it is part of.",
			"activities": "Several activities at once, instead of the other arguments.",
			"plan":       "Your plan, which replaces the one before. It may be sent without an activity.",
			"usage":      "What you have used since you last told: tokens, and the cost in millionths.",
		},
	},
	{
		name: "heartbeat", title: "Renew the lease", op: tracker.Heartbeat,
		description: "Renew the session's lease and change nothing else: a question stays open, and it does not count as progress. For times when you have nothing to log, such as while you wait for an answer.",
		arguments: map[string]string{
			"leaseSeconds": "How long the lease lasts from now on, and after each renewal. Without it, as long as before.",
			"usage":        "What you have used since you last told: tokens, and the cost in millionths.",
		},
	},
	{
		name: "ask", title: "Ask a person", op: tracker.LogActivities, input: func() any { return new(askIn) },
		description: "Ask the people who follow this session. It shows that it needs input until someone replies or you log something else. " +
			"Returns the activity; pass its id to read_session as since, with wait, to get the reply, and call heartbeat before each such call, or the lease runs out. " +
			"If the reply may take long, store a checkpoint and call wait with any: [{reply: true}].",
		arguments: map[string]string{
			"question": "Your question, with the facts that are needed to answer it.",
			"payload":  "Any JSON that belongs to it, such as the answers to choose from, up to 64 KiB.",
		},
	},
	{
		name: toolReport, title: "Report", op: tracker.ReportSession,
		description: "Report the session's status. Fields that are left out do not change. The status completed, failed or canceled ends the session for good, " +
			"so report the result and the pull request with it or before. Repeating the report that ended it is harmless.",
		arguments: map[string]string{
			"status":           "running when you continue, waiting when you need an answer first; completed, failed or canceled at the end.",
			"result":           "The result, for people.",
			"structuredResult": "The result, for programs; it must match the session's resultSchema if there is one.",
			"url":              "Where to watch the work.",
			"branch":           "The branch the work is on.",
			"prUrl":            "The pull request.",
			"prState":          "The state of the pull request.",
			"failureReason":    "Why it failed, in a word that programs know. With the status failed alone.",
			"retryable":        "Whether trying again may help. With the status failed alone.",
			"waitFor":          "What the session waits for, with the status waiting; see the tool wait.",
			"plan":             "Your plan, which replaces the one before.",
			"usage":            "What you have used since you last told: tokens, and the cost in millionths.",
		},
	},
	{
		name: "checkpoint", title: "Store a checkpoint", op: tracker.PutCheckpoint, input: func() any { return new(checkpointIn) },
		description: "Store what you, or another agent, must know to go on from here if the session is lost. It replaces the checkpoint before, and comes with the next claim.",
		arguments:   map[string]string{"value": "Any JSON, up to 256 KiB."},
	},
	{
		name: "release", title: "Give the session back", op: tracker.ReleaseSession,
		description: "Give the session back to the queue when you can't go on now, such as at a limit of requests. You have no part in it any more.",
		arguments: map[string]string{
			"reason":            "Why you give it back.",
			"notBefore":         "The time from which it can be claimed again.",
			"retryAfterSeconds": "In how many seconds it can be claimed again, instead of notBefore.",
			"countAttempt":      "Whether this was one of the attempts that the session may have.",
		},
	},
	{
		name: "wait", title: "Wait for conditions", op: tracker.ReportSession, input: func() any { return new(waitIn) },
		description: "Give the session up until something has happened: it is queued again then, and the next claim says what happened. You have no part in it any more. Store a checkpoint first.",
		arguments: map[string]string{
			"all": "Conditions that must all be met: each one of session, children, issue, after, pr, checks and reply.",
			"any": "Conditions of which one must be met, instead of all.",
		},
	},
	{
		name: "relate", title: "Relate the issue to another", op: tracker.RelateSession,
		description: "Relate the issue this session works on to another one: when you find that one must be done before the other, or find work that is not this issue's. " +
			"The token that claimed or registered the session must be one that may write issues.",
		arguments: map[string]string{
			"type":    "What this issue is to the other: it blocks it, is blocked_by it, was discovered_from it, has led_to it, or relates to it.",
			"issueId": "The id of the other issue.",
		},
	},
	{
		name: "spawn_child", title: "Spawn a child session", op: tracker.SpawnSession,
		description: "Hand work to another session: makes an issue below this one's and dispatches it. A session can have a few children at work at a time.",
		arguments: map[string]string{
			"title":       "The title of the child's issue.",
			"description": "All the child needs to know: it does not see this session.",
			"agentId":     "Who is to work on it. Without it the workspace's usual agent is.",
			"repo":        "The repository, as owner/name. Without it the issue's own.",
		},
	},
	{
		name: "list_children", title: "List child sessions", op: tracker.ListSessionChildren,
		description: "List the sessions that this one has spawned, newest first: their status, and the results of those that have ended. label is the title of the child's issue.",
		arguments: map[string]string{
			"cursor":  "The nextCursor of the page before.",
			"summary": "1 leaves out results and everything else that may be long.",
		},
	},
}

// isReading reports whether the tool of a name changes nothing. It reports false if there
// is no such tool.
func isReading(name string) bool {
	at := slices.IndexFunc(toolSpecs, func(t toolSpec) bool { return t.name == name })
	return at < 0 || toolSpecs[at].op.Kind == tracker.Query
}

// waitIn are the conditions that a session waits for.
type waitIn struct{ tracker.WaitForIn }

// operation makes the arguments a report of waiting.
func (in *waitIn) operation(id string) (any, error) {
	return &tracker.ReportSessionIn{ID: tracker.SessionID(id), Status: tracker.Some(tracker.SessionWaiting), WaitFor: tracker.Some(in.WaitForIn)}, nil
}

// checkpointIn is a checkpoint as the tool takes it, in an argument.
type checkpointIn struct {
	Value json.RawMessage `json:"value" rules:"required"`
}

// operation makes the argument the body of the service's operation.
func (in *checkpointIn) operation(id string) (any, error) {
	if limit := tracker.PutCheckpoint.MaxBody; len(in.Value) > limit {
		return nil, errBodyTooLarge(limit)
	}
	return &tracker.PutCheckpointIn{ID: tracker.SessionID(id), Value: in.Value}, nil
}

// askIn is a question to the people who follow a session.
type askIn struct {
	Question string          `json:"question" rules:"required,min=1,max=32768"`
	Payload  json.RawMessage `json:"payload"`
}

// operation returns the input that logs the question as an elicitation.
func (in *askIn) operation(id string) (any, error) {
	return &tracker.LogActivitiesIn{ID: tracker.SessionID(id), ActivityFields: tracker.ActivityFields{
		Type: tracker.ActivityElicitation, Message: tracker.Some(in.Question), Payload: in.Payload,
	}}, nil
}
