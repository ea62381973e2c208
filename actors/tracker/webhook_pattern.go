package tracker

import (
	"fmt"
	"slices"
)

// eventWebhookTest is the type of the event that a test of a webhook sends. It is
// in no log.
const eventWebhookTest = "webhook.test"

// patternFaults notes the patterns that are for no type of event there is: a
// mistyped one would never match, and nobody would know.
func patternFaults(path string, patterns []string, faults *Faults) {
	for i, pattern := range patterns {
		if eventsOf(pattern) == 0 {
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
