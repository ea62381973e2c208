package tracker

import (
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The schema of a form and its Fault agree: every text without a fault fits the schema
// and, if the schema is complete, no text with a fault does.
func TestForms_SchemaSaysWhatIsChecked(t *testing.T) {
	t.Parallel()
	whole := []string{"slug", "key", "repository", "currency", "email", "source", "eventPattern"}
	for name, form := range Forms() {
		if form.Fault == nil {
			continue
		}
		fits := func(string) bool { return true }
		if enum, ok := form.Schema["enum"].([]string); ok {
			fits = func(text string) bool { return slices.Contains(enum, text) }
		} else {
			fits = regexp.MustCompile(form.Schema["pattern"].(string)).MatchString
		}
		texts := rapid.OneOf(
			rapid.String(), rapid.StringMatching(`[a-zA-Z0-9._@/+-]{0,70}`), rapid.StringMatching(`[A-Za-z]{2,4}`), rapid.StringMatching(`[a-z]{1,7}(\.[a-z*]{1,8}){0,2}`),
			rapid.StringMatching(`[A-Za-z0-9._-]{1,4}/[A-Za-z0-9._-]{1,4}`), rapid.StringMatching(`(https?|HTTP)://[a-z0-9.]{1,9}(:[0-9]{0,3})?(/[a-z#?]{0,5})?`),
			rapid.StringMatching(`whsec_([A-Za-z0-9+/]{4}){7,22}([A-Za-z0-9]{2}==)?`), rapid.SampledFrom(eventPatterns()),
		)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				text := texts.Draw(t, "text")
				switch fault, fit := form.Fault(text), fits(text); {
				case fault == "" && !fit:
					t.Errorf("%q is good, and the schema refuses it", text)
				case fault != "" && fit && slices.Contains(whole, name):
					t.Errorf("%q fits the schema: %s", text, fault)
				}
			})
		})
	}
}

// The event log takes the lists of types that its description allows.
func TestForms_EventTypes(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(Forms()["eventTypes"].Schema["pattern"].(string))
	for text, want := range map[string]bool{
		"": true, "*": true, "issue.created": true, "issue.*, comment.created": true, " issue.* ": true,
		",": false, "issue.*,": false, " ": false, "issue": false, "issue.created comment.created": false,
	} {
		_, unknown := parseEventTypes(text)
		if pattern.MatchString(text) != want || (len(unknown) == 0) != want {
			t.Errorf("%q: unknown are %q, fits the schema: %t", text, unknown, pattern.MatchString(text))
		}
	}
}
