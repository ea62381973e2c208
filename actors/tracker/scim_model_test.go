package tracker

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// scimModel is the expected state while a provider and an admin make random changes.
type scimModel struct {
	*provider
	t      *rapid.T
	users  map[UserID]*modelUser
	groups map[TeamID]bool
	made   int
}

type modelUser struct {
	active     bool
	teams      map[TeamID]bool // while active
	remembered map[TeamID]bool // stored at the deactivation
}

func (u *modelUser) now() map[TeamID]bool {
	if u.active {
		return u.teams
	}
	return u.remembered
}

// someUser draws a user; "" if there is none.
func (m *scimModel) someUser() UserID {
	all := m.ids()
	if len(all) == 0 {
		return ""
	}
	return rapid.SampledFrom(all).Draw(m.t, "user")
}

func (m *scimModel) ids() (all []UserID) {
	for id := range m.users {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

func (m *scimModel) someGroup() TeamID {
	var all []TeamID
	for id := range m.groups {
		all = append(all, id)
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return rapid.SampledFrom(all).Draw(m.t, "group")
}

func (m *scimModel) someUsers() []UserID {
	if len(m.users) == 0 {
		return nil
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(m.ids()), 0, min(3, len(m.users)), rapid.ID).Draw(m.t, "users")
}

func (m *scimModel) createUser() {
	m.made++
	active := rapid.Bool().Draw(m.t, "active")
	in := &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: fmt.Sprint("user", m.made), Active: json.RawMessage(fmt.Sprint(active))}}
	u := decode[SCIMUser](m, m.provision(CreateSCIMUser, in).Body)
	m.users[u.ID] = &modelUser{active: active, teams: map[TeamID]bool{}, remembered: map[TeamID]bool{}}
}

func (m *scimModel) setActive() {
	id := m.someUser()
	if id == "" {
		return
	}
	u, active := m.users[id], rapid.Bool().Draw(m.t, "active")
	m.active(id, active)
	if active && !u.active {
		u.teams, u.remembered = u.remembered, map[TeamID]bool{}
		for team := range u.teams {
			if !m.groups[team] {
				delete(u.teams, team)
			}
		}
	} else if !active && u.active {
		u.remembered = u.teams
	}
	u.active = active
}

func (m *scimModel) deleteUser() {
	if id := m.someUser(); id != "" {
		m.provision(DeleteSCIMUser, &DeleteSCIMUserIn{SCIMBase: scimHere, ID: id})
		delete(m.users, id)
	}
}

// adminChanges removes or adds a member behind the provider's back.
func (m *scimModel) adminChanges() {
	id := m.someUser()
	if id == "" {
		return
	}
	u := m.users[id]
	if u.active {
		m.must(m.home.Token.Secret, m.home.Workspace.ID, RemoveMember, &MemberIn{id})
	} else {
		m.must(m.home.Token.Secret, m.home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(id)})
	}
	u.active, u.teams = !u.active, map[TeamID]bool{}
}

func (m *scimModel) createGroup() {
	m.made++
	members := m.someUsers()
	g := m.group(fmt.Sprint("Group ", m.made), members...)
	m.groups[g.ID] = true
	for _, id := range members {
		m.users[id].now()[g.ID] = true
	}
}

func (m *scimModel) changeGroup() {
	g := m.someGroup()
	if g == "" {
		return
	}
	who := m.someUsers()
	list := []map[string]string{}
	for _, id := range who {
		list = append(list, map[string]string{"value": string(id)})
	}
	value, err := json.Marshal(list)
	if err != nil {
		m.Fatal(err)
	}
	op := rapid.SampledFrom([]string{"add", "remove", "replace"}).Draw(m.t, "op")
	m.provision(PatchSCIMGroup, patchGroup(g, op, "members", string(value)))
	if op == "replace" {
		// A user who is not shown in the group is not removed from it: a user whom an
		// admin added keeps the stored teams.
		for id, u := range m.users {
			if u.now()[g] && !slices.Contains(who, id) {
				delete(u.teams, g)
				delete(u.remembered, g)
			}
		}
	}
	for _, id := range who {
		if op == "remove" {
			delete(m.users[id].teams, g)
			delete(m.users[id].remembered, g)
		} else {
			m.users[id].now()[g] = true
		}
	}
}

func (m *scimModel) deleteGroup() {
	g := m.someGroup()
	if g == "" {
		return
	}
	if rapid.Bool().Draw(m.t, "by an admin") {
		m.must(m.home.Token.Secret, m.home.Workspace.ID, DeleteTeam, &TeamByIDIn{g})
	} else {
		m.provision(DeleteSCIMGroup, &DeleteSCIMGroupIn{SCIMBase: scimHere, ID: g})
	}
	delete(m.groups, g)
	for _, u := range m.users {
		delete(u.teams, g)
		delete(u.remembered, g)
	}
}

// compare checks the state as the provider and as the admin see it.
func (m *scimModel) compare() {
	list := decode[SCIMUserList](m, m.provision(ListSCIMUsers, &SCIMListIn{SCIMBase: scimHere, Count: Some(200)}).Body)
	if list.TotalResults != len(m.users) || len(list.Resources) != len(m.users) {
		m.t.Fatalf("%d users, should be %d", list.TotalResults, len(m.users))
	}
	members := 0
	for _, shown := range list.Resources {
		u := m.users[shown.ID]
		if u == nil || *shown.Active != u.active {
			m.t.Fatalf("user %+v, should be %+v", shown, u)
		}
		got := map[TeamID]bool{}
		for _, g := range shown.Groups {
			got[TeamID(g.Value)] = true
		}
		if fmt.Sprint(got) != fmt.Sprint(u.now()) {
			m.t.Fatalf("user %s is in %v, should be in %v", shown.ID, got, u.now())
		}
		if u.active {
			members++
		}
	}
	if n := len(decode[MemberList](m, m.must(m.home.Token.Secret, m.home.Workspace.ID, ListMembers, &PageIn{}).Body).Members); n != members+1 {
		m.t.Fatalf("%d members, should be %d and the owner", n, members)
	}
	groups := decode[SCIMGroupList](m, m.provision(ListSCIMGroups, &SCIMListIn{SCIMBase: scimHere, Count: Some(200)}).Body)
	if groups.TotalResults != len(m.groups) || len(groups.Resources) != len(m.groups) {
		m.t.Fatalf("%d groups, should be %d", groups.TotalResults, len(m.groups))
	}
	for _, shown := range groups.Resources {
		want := 0
		for _, u := range m.users {
			if u.now()[shown.ID] {
				want++
			}
		}
		for _, member := range shown.Members {
			if u := m.users[UserID(member.Value)]; u == nil || !u.now()[shown.ID] {
				m.t.Fatalf("group %s has %s", shown.ID, member.Value)
			}
		}
		if len(shown.Members) != want {
			m.t.Fatalf("group %s has %d members, should have %d", shown.ID, len(shown.Members), want)
		}
	}
}

// Both the provider and the admin see the results of all changes.
func TestSCIM_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := &scimModel{provider: newProvider(t), t: r, users: map[UserID]*modelUser{}, groups: map[TeamID]bool{}}
		acts := map[string]func(){
			"create": m.createUser, "activate": m.setActive, "delete": m.deleteUser, "admin": m.adminChanges,
			"group": m.createGroup, "change": m.changeGroup, "ungroup": m.deleteGroup,
		}
		names := []string{"create", "group", "change", "activate", "create", "change", "admin", "activate", "group", "change", "activate", "delete", "ungroup"}
		for range rapid.IntRange(20, 40).Draw(r, "steps") {
			acts[rapid.SampledFrom(names).Draw(r, "act")]()
			m.compare()
		}
		m.restart()
		m.pass(time.Minute)
		m.compare()
		m.verify()
	})
}
