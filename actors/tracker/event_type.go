package tracker

import (
	"fmt"
	"strings"
)

// EventSet is a set of event types, with a bit for each.
type EventSet uint32

// eventKind describes a type of event.
type eventKind struct {
	name string
	// resource is the resource that a limited token must be good for to read such
	// events: "issues" or "sessions". Tokens need the right to read everything if it is
	// empty.
	resource string
	// hangs says which issue decides who sees the event.
	hangs eventPlace
}

// eventPlace is the place in an event's data of the issue that decides who sees the
// event.
type eventPlace uint8

const (
	onNoIssue eventPlace = iota // none: the event's own header decides
	onItself                    // the data is the issue
	onIssueID                   // issueId
	onDraft                     // issueId, or the issue that the draft has become
	onTicket                    // none, but issueId may link an issue that not every caller sees
)

// eventKinds are all types of events (Decision 44), for the event log and webhooks.
// Their order determines the bits of EventSet, which are not stored.
var eventKinds = []eventKind{
	{eventIssueCreated, "issues", onItself},
	{eventIssueUpdated, "issues", onItself},
	{eventIssueDeleted, "issues", onItself},
	{eventCommentCreated, "issues", onIssueID},
	{eventCommentUpdated, "issues", onIssueID},
	{eventCommentDeleted, "issues", onIssueID},
	{eventSessionCreated, "sessions", onIssueID},
	{eventSessionUpdated, "sessions", onIssueID},
	{eventSessionEnded, "sessions", onIssueID},
	{eventSessionEscalated, "sessions", onIssueID},
	{eventDraftCreated, "issues", onDraft},
	{eventDraftPublished, "issues", onDraft},
	{eventDraftDiscarded, "issues", onDraft},
	{eventTicketCreated, "", onTicket},
	{eventTicketUpdated, "", onTicket},
	{eventTicketMessage, "", onTicket},
	{eventDealCreated, "", onNoIssue},
	{eventDealUpdated, "", onNoIssue},
	{eventDealDeleted, "", onNoIssue},
	{eventVCS, "", onNoIssue},
	{eventComms, "", onNoIssue},
}

// EventTypes are the names of the types of events.
var EventTypes = func() []string {
	names := make([]string, len(eventKinds))
	for i, k := range eventKinds {
		names[i] = k.name
	}
	return names
}()

// allEvents has every type, including those of later versions.
const allEvents = ^EventSet(0)

// otherEvent stands for the types that this version does not know.
const otherEvent EventSet = 1 << 31

// eventNumbers maps the names of types to their index in eventKinds.
var eventNumbers = func() map[string]int {
	numbers := make(map[string]int, len(eventKinds))
	for i, k := range eventKinds {
		numbers[k.name] = i
	}
	return numbers
}()

// matchesEvent reports whether a pattern matches a type of event. A pattern is a name,
// a family such as "issue.*", or "*".
func matchesEvent(pattern, eventType string) bool {
	if family, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(eventType, family)
	}
	return pattern == eventType
}

// eventsOf returns the types that a pattern matches; 0 for none.
func eventsOf(pattern string) (set EventSet) {
	if pattern == "*" {
		return allEvents
	}
	if family, wild := strings.CutSuffix(pattern, "*"); wild && !strings.HasSuffix(family, ".") {
		return 0
	}
	for i, k := range eventKinds {
		if matchesEvent(pattern, k.name) {
			set |= 1 << i
		}
	}
	return set
}

// parseEventTypes parses a comma-separated list of types, families such as issue.*, and
// *; an empty list means all. unknown are the words that match no type.
func parseEventTypes(list string) (set EventSet, unknown []string) {
	if list == "" {
		return allEvents, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		some := eventsOf(word)
		if set |= some; some == 0 {
			unknown = append(unknown, word)
		}
	}
	return set, unknown
}

// EventRights is the resource that tokens need to read the event log: a right to read
// anything that has events. Which events a token sees is decided for each.
const EventRights = "events"

// readableEvents returns the types that the caller has the right to read.
func (c *Caller) readableEvents() EventSet {
	if c.Allows(Needs{Level: Read}) {
		return allEvents
	}
	var set EventSet
	for i, k := range eventKinds {
		if k.resource != "" && c.Allows(Needs{Read, k.resource}) {
			set |= 1 << i
		}
	}
	return set
}

// wantedEvents returns the types among asked that the caller has the right to read, or
// FORBIDDEN if there are none.
func (c *Caller) wantedEvents(asked EventSet) (EventSet, error) {
	readable := c.readableEvents()
	if readable != allEvents && asked&readable == 0 {
		return 0, Forbidden("The credential may not read the resources of such events.", "Use a token with the read permission, or ask for other types.")
	}
	return asked & readable, nil
}

func unknownTypes(words []string) string {
	const most = 5
	if len(words) > most {
		words = words[:most]
	}
	for i, w := range words {
		words[i] = fmt.Sprintf("%.64q", w)
	}
	return "Unknown type of event: " + strings.Join(words, ", ") + ". A type is a name such as issue.created, or a family such as issue.*"
}
