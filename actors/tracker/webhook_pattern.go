package tracker

import "slices"

// eventWebhookTest is the type of the event that a test of a webhook sends. It is not
// in the event log.
const eventWebhookTest = "webhook.test"

// WebhookEventTypes returns the types of events that subscriptions may be sent.
func WebhookEventTypes() []string { return append(EventTypes(), eventWebhookTest) }

// tidyPatterns removes duplicates and keeps the order.
func tidyPatterns(patterns []string) []string {
	kept := make([]string, 0, len(patterns))
	for _, p := range patterns {
		if !slices.Contains(kept, p) {
			kept = append(kept, p)
		}
	}
	return kept
}
