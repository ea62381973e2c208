package httpapi

import (
	"slices"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

// unaudited are changes that need owner, admin or operator and are no administrative acts.
var unaudited = []string{
	"CreateAgent", "PatchAgent", "DeleteAgent", // agents are a part of the content
	"TestWebhook", "Redeliver",
}

// TestRoutes_AdministrativeOnesAreAudited: the operation of a change for admins or
// the operator declares what the audit says of it.
func TestRoutes_AdministrativeOnesAreAudited(t *testing.T) {
	t.Parallel()
	administrative := []string{"/tokens", "/members", "/teams", "/permissions", "/share", "/oauth-clients", "/scim/", "/holds", "/budgets", "/retention"}
	for _, r := range Routes() {
		if r.Method == "GET" || slices.Contains(unaudited, r.Op.Name) {
			continue
		}
		concerns := r.Op.Needs.Level >= tracker.Admin || r.Op.SCIM != 0 ||
			slices.ContainsFunc(administrative, func(part string) bool { return strings.Contains(r.Path, part) })
		if concerns && len(r.Op.Audits) == 0 {
			t.Errorf("%s %s (%s) declares no Audits", r.Method, r.Path, r.Op.Name)
		}
	}
}
