package tracker

import "slices"

// eventWebhookTest is the type of the event that a test of a webhook sends. It is
// in no log.
const eventWebhookTest = "webhook.test"

// WebhookEventTypes are the types of the events that subscriptions may be sent.
func WebhookEventTypes() []string { return append(slices.Clone(EventTypes), eventWebhookTest) }

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
