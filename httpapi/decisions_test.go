package httpapi

import (
	"os"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

// The decisions about the event log and the audit name every type of event and every kind of act.
func TestDecisions_NameEventsAndActs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	decision := func(number string) string {
		_, from, found := strings.Cut(string(text), "\n**Decision "+number+": ")
		if !found {
			t.Fatalf("there is no Decision %s", number)
		}
		body, _, _ := strings.Cut(from, "\n**Decision ")
		return body
	}
	events, acts := decision("44"), decision("69")
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
