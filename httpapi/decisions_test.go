package httpapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

// The decisions about the event log and the audit name every type of event and every kind of act.
func TestDecisions_NameEventsAndActs(t *testing.T) {
	t.Parallel()
	events, acts := decision(t, "44"), decision(t, "69")
	for _, name := range tracker.WebhookEventTypes() {
		if name != "webhook.test" && !strings.Contains(events, "`"+name+"`") { // is in no log
			t.Errorf("Decision 44 lacks %s", name)
		}
	}
	for _, r := range Routes() {
		for _, kind := range r.Op.Audits {
			if !strings.Contains(acts, "`"+kind+"`") && !strings.Contains(acts, "`"+kind+".") {
				t.Errorf("Decision 69 lacks %s", kind)
			}
		}
	}
}

// The decision about lengths names every length of a body other than the usual one.
func TestDecisions_NameLengthsOfBodies(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: &fakeEngine{}})
	if err != nil {
		t.Fatal(err)
	}
	lengths := decision(t, "91")
	for _, rt := range s.routes {
		named := fmt.Sprintf(" %d MiB", rt.maxBody>>20)
		if rt.maxBody < 1<<20 {
			named = fmt.Sprintf(" %d KiB", rt.maxBody>>10)
		}
		if !strings.Contains(lengths, named) {
			t.Errorf("Decision 91 lacks the%s of %s", named, rt.label)
		}
	}
}

// decision returns the text of a decision about the API.
func decision(t *testing.T, number string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, from, found := strings.Cut(string(text), "\n**Decision "+number+": ")
	if !found {
		t.Fatalf("there is no Decision %s", number)
	}
	body, _, _ := strings.Cut(from, "\n**Decision ")
	return body
}
