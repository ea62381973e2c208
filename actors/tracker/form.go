package tracker

import (
	"slices"
	"strings"
	"sync"
)

// Form is a form that a value must have beyond its type and its length. The tag
// form:"name" gives it to the field of an input or an answer, or to the items of a
// list. The reader of a request refuses texts with a Fault; the API description shows
// the Schema, which says the same as Fault or less.
type Form struct {
	// Schema are the keywords of JSON Schema for it.
	Schema map[string]any
	// Fault returns the fault of a text, or empty. Nil if the operation checks the value
	// itself.
	Fault func(text string) string
}

// Forms are all forms by name. They are made when they are first asked for, since some
// list the types of events.
var Forms = sync.OnceValue(func() map[string]*Form {
	return map[string]*Form{
		"slug": {
			Schema: map[string]any{"pattern": "^[a-z0-9-]{1,64}$", "examples": []any{"signal-box"}},
			Fault:  faultUnless(isSlug, "Must be 1 to 64 of a to z, 0 to 9 and hyphens."),
		},
		"key": {
			Schema: map[string]any{"pattern": "^[A-Za-z0-9]{1,10}$", "examples": []any{"CORE"}},
			Fault:  faultUnless(func(s string) bool { _, ok := upperKey(s); return ok }, "Must be 1 to 10 letters A to Z or digits."),
		},
		"repository": {
			Schema: map[string]any{"pattern": "^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", "examples": []any{"octo/hump"}},
			Fault:  faultUnless(isRepo, `Must be of the form "owner/name": letters, digits, underscores, dots and hyphens with one slash between.`),
		},
		"currency": {
			Schema: map[string]any{"pattern": "^[A-Za-z]{3}$", "examples": []any{"EUR"}},
			Fault:  faultUnless(isCurrency, "Must be a code of three letters, such as EUR."),
		},
		// The description does not say format email, which is narrower.
		"email": {
			Schema: map[string]any{"pattern": `^[^@]+@[\s\S]+$`, "examples": []any{"ada@example.com"}},
			Fault:  faultUnless(isEmail, "Must be an e-mail address."),
		},
		"source": {
			Schema: map[string]any{"pattern": "^[a-z0-9_.-]{1,64}$", "examples": []any{"mail"}},
			Fault:  sourceFault,
		},
		// Which of the two it is depends on the kind of the route.
		"routeKey": {
			Schema: map[string]any{"pattern": `^(\+?[0-9]{3,20}|[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100})$`, "examples": []any{"octo/hump"}},
		},
		"webhookURL": {
			Schema: map[string]any{"format": "uri", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://[^#]+$", "examples": []any{"https://example.com/hook"}},
			Fault:  webhookURLFault,
		},
		"webhookSecret": {
			Schema: map[string]any{"pattern": "^(whsec_[A-Za-z0-9+/]{32,86}={0,2})?$"},
			Fault: func(text string) string {
				if text == "" {
					return "" // as if it were left out
				}
				return secretFault(text)
			},
		},
		"eventPattern": {
			Schema: map[string]any{"enum": eventPatterns()},
			Fault:  faultUnless(func(s string) bool { return eventsOf(s) != 0 }, "Must be a type of event such as issue.created, a family such as issue.*, or *."),
		},
		"eventTypes": {
			// No types are as if the parameter were left out.
			Schema: map[string]any{"pattern": "^$|" + wordsPattern(eventPatterns()), "examples": []any{"issue.*,session.ended"}},
		},
		"permissions": {
			Schema: map[string]any{
				"description": "Words with commas between, or a list of words.",
				"examples":    []any{"issues:write,sessions:read"},
				"oneOf": []any{
					map[string]any{"type": "string", "pattern": wordsPattern(PermissionWords())},
					// A list of values would have generators make two types of one name.
					map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string", "pattern": wordsPattern(PermissionWords())}},
				},
			},
		},
		"resultSchema": {
			Schema: map[string]any{
				"description": `"lane", for the shape of result that agents report by themselves, or a JSON Schema (draft-07).`,
				"anyOf":       []any{map[string]any{"const": "lane"}, map[string]any{"type": "object"}, map[string]any{"type": "null"}},
			},
		},
		"holdScope": {
			Schema: map[string]any{"pattern": `^(workspace|agent:[\s\S]{1,255}|provider:[\s\S]{1,200})$`, "examples": []any{"workspace"}},
			Fault:  faultUnless(isHoldScope, "Must be workspace, agent: with the id of an agent, or provider: with a name."),
		},
		"budgetScope": {
			Schema: map[string]any{"pattern": `^(workspace|(agent|project|issue):[\s\S]{1,255})$`, "examples": []any{"workspace"}},
			Fault:  faultUnless(isBudgetScope, "Must be workspace, or agent:, project: or issue: with an id."),
		},
		"queuedAfter": {
			Schema: map[string]any{
				"description": "The id of an issue or a session, or a list of ids, all of which must be completed first.",
				"oneOf": []any{
					map[string]any{"type": "string", "minLength": 1, "maxLength": 255},
					map[string]any{"type": "array", "minItems": 1, "maxItems": maxQueuedAfter, "items": map[string]any{"type": "string", "minLength": 1, "maxLength": 255}},
				},
			},
		},
		"concurrencyKey": {
			Schema: map[string]any{"pattern": "^[!-~]{1,128}$", "examples": []any{"repo:octo/hump"}},
			Fault:  faultUnless(isConcurrencyKey, "Must be 1 to 128 visible ASCII characters, without spaces."),
		},
		"failureReason": {
			Schema: map[string]any{"pattern": "^[a-z0-9_]{1,64}$", "examples": []any{"rate_limited"}},
			Fault:  faultUnless(isFailureReason, "Must be 1 to 64 of a to z, 0 to 9 and underscores."),
		},
		"object":       {Schema: map[string]any{"type": "object"}},
		"objectOrNull": {Schema: map[string]any{"type": []string{"object", "null"}}},
	}
})

func faultUnless(good func(string) bool, fault string) func(string) string {
	return func(text string) string {
		if good(text) {
			return ""
		}
		return fault
	}
}

func isFailureReason(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func isCurrency(s string) bool {
	return len(s) == 3 && !strings.ContainsFunc(s, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
}

// isEmail asks for something on both sides of an at sign and no more.
func isEmail(s string) bool {
	at := strings.IndexByte(s, '@')
	return at >= 1 && at < len(s)-1
}

// eventPatterns lists what a subscription may ask for.
func eventPatterns() []string {
	all := []string{"*"}
	for _, name := range EventTypes() {
		for i := range name {
			if family := name[:i] + ".*"; name[i] == '.' && !slices.Contains(all, family) {
				all = append(all, family)
			}
		}
		all = append(all, name)
	}
	return all
}

// wordsPattern matches some of the words with commas between.
func wordsPattern(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strings.NewReplacer(".", `\.`, "*", `\*`).Replace(word)
	}
	word := " *(" + strings.Join(quoted, "|") + ") *"
	return "^" + word + "(," + word + ")*$"
}
