package tracker

import (
	"slices"

	"switchyard/storage"
)

// takeTimer sets a timer of work that was begun.
func takeTimer(im *importing, data []byte) error {
	var t Timer
	if err := im.decode(data, &t); err != nil {
		return err
	}
	is := transferredTimers[t.Kind]
	if is == nil {
		return im.refuse("Unknown work of kind %q.", t.Kind)
	}
	if len(t.Subject) > maxTimerSubject || !is(t.Subject) {
		return im.refuse("data.subject is not a subject of work of kind %q.", t.Kind)
	}
	return im.tx.SetTimer(t.Kind, t.Subject, t.Due.Time())
}

// maxTimerSubject bounds the subject of an imported timer, in bytes. The longest is that of
// timerBudgetEnd: the place in an index, in hexadecimal, has the id of an agent, and the scope
// has one too.
const maxTimerSubject = 4096

func isID(subject string) bool {
	_, ok := storage.ParseID(subject)
	return ok
}

// isCascade reports whether a subject is that of work of the rules of Decision 21.
func isCascade(subject string) bool {
	c, err := parseCascade(subject)
	return err == nil && c.actor.ID != "" && len(c.actor.ID) <= 4*255 && slices.Contains(c.actor.Type.EnumValues(), string(c.actor.Type))
}

// isScopeSubject reports whether a subject is that of a scope which is suspended or resumed.
// Its text must be as the service writes it: the timer of another one would stay.
func isScopeSubject(subject string) bool {
	reason, scope, ok := parseScopeSubject(subject)
	if !ok || subject != scopeSubject(reason, scope) {
		return false
	}
	return reason == parkBudget && isBudgetScope(scope) || reason == parkHold && isHoldScope(scope)
}

func isBudgetEnd(subject string) bool {
	_, _, ok := parseBudgetEnd(subject)
	return ok
}

// isHappening reports whether a subject is that of something that sessions wait for.
func isHappening(subject string) bool {
	h, err := parseHappening(subject)
	return err == nil && len(h.state) <= 255 && faultOfTime(h.at) == ""
}
