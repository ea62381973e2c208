package tracker

import (
	"fmt"
	"strings"
)

// EventSet is a set of the types of events, a bit for each.
type EventSet uint32

// eventKind is what the service knows of a type of event.
type eventKind struct {
	name string
	// resource is what a token limited to one kind of resource must be for to see such
	// events: "issues", "sessions", or "" for a right to everything.
	resource string
	// hangs says on which issue the event hangs.
	hangs eventPlace
}

// eventPlace says where an event's data names the issue that the event hangs on: who
// sees the issue sees the event.
type eventPlace uint8

const (
	onNoIssue eventPlace = iota // the event's own header decides
	onItself                    // data is the issue
	onIssueID                   // data has its id as issueId
	onDraft                     // so it has, or it is a draft of an issue that was not there yet
	onTicket                    // on none, but data may link one as issueId, which not everybody sees
)

// eventKinds are all types of events there are (Decision 44), for those who read the
// log and for webhooks. The order makes the bits of EventSet, which are kept nowhere.
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

// EventTypes are the names of the types.
var EventTypes = func() []string {
	names := make([]string, len(eventKinds))
	for i, k := range eventKinds {
		names[i] = k.name
	}
	return names
}()

// allEvents has every type, and those that a later version may bring.
const allEvents = ^EventSet(0)

// otherEvent stands for the types that this version does not know.
const otherEvent EventSet = 1 << 31

// eventNumbers gives the places of the types in eventKinds.
var eventNumbers = func() map[string]int {
	numbers := make(map[string]int, len(eventKinds))
	for i, k := range eventKinds {
		numbers[k.name] = i
	}
	return numbers
}()

// matchesEvent tells whether a pattern is for a type of event: a name, a family
// such as "issue.*", or "*".
func matchesEvent(pattern, eventType string) bool {
	if family, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(eventType, family)
	}
	return pattern == eventType
}

// eventsOf are the types that a pattern is for; 0 when it is for none.
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

// parseEventTypes reads a comma-separated list of types, of families such as issue.*,
// and of *; empty: all. unknown are the words that name none.
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

// EventRights is what tokens are asked for: a right to read anything that there are
// events of. Which of them a token sees is decided for each.
const EventRights = "events"

// readableEvents are the types that the caller has the right to read.
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

// wantedEvents are those of the types asked for that the caller has the right to
// read; FORBIDDEN when it is none of them.
func (c *Caller) wantedEvents(asked EventSet) (EventSet, error) {
	readable := c.readableEvents()
	if readable != allEvents && asked&readable == 0 {
		return 0, Forbidden("This needs the right to read what such events are about.", "Use a token with the read permission, or ask for other types.")
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
	return "Names no type of event: " + strings.Join(words, ", ") + ". A type is a name such as issue.created, or a family such as issue.*"
}
