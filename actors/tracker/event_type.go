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
)

// eventKinds are all types of events (Decision 44). The order makes the bits of
// EventSet, which are kept nowhere.
var eventKinds = []eventKind{
	{"issue.created", "issues", onItself},
	{"issue.updated", "issues", onItself},
	{"issue.deleted", "issues", onItself},
	{"comment.created", "issues", onIssueID},
	{"comment.updated", "issues", onIssueID},
	{"comment.deleted", "issues", onIssueID},
	{"session.created", "sessions", onIssueID},
	{"session.updated", "sessions", onIssueID},
	{"session.ended", "sessions", onIssueID},
	{"session.escalated", "sessions", onIssueID},
	{"draft.created", "issues", onIssueID},
	{"draft.published", "issues", onIssueID},
	{"draft.discarded", "issues", onIssueID},
	{"ticket.created", "", onNoIssue},
	{"ticket.updated", "", onNoIssue},
	{"ticket.message", "", onNoIssue},
	{"deal.created", "", onNoIssue},
	{"deal.updated", "", onNoIssue},
	{"deal.deleted", "", onNoIssue},
	{"vcs.event", "", onNoIssue},
	{"comms.event", "", onNoIssue},
}

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

// parseEventTypes reads a comma-separated list of types, of families such as issue.*,
// and of *; empty: all. unknown are the words that name none.
func parseEventTypes(list string) (set EventSet, unknown []string) {
	if list == "" {
		return allEvents, nil
	}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		if word == "*" {
			set = allEvents
			continue
		}
		family, wild := strings.CutSuffix(word, "*")
		found := false
		for i, k := range eventKinds {
			if k.name == word || wild && strings.HasSuffix(family, ".") && strings.HasPrefix(k.name, family) {
				set, found = set|1<<i, true
			}
		}
		if !found {
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
