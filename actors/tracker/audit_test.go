package tracker

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func (w *testService) audit(credential string, id WorkspaceID, in *ListAuditIn) AuditPage {
	w.Helper()
	return decode[AuditPage](w, w.must(credential, id, ListAudit, in).Body)
}

func actions(p AuditPage) (all []string) {
	for _, e := range p.Entries {
		all = append(all, e.Action+" "+e.Target.ID)
	}
	return all
}

func TestAudit_SaysWhoChangedWhat(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	if got := actions(w.audit(user, org, &ListAuditIn{})); fmt.Sprint(got) != fmt.Sprint([]string{"workspace.created " + string(org)}) {
		t.Errorf("a new workspace has %q", got)
	}
	if e := w.audit(user, org, &ListAuditIn{}).Entries[0]; e.Actor != (AuditActor{string(home.Workspace.OwnerID), "user"}) {
		t.Errorf("onboarded by %+v, not by the new owner %s", e.Actor, home.Workspace.OwnerID)
	}
	token := decode[CreatedToken](t, w.must(user, org, CreateToken, &CreateTokenIn{Name: "robot"}, "key").Body)
	if !w.must(user, org, CreateToken, &CreateTokenIn{Name: "robot"}, "key").Replayed {
		t.Error("not a repeat")
	}
	if _, err := w.ask(user, org, DeleteToken, &DeleteTokenIn{ID: "no"}); err == nil {
		t.Error("deleted a token that is not there")
	}
	member, _ := w.member(home, RoleMember, "write")
	w.must(user, org, PatchMember, &PatchMemberIn{UserID: member, Role: RoleAdmin})
	secret := w.must(user, org, PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}, Secret: Some("hush-hush-hush")})
	w.must(user, org, PutInboundSecret, &PutInboundSecretIn{InboundSourceIn: InboundSourceIn{"mail"}})
	w.must(user, org, DeleteToken, &DeleteTokenIn{ID: token.ID})
	issue := decode[Issue](t, w.must(user, org, CreateIssue, &CreateIssueIn{Title: "x"}).Body)
	w.must(user, org, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "ann"})
	w.must(user, org, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "ann"}) // nothing changes
	w.must(user, org, CreateShare, &CreateShareIn{ID: string(issue.ID)})
	w.must("root", org, PutLimits, &PutLimitsIn{})
	w.must("root", org, PutLimits, &PutLimitsIn{Limits: LimitsIn{Issues: Some[int64](5)}})

	page := w.audit(user, org, &ListAuditIn{})
	want := []string{
		"limit.updated " + string(org), "limit.created " + string(org), "share.created " + string(issue.ID), "access.created " + string(issue.ID),
		"token.deleted " + string(token.ID), "inbound_secret.updated mail", "inbound_secret.created mail", "member.updated " + string(member),
	}
	got := actions(page)
	if len(got) < len(want) || fmt.Sprint(got[:len(want)]) != fmt.Sprint(want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	body := string(w.must(user, org, ListAudit, &ListAuditIn{}).Body)
	for _, hidden := range []string{"hush", token.Secret, string(secret.Body)} {
		if strings.Contains(body, hidden) {
			t.Errorf("the audit shows %q", hidden)
		}
	}
	if e := page.Entries[0]; e.Actor != (AuditActor{"root", "root"}) || e.Target.Type != "limit" || string(e.Changes["issues"].From) != "null" || string(e.Changes["issues"].To) != "5" || e.ID == "" || e.At == "" {
		t.Errorf("%+v", e)
	}
	if e := page.Entries[7]; string(e.Changes["role"].From) != `"member"` || string(e.Changes["role"].To) != `"admin"` || len(e.Changes) != 1 || e.Actor.Type != "user" {
		t.Errorf("%+v", e)
	}
	for name, c := range map[string]struct {
		in   ListAuditIn
		want int
	}{
		"action":   {ListAuditIn{Action: Some("token.deleted")}, 1},
		"kind":     {ListAuditIn{Action: Some("limit.*")}, 2},
		"unknown":  {ListAuditIn{Action: Some("lim*")}, 0},
		"actor":    {ListAuditIn{ActorID: Some("root")}, 2},
		"target":   {ListAuditIn{TargetID: Some("mail")}, 2},
		"both":     {ListAuditIn{TargetID: Some("mail"), Action: Some("*.created")}, 0},
		"from":     {ListAuditIn{From: Some(string(At(w.now.Add(time.Hour))))}, 0},
		"to":       {ListAuditIn{To: Some("2000-01-01T00:00:00Z")}, 0},
		"all time": {ListAuditIn{From: Some("2000-01-01T00:00:00Z"), To: Some(string(At(w.now.Add(time.Hour)))), Action: Some("workspace.created")}, 1},
	} {
		if n := len(w.audit(user, org, &c.in).Entries); n != c.want {
			t.Errorf("%s: %d entries, want %d", name, n, c.want)
		}
	}
	// Pages neither repeat nor skip, and a cursor belongs to its query.
	var walked []string
	in := &ListAuditIn{Limit: 3}
	for {
		p := w.audit(user, org, in)
		walked = append(walked, actions(p)...)
		if p.NextCursor == "" {
			break
		}
		in.Cursor = p.NextCursor
	}
	if fmt.Sprint(walked) != fmt.Sprint(got) {
		t.Errorf("pages have %q", walked)
	}
	_, err := w.ask(user, org, ListAudit, &ListAuditIn{Cursor: in.Cursor, ActorID: Some("root")})
	if err == nil || !strings.Contains(err.Error(), "Belongs to another query") {
		t.Errorf("a cursor of another query: %v", err)
	}
	w.verify()

	// The operator's acts are in the cluster's list too.
	w.pass(time.Second)
	cluster := actions(decode[AuditPage](t, w.must("root", "", ListClusterAudit, &ListAuditIn{}).Body))
	if fmt.Sprint(cluster) != fmt.Sprint([]string{"limit.updated " + string(org), "limit.created " + string(org)}) {
		t.Errorf("the cluster has %q", cluster)
	}
	w.must(user, org, DeleteWorkspace, &None{})
	if all := decode[AuditPage](t, w.must("root", "", ListClusterAudit, &ListAuditIn{Action: Some("workspace.*")}).Body); len(all.Entries) != 1 || all.Entries[0].Action != "workspace.deleted" {
		t.Errorf("%+v", all)
	}
}

// The entry of a token says for whom it acts and when it ends, and nothing of its secret.
func TestAudit_TokensActors(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	member, _ := w.member(home, RoleMember, "write")
	ends := At(w.now.Add(time.Hour))
	token := decode[CreatedToken](t, w.must(user, org, CreateToken, &CreateTokenIn{Name: "For another", UserID: member, ExpiresAt: Some(string(ends))}).Body)
	w.must(user, org, DeleteToken, &DeleteTokenIn{ID: token.ID})
	entries := w.audit(user, org, &ListAuditIn{TargetID: Some(string(token.ID))}).Entries
	if len(entries) != 2 || entries[0].Action != "token.deleted" || entries[1].Action != "token.created" {
		t.Fatalf("%+v", entries)
	}
	for field, value := range map[string]string{
		"name": `"For another"`, "permissions": `"write"`, "actorId": fmt.Sprintf("%q", member), "actorType": `"user"`,
		"createdById": fmt.Sprintf("%q", home.Workspace.OwnerID), "expiresAt": fmt.Sprintf("%q", ends),
	} {
		made, ended := entries[1].Changes[field], entries[0].Changes[field]
		if string(made.From) != "null" || string(made.To) != value || string(ended.From) != value || string(ended.To) != "null" {
			t.Errorf("%s: created %s to %s, deleted %s to %s, want %s", field, made.From, made.To, ended.From, ended.To, value)
		}
	}
	if n := len(entries[1].Changes); n != 6 {
		t.Errorf("%d fields: %+v", n, entries[1].Changes)
	}
}

func TestAudit_EndsAfterItsTime(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	w.pass(9599 * time.Hour)
	if n := len(w.audit("root", home.Workspace.ID, &ListAuditIn{}).Entries); n != 1 {
		t.Errorf("%d entries", n)
	}
	w.pass(48 * time.Hour)
	if n := w.rows(auditTable); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	w.verify()
}

func TestAudit_HasRequestAndAddress(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	req := &Request{ID: "req-1", Address: netip.MustParseAddr("192.0.2.7"), Workspace: home.Workspace.ID.raw(), Credential: home.Token.Secret}
	if err := w.admit(req, AddMember); err != nil {
		t.Fatal(err)
	}
	name := "Ann"
	if _, err := w.do(req, AddMember, &AddMemberIn{Name: Some(name)}); err != nil {
		t.Fatal(err)
	}
	if e := w.audit("root", home.Workspace.ID, &ListAuditIn{}).Entries[0]; e.Action != "member.created" || e.RequestID != "req-1" || e.Address != "192.0.2.7" || string(e.Changes["name"].To) != `"Ann"` {
		t.Errorf("%+v", e)
	}
}
