package tracker

import (
	"slices"
	"strings"
)

// Form is a format of string values. The tag form:"name" gives it to a field of an
// input or an answer, or to the items of a list. The binder of a request refuses
// strings with a Fault; the API description shows the Schema, which is as strict as
// Fault or less.
type Form struct {
	// Schema holds the keywords of JSON Schema for the form.
	Schema map[string]any
	// Fault returns the fault of a text, or an empty string. It is nil if the operation
	// checks the value itself.
	Fault func(text string) string
}

// Forms are all forms by name.
var Forms = map[string]*Form{
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
	// The description does not use format email, which is narrower.
	"email": {
		Schema: map[string]any{"pattern": `^[^@]+@[\s\S]+$`, "examples": []any{"ada@example.com"}},
		Fault:  faultUnless(isEmail, "Must be an e-mail address."),
	},
	"source": {
		Schema: map[string]any{"pattern": "^[a-z0-9_.-]{1,64}$", "examples": []any{"mail"}},
		Fault:  sourceFault,
	},
	// The kind of the route decides which of the two it is.
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
				return "" // like an absent secret
			}
			return secretFault(text)
		},
	},
	"eventPattern": {
		Schema: map[string]any{"enum": eventPatterns()},
		Fault:  faultUnless(func(s string) bool { return eventsOf(s) != 0 }, "Must be a type of event such as issue.created, a family such as issue.*, or *."),
	},
	"eventTypes": {
		Schema: map[string]any{"pattern": wordsPattern(eventPatterns()), "examples": []any{"issue.*,session.ended"}},
	},
	"permissions": {
		Schema: map[string]any{
			"description": "Words with commas between, or a list of words.",
			"examples":    []any{"issues:write,sessions:read"},
			"oneOf": []any{
				map[string]any{"type": "string", "pattern": wordsPattern(PermissionWords())},
				// A union of a string and an enum would have generators make two types
				// of one name.
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
	"objectOrNull": {Schema: map[string]any{"type": []string{"object", "null"}}},
}

func faultUnless(good func(string) bool, fault string) func(string) string {
	return func(text string) string {
		if good(text) {
			return ""
		}
		return fault
	}
}

func isCurrency(s string) bool {
	return len(s) == 3 && !strings.ContainsFunc(s, func(r rune) bool { return (r|0x20) < 'a' || (r|0x20) > 'z' })
}

// isEmail reports whether there is text on both sides of an at sign; it checks no more.
func isEmail(s string) bool {
	at := strings.IndexByte(s, '@')
	return at >= 1 && at < len(s)-1
}

// eventPatterns lists the patterns of a subscription's events.
func eventPatterns() []string {
	all := []string{"*"}
	for _, name := range EventTypes {
		for i := range name {
			if family := name[:i] + ".*"; name[i] == '.' && !slices.Contains(all, family) {
				all = append(all, family)
			}
		}
		all = append(all, name)
	}
	return all
}

// wordsPattern returns a pattern for a comma-separated list of the words.
func wordsPattern(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strings.NewReplacer(".", `\.`, "*", `\*`).Replace(word)
	}
	word := " *(" + strings.Join(quoted, "|") + ") *"
	return "^" + word + "(," + word + ")*$"
}
