package tracker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// routingFixture is an inboundFixture with a second workspace that claims the same keys.
type routingFixture struct {
	*inboundFixture
	rival Onboarded
}

func newRouting(t *testing.T) *routingFixture {
	t.Helper()
	o := newInboundFixture(t)
	return &routingFixture{o, decode[Onboarded](o, o.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "Rival", Slug: "rival"}).Body)}
}

// put claims a key for a workspace, as its admin or as the operator.
func (r *routingFixture) put(of Onboarded, operator bool, key string) InboundRoute {
	r.Helper()
	credential := of.Token.Secret
	if operator {
		credential = "root"
	}
	return decode[PutInboundRouteOut](r, r.must(credential, of.Workspace.ID, PutInboundRoute, &InboundRouteIn{Kind: RouteVCS, Key: key}).Body).Route
}

// routes lists a workspace's routes as "key status".
func (r *routingFixture) routes(of Onboarded) (list []string) {
	r.Helper()
	for _, route := range decode[InboundRouteList](r, r.must(of.Token.Secret, of.Workspace.ID, ListInboundRoutes, &None{}).Body).Routes {
		if route.OrganizationID != of.Workspace.ID {
			r.Errorf("%+v is another workspace's", route)
		}
		list = append(list, route.Key+" "+string(route.Status))
	}
	return list
}

func (r *routingFixture) drop(of Onboarded, key string) {
	r.Helper()
	r.must(of.Token.Secret, of.Workspace.ID, DeleteInboundRoute, &InboundRouteIn{Kind: RouteVCS, Key: key})
}

// pushed sends an event of a repository and reports which workspaces have received it.
func (r *routingFixture) pushed(key string) (home, rival bool) {
	r.Helper()
	r.n++
	before := r.state()
	a := r.took(r.provider(ReceiveVCS, r.vcs("push", fmt.Sprintf(`{"repository":{"full_name":%q},"n":%d}`, key, r.n))))
	if stored := r.state() != before; stored != (a.EventID != "") {
		r.Errorf("answered %+v; something was stored: %t", a, stored)
	}
	has := func(of Onboarded) bool {
		list := decode[EventPage](r, r.must(of.Token.Secret, of.Workspace.ID, ListEvents, &ListEventsIn{Limit: 100}).Body)
		return a.EventID != "" && slices.ContainsFunc(list.Events, func(e Event) bool {
			return e.Type == eventVCS.name && strings.Contains(string(e.Data), a.EventID)
		})
	}
	return has(r.home), has(r.rival)
}

// A claim of another workspace neither receives anything, nor reveals or takes anything
// from the workspace that the operator has confirmed.
func TestInboundRoute_IsPendingUntilTheOperatorConfirmsIt(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	claim := r.put(r.rival, false, "acme/yard")
	if claim.Status != RoutePending || claim.OrganizationID != r.rival.Workspace.ID {
		t.Errorf("a claim is %+v", claim)
	}
	if home, rival := r.pushed("acme/yard"); home || rival {
		t.Errorf("without an active route delivered to home %t, rival %t", home, rival)
	}
	for range 2 { // the answer is the same with and without other claims, and when repeated
		if got := r.put(r.home, false, "acme/yard"); got.Status != RoutePending {
			t.Errorf("a second claim is %+v", got)
		}
		if got := r.put(r.rival, false, "acme/yard"); got != claim {
			t.Errorf("repeated: %+v, was %+v", got, claim)
		}
		if got := r.put(r.home, true, "acme/yard"); got.Status != RouteActive || got.OrganizationID != r.home.Workspace.ID {
			t.Errorf("confirmed: %+v", got)
		}
		r.drop(r.home, "acme/yard")
		if got := r.routes(r.home); len(got) != 0 {
			t.Errorf("after the deletion: %v", got)
		}
	}
	r.put(r.home, true, "acme/yard")
	if got := r.put(r.home, false, "acme/yard"); got.Status != RouteActive {
		t.Errorf("the holder's repeat: %+v", got)
	}
	if got := r.put(r.rival, false, "acme/yard"); got != claim {
		t.Errorf("beside an active route: %+v, was %+v", got, claim)
	}
	if home, rival := r.pushed("acme/yard"); !home || rival {
		t.Errorf("delivered to home %t, rival %t", home, rival)
	}
	r.verify()

	if got := r.put(r.rival, true, "acme/yard"); got.Status != RouteActive || got.CreatedAt != claim.CreatedAt {
		t.Errorf("moved: %+v", got)
	}
	if got := r.routes(r.home); len(got) != 0 {
		t.Errorf("after the move the former holder has %v", got)
	}
	if home, rival := r.pushed("acme/yard"); home || !rival {
		t.Errorf("after the move delivered to home %t, rival %t", home, rival)
	}
	r.put(r.home, false, "acme/yard")
	r.drop(r.rival, "acme/yard")
	if got := r.routes(r.home); len(got) != 1 || got[0] != "acme/yard pending" {
		t.Errorf("after the active route ended: %v", got)
	}
	if home, rival := r.pushed("acme/yard"); home || rival {
		t.Errorf("after the active route ended delivered to home %t, rival %t", home, rival)
	}
	r.verify()
}

func TestInboundRoute_OpenIsFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	r.inbound.OpenRoutes = true
	if first, second := r.put(r.home, false, "acme/yard"), r.put(r.rival, false, "acme/yard"); first.Status != RouteActive || second.Status != RoutePending {
		t.Errorf("first %+v, second %+v", first, second)
	}
	r.drop(r.home, "acme/yard")
	if got := r.routes(r.rival); len(got) != 1 || got[0] != "acme/yard pending" {
		t.Errorf("by itself the claim became %v", got)
	}
	if got := r.put(r.rival, false, "acme/yard"); got.Status != RouteActive {
		t.Errorf("repeated: %+v", got)
	}
	r.verify()
}

func TestInboundRoute_ClaimsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	const routes, claims = 7, 5
	r.inbound.Routes, r.inbound.Claims = routes, claims
	for i := range routes {
		r.put(r.home, i%2 == 0, fmt.Sprintf("acme/r%d", i))
	}
	_, err := r.ask(r.home.Token.Secret, r.home.Workspace.ID, PutInboundRoute, &InboundRouteIn{Kind: RouteVCS, Key: "acme/more"})
	wantCode(r.inboundFixture, err, CodeConflict)
	if refused := new(Error); !errors.As(err, &refused) || !strings.Contains(refused.Hint, "--inbound-routes-per-workspace") {
		t.Errorf("the error doesn't name its flag: %v", err)
	}
	if got := r.put(r.home, true, "acme/r1"); got.Status != RouteActive {
		t.Errorf("a full workspace's claim is not confirmed: %+v", got)
	}
	if got := r.routes(r.home); len(got) != routes {
		t.Errorf("%d routes are listed", len(got))
	}

	// The oldest claim of a key is dropped for a new one, and the newest stays.
	oldest := r.put(r.rival, false, "acme/wanted")
	var last Onboarded
	for i := range claims {
		last = decode[Onboarded](r, r.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "W", Slug: fmt.Sprintf("w-%d", i)}).Body)
		r.put(last, false, "acme/wanted")
	}
	if got := r.routes(r.rival); len(got) != 0 {
		t.Errorf("the oldest claim is still there: %v, %+v", got, oldest)
	}
	if got := r.routes(last); len(got) != 1 {
		t.Errorf("the newest claim is not there: %v", got)
	}
	r.verify()
}

func TestReviewInboundRoutes_ShowsTheOperatorAllOfThem(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	r.put(r.home, false, "acme/a")
	r.put(r.rival, false, "acme/a")
	r.put(r.home, true, "acme/b")
	review := func(in ReviewInboundRoutesIn) InboundRoutePage {
		t.Helper()
		return decode[InboundRoutePage](r, r.must("root", "", ReviewInboundRoutes, &in).Body)
	}
	first := review(ReviewInboundRoutesIn{Status: RoutePending, Limit: 1})
	second := review(ReviewInboundRoutesIn{Status: RoutePending, Limit: 1, Cursor: first.NextCursor})
	got := map[WorkspaceID]bool{}
	for _, route := range append(first.Routes, second.Routes...) {
		if route.Key != "acme/a" || route.Status != RoutePending {
			t.Errorf("%+v", route)
		}
		got[route.OrganizationID] = true
	}
	if len(got) != 2 || first.NextCursor == "" || second.NextCursor != "" {
		t.Errorf("pages %+v, %+v", first, second)
	}
	if active := review(ReviewInboundRoutesIn{Status: RouteActive, Limit: 50}).Routes; len(active) != 1 || active[0].Key != "acme/b" {
		t.Errorf("active: %+v", active)
	}
	_, err := r.ask(r.home.Token.Secret, "", ReviewInboundRoutes, &ReviewInboundRoutesIn{Status: RoutePending, Limit: 50})
	wantCode(r.inboundFixture, err, CodeForbidden)
}

// Routes that older versions stored have no status; all of them are active.
func TestInboundRoute_RowsWithoutAStatusAreActive(t *testing.T) {
	t.Parallel()
	r := newRouting(t)
	r.must("root", r.home.Workspace.ID, NewCommand[None, None]("old", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		_, err := inboundRoutes.Insert(tx, &InboundRoute{Kind: RouteVCS, Key: "acme/yard", OrganizationID: r.home.Workspace.ID, CreatedAt: At(tx.now)})
		return Reply{}, err
	}, InDirectory), &None{})
	if home, _ := r.pushed("acme/yard"); !home {
		t.Error("nothing was delivered")
	}
	if got := r.routes(r.home); len(got) != 1 || got[0] != "acme/yard active" {
		t.Errorf("listed: %v", got)
	}
	if got := r.put(r.home, false, "acme/yard"); got.Status != RouteActive {
		t.Errorf("put again: %+v", got)
	}
	r.verify()
}
