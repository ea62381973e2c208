package tracker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

var scimHere = SCIMBase{Base: "https://yard.example"}

// provider is an identity provider with a connection to a workspace.
type provider struct {
	*testService
	home  Onboarded
	token string
}

func newProvider(t tester) *provider {
	t.Helper()
	w := newTestService(t)
	p := &provider{testService: w, home: w.onboard("home")}
	p.token = p.connect("scim.users.read", "scim.users.write", "scim.groups.read", "scim.groups.write")
	return p
}

func (p *provider) connect(scopes ...string) string {
	p.Helper()
	in := &CreateSCIMConnectionIn{SCIMBase: scimHere, Scopes: scopes}
	return decode[CreatedSCIMConnection](p, p.must(p.home.Token.Secret, p.home.Workspace.ID, CreateSCIMConnection, in).Body).Token
}

func (p *provider) try(op *Op, in any) (Reply, error) {
	p.Helper()
	return p.ask(p.token, p.home.Workspace.ID, op, in)
}

func (p *provider) provision(op *Op, in any) Reply {
	p.Helper()
	return p.must(p.token, p.home.Workspace.ID, op, in)
}

func (p *provider) user(name string) SCIMUser {
	p.Helper()
	in := &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: name}}
	return decode[SCIMUser](p, p.provision(CreateSCIMUser, in).Body)
}

func (p *provider) shown(id UserID) SCIMUser {
	p.Helper()
	return decode[SCIMUser](p, p.provision(SCIMUserByID, &SCIMUserByIDIn{SCIMBase: scimHere, ID: id}).Body)
}

func (p *provider) active(id UserID, active bool) {
	p.Helper()
	p.provision(PatchSCIMUser, patchUser(id, "replace", "active", fmt.Sprint(active)))
}

func (p *provider) group(name string, members ...UserID) SCIMGroup {
	p.Helper()
	in := &CreateSCIMGroupIn{SCIMBase: scimHere, SCIMGroupIn: SCIMGroupIn{DisplayName: name}}
	for _, m := range members {
		in.Members.Set = true
		in.Members.Value = append(in.Members.Value, SCIMGroupMemberIn{Value: string(m)})
	}
	return decode[SCIMGroup](p, p.provision(CreateSCIMGroup, in).Body)
}

func (p *provider) membersOf(id TeamID) []UserID {
	p.Helper()
	g := decode[SCIMGroup](p, p.provision(SCIMGroupByID, &SCIMGroupByIDIn{SCIMBase: scimHere, ID: id}).Body)
	var all []UserID
	for _, m := range g.Members {
		all = append(all, UserID(m.Value))
	}
	return all
}

func (p *provider) teamOf(id TeamID) []UserID {
	p.Helper()
	list := decode[TeamMemberList](p, p.must(p.home.Token.Secret, p.home.Workspace.ID, ListTeamMembers, &TeamMembersIn{ID: id}).Body)
	var all []UserID
	for _, m := range list.Members {
		all = append(all, m.UserID)
	}
	return all
}

func operation(op, path, value string) SCIMOperations {
	one := SCIMOperation{Op: op, Value: json.RawMessage(value)}
	if path != "" {
		one.Path = Some(path)
	}
	return SCIMOperations{Operations: []SCIMOperation{one}}
}

func patchUser(id UserID, op, path, value string) *PatchSCIMUserIn {
	return &PatchSCIMUserIn{SCIMBase: scimHere, ID: id, SCIMOperations: operation(op, path, value)}
}

func patchGroup(id TeamID, op, path, value string) *PatchSCIMGroupIn {
	return &PatchSCIMGroupIn{SCIMBase: scimHere, ID: id, SCIMOperations: operation(op, path, value)}
}

// A refused PATCH has no effect, even if its first operations are valid.
func TestSCIMPatch_IsWholeOrNot(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ann := p.user("ann")
	g := p.group("Group")
	for _, second := range []SCIMOperation{
		{Op: "add", Path: Some("members"), Value: json.RawMessage(`[{"value":"nobody"}]`)},
		{Op: "replace", Path: Some("nothing"), Value: json.RawMessage(`1`)},
		{Op: "add", Path: Some("members.value"), Value: json.RawMessage(`"x"`)},
		{Op: "replace", Path: Some(`members[value eq "x"]`), Value: json.RawMessage(`{}`)},
		{Op: "remove", Path: Some(`members[display eq "x"]`)},
		{Op: "add", Path: Some("members")},
		{Op: "add", Path: Some("members"), Value: json.RawMessage(`["x"]`)},
		{Op: "add", Path: Some("members"), Value: json.RawMessage(`[{"value":5}]`)},
		{Op: "remove", Path: Some("displayName")},
	} {
		in := patchGroup(g.ID, "add", "members", fmt.Sprintf(`[{"value":%q}]`, ann.ID))
		in.Operations = append(in.Operations, SCIMOperation{Op: "replace", Path: Some("displayName"), Value: json.RawMessage(`"New"`)}, second)
		_, err := p.try(PatchSCIMGroup, in)
		wantCode(t, err, CodeBadRequest)
	}
	if got := p.membersOf(g.ID); got != nil {
		t.Errorf("members %v", got)
	}
	p.verify()
}

// A member is removed who satisfies all conditions of the filter.
func TestSCIMPatch_RemovesByAllConditions(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ann := p.user("ann").ID
	g := p.group("Group", ann)
	const id, other = `value eq "%[1]s"`, `value eq "other"`
	for _, filter := range []string{id + " and " + other, other + " and " + id, id + " and " + id + " and " + other, other + " and " + other + " and " + id} {
		filter = fmt.Sprintf("members["+filter+"]", ann)
		p.provision(PatchSCIMGroup, patchGroup(g.ID, "remove", filter, ""))
		if got := p.membersOf(g.ID); !slices.Equal(got, []UserID{ann}) {
			t.Errorf("after the removal of %s the members are %v", filter, got)
		}
	}
	p.provision(PatchSCIMGroup, patchGroup(g.ID, "remove", fmt.Sprintf("members["+id+" and "+id+" and "+id+"]", ann), ""))
	if got := p.membersOf(g.ID); got != nil {
		t.Errorf("the members are %v", got)
	}
	p.verify()
}

// The answer to a PATCH of a group shows the attributes that the request names, as they are
// after the change, and nothing if it names none.
func TestSCIMPatch_GroupWithAttributes(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ann := p.user("ann")
	g := p.group("Group", ann.ID)
	in := patchGroup(g.ID, "replace", "displayName", `"First"`)
	in.ExcludedAttributes = "members"
	if reply := p.provision(PatchSCIMGroup, in); reply.Outcome != NoContent || len(reply.Body) != 0 {
		t.Errorf("without attributes: %d %s", reply.Outcome, reply.Body)
	}
	in = patchGroup(g.ID, "replace", "displayName", `"Second"`)
	in.Attributes = "displayName"
	reply := p.provision(PatchSCIMGroup, in)
	if want := fmt.Sprintf(`{"displayName":"Second","id":%q,"schemas":[%q]}`, g.ID, scimGroupURN); reply.Outcome != Done || string(reply.Body) != want {
		t.Errorf("with displayName: %d %s", reply.Outcome, reply.Body)
	}
	bob := p.user("bob")
	in = patchGroup(g.ID, "add", "members", fmt.Sprintf(`[{"value":%q}]`, bob.ID))
	in.Attributes = "members.value"
	got := decode[SCIMGroup](p, p.provision(PatchSCIMGroup, in).Body)
	if len(got.Members) != 2 || got.DisplayName != "" || got.ID != g.ID {
		t.Errorf("with members: %+v", got)
	}
	p.verify()
}

// The operations on members take effect together: each user joins or leaves once, and the
// members are read once, however many operations name them or replace all.
func TestSCIMPatch_MembersChangeOnce(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ann, bob, eve := p.user("ann").ID, p.user("bob").ID, p.user("eve").ID
	g := p.group("Group", ann)
	members := func(op string, who ...UserID) SCIMOperation {
		list := []map[string]UserID{}
		for _, one := range who {
			list = append(list, map[string]UserID{"value": one})
		}
		value, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return SCIMOperation{Op: op, Path: Some("members"), Value: value}
	}
	for _, row := range []struct {
		operations []SCIMOperation
		want       []UserID
	}{
		{[]SCIMOperation{members("add", bob), members("remove", bob)}, []UserID{ann}},
		{[]SCIMOperation{members("remove", ann), members("add", ann, ann)}, []UserID{ann}},
		{[]SCIMOperation{members("replace"), members("replace", bob), members("replace", ann)}, []UserID{ann}},
	} {
		p.now = p.now.Add(time.Second)
		p.provision(PatchSCIMGroup, &PatchSCIMGroupIn{SCIMBase: scimHere, ID: g.ID, SCIMOperations: SCIMOperations{Operations: row.operations}})
		if got := p.membersOf(g.ID); !slices.Equal(got, row.want) {
			t.Errorf("members %v, want %v", got, row.want)
		}
	}
	if got := decode[SCIMGroup](p, p.provision(SCIMGroupByID, &SCIMGroupByIDIn{SCIMBase: scimHere, ID: g.ID}).Body); got.Meta.LastModified != g.Meta.LastModified {
		t.Errorf("operations without an effect together change the group")
	}
	p.provision(PatchSCIMGroup, &PatchSCIMGroupIn{SCIMBase: scimHere, ID: g.ID, SCIMOperations: SCIMOperations{
		Operations: []SCIMOperation{members("replace", bob, eve), members("remove", eve), members("add", ann), members("remove", bob)},
	}})
	if got := p.membersOf(g.ID); !slices.Equal(got, []UserID{ann}) {
		t.Errorf("members %v", got)
	}
	_, err := p.try(PatchSCIMGroup, &PatchSCIMGroupIn{SCIMBase: scimHere, ID: g.ID, SCIMOperations: SCIMOperations{
		Operations: []SCIMOperation{members("add", "nobody"), members("remove", "nobody")},
	}})
	wantReason(t, err, CodeBadRequest, scimInvalidValue)
	p.verify()
}

// A provider's changes leave agents and other members of a team alone.
func TestSCIMGroup_LeavesOthersAlone(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	root, org := p.home.Token.Secret, p.home.Workspace.ID
	ann, bob := p.user("ann"), p.user("bob")
	g := p.group("Group", ann.ID)
	bot := UserID(p.client(p.home, "read").ID)
	for _, who := range []UserID{p.home.Workspace.OwnerID, bot} {
		p.must(root, org, PutTeamMember, &TeamMemberIn{g.ID, who})
	}
	put := &PutSCIMGroupIn{SCIMBase: scimHere, ID: g.ID, SCIMGroupIn: SCIMGroupIn{DisplayName: "Group"}}
	p.provision(PutSCIMGroup, put) // the request has no members
	if got := p.membersOf(g.ID); !slices.Equal(got, []UserID{ann.ID}) {
		t.Errorf("members %v", got)
	}
	put.Members = Some([]SCIMGroupMemberIn{{Value: string(bob.ID)}})
	p.provision(PutSCIMGroup, put)
	if got := p.membersOf(g.ID); !slices.Equal(got, []UserID{bob.ID}) {
		t.Errorf("members %v", got)
	}
	p.provision(PatchSCIMGroup, patchGroup(g.ID, "remove", "members", ""))
	if got := p.teamOf(g.ID); len(got) != 2 || p.membersOf(g.ID) != nil {
		t.Errorf("the team has %v", got)
	}
	p.verify()
}

// The deletion of a group deletes its team, unless the team is needed.
func TestDeleteSCIMGroup(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	root, org := p.home.Token.Secret, p.home.Workspace.ID
	ann, bob := p.user("ann"), p.user("bob")
	empty, busy, first := p.group("Empty", ann.ID), p.group("Busy", ann.ID, bob.ID), p.group("Default")
	p.issue(root, org, busy.ID)
	p.must(root, org, PatchTeam, &PatchTeamIn{ID: first.ID, IsDefault: Some(true)})
	p.active(bob.ID, false)
	for _, g := range []SCIMGroup{empty, busy, first} {
		p.provision(DeleteSCIMGroup, &DeleteSCIMGroupIn{SCIMBase: scimHere, ID: g.ID})
		_, err := p.try(SCIMGroupByID, &SCIMGroupByIDIn{ID: g.ID})
		wantCode(t, err, CodeNotFound)
	}
	_, err := p.ask(root, org, TeamByID, &TeamByIDIn{empty.ID})
	wantCode(t, err, CodeNotFound)
	p.active(bob.ID, true)
	if got := p.teamOf(busy.ID); got != nil {
		t.Errorf("the team has %v", got)
	}
	p.must(root, org, TeamByID, &TeamByIDIn{first.ID})
	again := p.group("Busy") // the name is free again
	p.must(root, org, DeleteTeam, &TeamByIDIn{again.ID})
	p.group("Busy")
	p.verify()
}

// Team keys are derived from names in any script, and are unique.
func TestCreateSCIMGroup_Keys(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	for _, row := range [][2]string{
		{"Engineering", "ENGI"}, {"engine room", "ER"}, {"Engines", "ENGI2"}, {"Ünïcode Straße 4 all of us", "US4AO"},
		{"开发", "TEAM"}, {"测试", "TEAM2"}, {"x", "X"}, {"--", "TEAM3"}, {"General", "GENE"}, {"H o m e", "HOME2"},
	} {
		g := p.group(row[0])
		team := decode[Team](p, p.must(p.home.Token.Secret, p.home.Workspace.ID, TeamByID, &TeamByIDIn{g.ID}).Body)
		if team.Key != row[1] || team.Name != row[0] {
			t.Errorf("%s became %s", row[0], team.Key)
		}
	}
	p.verify()
}

// The version changes if, and only if, the shown attributes change.
func TestSCIM_Versions(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ann := p.user("ann")
	g := p.group("Group")
	before := p.shown(ann.ID).Meta.Version
	if again := p.shown(ann.ID).Meta.Version; again != before || before == "" {
		t.Errorf("version %s, then %s", before, again)
	}
	p.provision(PatchSCIMUser, patchUser(ann.ID, "replace", "userName", `"ann"`))
	reply := p.provision(SCIMUserByID, &SCIMUserByIDIn{SCIMBase: scimHere, ID: ann.ID, IfNoneMatch: `"x", ` + before})
	if reply.Outcome != NotModified {
		t.Errorf("outcome %d", reply.Outcome)
	}
	p.provision(PatchSCIMGroup, patchGroup(g.ID, "add", "members", fmt.Sprintf(`{"value":%q}`, ann.ID)))
	stale := patchUser(ann.ID, "replace", "active", "false")
	stale.IfMatch = before
	_, err := p.try(PatchSCIMUser, stale)
	wantCode(t, err, CodePreconditionFailed)
	_, err = p.try(DeleteSCIMGroup, &DeleteSCIMGroupIn{SCIMBase: scimHere, ID: g.ID, IfMatch: g.Meta.Version})
	wantCode(t, err, CodePreconditionFailed)
	stale.IfMatch = p.shown(ann.ID).Meta.Version
	p.provision(PatchSCIMUser, stale)
	p.verify()
}

// A connection expires; the provisioned users and groups stay for the next one.
func TestSCIMConnection_Expires(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	u := p.user("ann")
	short := decode[CreatedSCIMConnection](p, p.must(p.home.Token.Secret, p.home.Workspace.ID, CreateSCIMConnection, &CreateSCIMConnectionIn{Scopes: []string{"scim.users.read"}, ExpiresInDays: 1}).Body)
	if !strings.HasSuffix(short.BaseURL, "/scim/v2/"+string(p.home.Workspace.ID)) {
		t.Errorf("base %s", short.BaseURL)
	}
	p.pass(24*time.Hour - time.Minute)
	p.must(short.Token, p.home.Workspace.ID, ListSCIMUsers, &SCIMListIn{})
	p.pass(time.Minute)
	_, err := p.ask(short.Token, p.home.Workspace.ID, ListSCIMUsers, &SCIMListIn{})
	wantCode(t, err, CodeUnauthorized)
	list := decode[SCIMConnectionList](p, p.must(p.home.Token.Secret, p.home.Workspace.ID, ListSCIMConnections, &None{}).Body)
	if len(list.Connections) != 2 || list.Connections[0].Status != "expired" || list.Connections[1].Status != "active" {
		t.Errorf("connections %+v", list.Connections)
	}
	p.token = p.connect("scim.users.read")
	p.shown(u.ID)
	p.must(p.home.Token.Secret, p.home.Workspace.ID, DeleteWorkspace, &None{})
	if n := p.traces(p.home.Workspace.ID); n != 0 {
		t.Errorf("%d keys of a deleted workspace", n)
	}
}

// Ids that an admin chose for members are escaped in addresses.
func TestSCIM_OddIDs(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	odd := UserID("a/ü %")
	p.must(p.home.Token.Secret, p.home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(odd), Email: Some("odd@x.example")})
	u := p.user("odd@x.example")
	if u.ID != odd || u.Meta.Location != "https://yard.example/scim/v2/"+string(p.home.Workspace.ID)+"/Users/a%2F%C3%BC%20%25" {
		t.Errorf("made %+v at %s", u, u.Meta.Location)
	}
	g := p.group("Group", odd)
	if got := p.membersOf(g.ID); !slices.Equal(got, []UserID{odd}) {
		t.Errorf("members %q", got)
	}
	p.active(odd, false)
	p.active(odd, true)
	if got := p.membersOf(g.ID); !slices.Equal(got, []UserID{odd}) {
		t.Errorf("members %q", got)
	}
	for _, id := range []UserID{"", "x\x00y"} {
		_, err := p.try(SCIMUserByID, &SCIMUserByIDIn{ID: id})
		wantCode(t, err, CodeNotFound)
	}
	p.verify()
}

// The verifier finds each kind of damage.
func TestCheckSCIM_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(tx *Tx) error{
		"two of a name": func(tx *Tx) error {
			_, err := scimUsers.Insert(tx, &scimUser{ID: "x", SCIMUserAttributes: SCIMUserAttributes{UserName: "ANN"}})
			return err
		},
		"no team":   func(tx *Tx) error { return dropFirst(tx, &teams) },
		"no secret": func(tx *Tx) error { return dropFirst(tx, &oauthSecrets) },
		"no client": func(tx *Tx) error { return dropFirst(tx, &oauthClients) },
		"other permissions": func(tx *Tx) error {
			return oauthSecrets.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
				row, err := oauthSecrets.Decode(rec)
				if err != nil {
					return false, err
				}
				changed := row.Value
				changed.Permissions = 0xff
				_, err = oauthSecrets.Update(tx, row, &changed)
				return false, err
			})
		},
		"no sweep": func(tx *Tx) error { return tx.ClearTimer(timerSweepAccess, "") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.user("ann")
			p.group("Group")
			p.access(p.client(p.home, "read"), "")
			p.verify()
			p.must("root", p.home.Workspace.ID, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				return Reply{}, harm(tx)
			}), &None{})
			report, err := storage.Verify(t.Context(), p.db, Schema())
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Error("nothing was found")
			}
		})
	}
}
