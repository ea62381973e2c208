package tracker

import (
	"fmt"
	"slices"
	"strings"
)

// EventTypes are the types of events there are (Decision 44).
var EventTypes = []string{
	"issue.created", "issue.updated", "issue.deleted",
	"comment.created", "comment.updated", "comment.deleted",
	"session.created", "session.updated", "session.ended", "session.escalated",
	"draft.created", "draft.published", "draft.discarded",
	"ticket.created", "ticket.updated", "ticket.message",
	"deal.created", "deal.updated", "deal.deleted",
	"vcs.event", "comms.event",
}

// eventWebhookTest is the type of the event that a test of a webhook sends. It is
// in no log.
const eventWebhookTest = "webhook.test"

// matchesEvent tells whether a pattern is for a type of event: a name, a family
// such as "issue.*", or "*".
func matchesEvent(pattern, eventType string) bool {
	if family, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(eventType, family)
	}
	return pattern == eventType
}

// patternFaults notes the patterns that are for no type of event there is: a
// mistyped one would never match, and nobody would know.
func patternFaults(path string, patterns []string, faults *Faults) {
	for i, pattern := range patterns {
		family, wild := strings.CutSuffix(pattern, "*")
		fits := !wild || family == "" || strings.HasSuffix(family, ".")
		if !fits || !slices.ContainsFunc(EventTypes, func(t string) bool { return matchesEvent(pattern, t) }) {
			faults.Add(fmt.Sprintf("%s[%d]", path, i), "Is neither a type of event such as issue.created, nor a family such as issue.*, nor *.")
		}
	}
}

// tidyPatterns drops repetitions and keeps the order.
func tidyPatterns(patterns []string) []string {
	kept := make([]string, 0, len(patterns))
	for _, p := range patterns {
		if !slices.Contains(kept, p) {
			kept = append(kept, p)
		}
	}
	return kept
}
