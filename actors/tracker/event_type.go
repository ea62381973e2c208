package tracker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// EventSet is a set of the types of events, a bit for each.
type EventSet uint64

// eventKind is a type of event. Only newEventKind makes one, so a type that an event is
// emitted with is always among eventKinds.
type eventKind struct {
	name string
	// resource is what a token limited to one kind of resource must be for to see such
	// events: "issues", "sessions", or "" for a right to everything.
	resource string
	// issueFrom is the place in the event's data of the issue that the event belongs to.
	issueFrom issueSource
	bit       EventSet
}

// issueSource is the place in an event's data of the issue that the event belongs to:
// callers that see the issue see the event.
type issueSource uint8

const (
	onItself   issueSource = iota // data is the issue
	onIssueID                     // data has its id as issueId
	onDraft                       // so it has, or it is a draft of an issue that was not there yet
	onRelation                    // data is a relation and has the ids of both issues, as fromId and toId
	onTicket                      // on none, but data may link one as issueId, which not everybody sees
	onNoIssue                     // the event's own header decides
)

// eventKinds are all types of events (Decision 44), for those who read the log and for
// webhooks, in the order of their bits. The declarations of the package's variables fill
// in eventKinds and eventsByName.
var (
	eventKinds   []*eventKind
	eventsByName = map[string]*eventKind{}
)

// newEventKind declares a type of event, as a variable of the package. Its bit depends on
// the order of the declarations; no EventSet is stored.
func newEventKind(name, resource string, hangs issueSource) *eventKind {
	switch {
	case eventsByName[name] != nil:
		panic("tracker: event type " + name + " is declared twice")
	case len(eventKinds) == maxEventKinds:
		panic("tracker: event type " + name + " is one more than an EventSet can hold")
	}
	k := &eventKind{name: name, resource: resource, issueFrom: hangs, bit: 1 << len(eventKinds)}
	eventKinds = append(eventKinds, k)
	eventsByName[name] = k
	return k
}

// EventTypes are the names of the types: first of those that hang on issues, then of
// the others, as they were declared.
func EventTypes() []string {
	mustBeDeclared()
	kinds := slices.Clone(eventKinds)
	slices.SortStableFunc(kinds, func(a, b *eventKind) int { return cmp.Compare(a.issueFrom, b.issueFrom) })
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// allEvents has every type, and those that a later version may bring.
const allEvents = ^EventSet(0)

const (
	// maxEventKinds is how many types an EventSet can hold besides otherEvent.
	maxEventKinds = 63
	// otherEvent is the type of events that this version does not know.
	otherEvent EventSet = 1 << maxEventKinds
)

// matchesEvent reports whether a pattern matches a type of event: a name, a family
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
	for _, k := range eventKinds {
		if matchesEvent(pattern, k.name) {
			set |= k.bit
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

// EventRights is the right that an operation on the event log needs: to read anything that
// there are events of. The events that a token sees are decided one by one.
const EventRights = "events"

// readableEvents are the types that the caller has the right to read.
func (c *Caller) readableEvents() EventSet {
	if c.Allows(Needs{Level: Read}) {
		return allEvents
	}
	var set EventSet
	for _, k := range eventKinds {
		if k.resource != "" && c.Allows(Needs{Read, k.resource}) {
			set |= k.bit
		}
	}
	return set
}

// wantedEvents returns those of the types asked for that the caller has the right to
// read; the error is FORBIDDEN if there are none.
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
