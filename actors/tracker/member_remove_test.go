package tracker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// crowd makes n tokens with long index entries, and an OAuth client, that end with a member:
// of the tokens every other one has the member as its sponsor.
func (p *provider) crowd(user UserID, n int) {
	p.Helper()
	long := strings.Repeat("\U0001F600", 250)
	const most = 1_000
	for first := 0; first < n; first += most {
		p.must("root", p.home.Workspace.ID, NewCommand[None, None]("crowd", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			for i := first; i < min(first+most, n); i++ {
				g := tokenGrant{ActorType: ActorAgent, ActorID: fmt.Sprint(long, i), Permissions: permissionWords["write"], Confined: true, Sponsor: user}
				if i%2 == 1 {
					g.Sponsor, g.Via = UserID(long), []UserID{user}
				}
				if _, err := tx.addToken("x", "write", g); err != nil {
					return Reply{}, err
				}
			}
			return Reply{}, nil
		}), &None{})
	}
	token := p.testService.token(p.home, &CreateTokenIn{UserID: user, Permissions: words("admin")})
	p.must(token, p.home.Workspace.ID, CreateOAuthClient, &CreateOAuthClientIn{Name: "x"})
}

// A member can be removed who has made more credentials than one batch can end. The member
// goes with the last of them.
func TestRemoveMember_WithMoreCredentialsThanOneBatchEnds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		tokens int
		remove func(p *provider, id UserID)
	}{
		"by an admin": {7_000, func(p *provider, id UserID) {
			p.must(p.home.Token.Secret, p.home.Workspace.ID, RemoveMember, &MemberIn{id})
		}},
		"by a PATCH": {1_100, func(p *provider, id UserID) { p.active(id, false) }},
		"by a PUT": {1_100, func(p *provider, id UserID) {
			p.provision(PutSCIMUser, &PutSCIMUserIn{SCIMBase: scimHere, ID: id, SCIMUserIn: SCIMUserIn{UserName: "ann", Active: json.RawMessage("false")}})
		}},
		"by a DELETE": {1_100, func(p *provider, id UserID) {
			p.provision(DeleteSCIMUser, &DeleteSCIMUserIn{SCIMBase: scimHere, ID: id})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			id := p.user("ann@x.example").ID
			p.must(p.home.Token.Secret, p.home.Workspace.ID, PatchMember, &PatchMemberIn{id, RoleAdmin})
			p.crowd(id, row.tokens)
			p.endsInBatches(id, func() { row.remove(p, id) })
		})
	}
	t.Run("by a POST", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t)
		m := decode[Member](t, p.must(p.home.Token.Secret, p.home.Workspace.ID, AddMember, &AddMemberIn{Email: Some("ann@x.example"), Role: RoleAdmin}).Body)
		p.crowd(m.UserID, 1_100)
		p.endsInBatches(m.UserID, func() {
			in := &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: "ann@x.example", Active: json.RawMessage("false")}}
			if u := decode[SCIMUser](t, p.provision(CreateSCIMUser, in).Body); u.ID != m.UserID || *u.Active {
				t.Errorf("the user is %+v", u)
			}
		})
	})
}

// The caller's own credential may end with the member. It is valid until the last batch, so that
// the caller can repeat a removal that failed between two batches.
func TestRemoveMember_ByACredentialThatEndsWithTheMember(t *testing.T) {
	t.Parallel()
	admins := words("admin")
	for name, credential := range map[string]func(p *provider, token string, other UserID) string{
		"the member's own": func(p *provider, token string, _ UserID) string {
			return p.mintAs(token, p.home, CreateTokenIn{Permissions: admins}).Secret
		},
		"a token for another admin": func(p *provider, token string, other UserID) string {
			return p.mintAs(token, p.home, CreateTokenIn{UserID: other, Permissions: admins}).Secret
		},
		"a token that an agent made": func(p *provider, token string, other UserID) string {
			agent := p.mintAs(token, p.home, CreateTokenIn{AgentID: "claude", Permissions: admins}).Secret
			return p.mintAs(agent, p.home, CreateTokenIn{UserID: other, Permissions: admins}).Secret
		},
		"a console session": func(p *provider, token string, _ UserID) string {
			opener := p.mintAs(token, p.home, CreateTokenIn{Permissions: admins}).Secret
			return decode[OpenedConsole](p, p.must("", "", OpenConsole, &OpenConsoleIn{Token: opener, Life: time.Hour}).Body).Secret
		},
		"an OAuth client": func(p *provider, token string, _ UserID) string {
			var newest CreatedOAuthClient
			for range maxBudgetRecords + 1 {
				newest = decode[CreatedOAuthClient](p, p.must(token, p.home.Workspace.ID, CreateOAuthClient, &CreateOAuthClientIn{Name: "x", Permissions: admins}).Body)
			}
			return p.access(newest, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			ann, token := p.member(p.home, RoleAdmin, "admin")
			bob, _ := p.member(p.home, RoleAdmin, "admin")
			p.crowd(ann, 2*maxBudgetRecords)
			caller := credential(p, token, bob)
			batches := 0 // that begin with the member
			p.note = func(workspace storage.ID, _ *WriteBuffer, _ []byte) {
				if workspace != p.home.Workspace.ID.raw() || !p.isMember(ann) {
					return
				}
				batches++
				if !p.good(caller, p.home.Workspace.ID) {
					t.Errorf("the caller's credential has ended before batch %d", batches)
				}
			}
			p.must(caller, p.home.Workspace.ID, RemoveMember, &MemberIn{ann})
			p.note = nil
			// The owner's own token stays, and the owner's ones for the members.
			if n, clients := p.rows(grantTable), p.rows(oauthSecretTable); n != 4 || clients != 0 || batches < 3 || p.isMember(ann) {
				t.Errorf("%d tokens and %d OAuth clients are left after %d batches", n, clients, batches)
			}
			if p.good(caller, p.home.Workspace.ID) {
				t.Error("the caller's credential is still valid")
			}
			p.verify()
		})
	}
}

// isMember reports whether a user is a member.
func (p *provider) isMember(id UserID) bool {
	p.Helper()
	v := p.view(p.home.Workspace.ID.raw())
	there, err := v.Has(memberTable, memberKey(nil, id))
	if err != nil {
		p.Fatal(err)
	}
	return there
}

// endsInBatches checks that a removal ends the credentials of a crowd in several batches, and
// the membership in the last.
func (p *provider) endsInBatches(id UserID, remove func()) {
	p.Helper()
	home := p.home.Workspace.ID.raw()
	var left []int // tokens before each batch that begins with the member
	p.note = func(workspace storage.ID, _ *WriteBuffer, repr []byte) {
		if workspace == home && p.isMember(id) {
			left = append(left, p.rows(grantTable))
		}
		if len(repr) > maxCommandBytes {
			p.Errorf("a batch of %d bytes", len(repr))
		}
	}
	remove()
	p.note = nil
	for i := 1; i < len(left); i++ {
		if left[i] >= left[i-1] {
			p.Errorf("the batches began with %v tokens", left)
		}
	}
	// The owner's token stays, and the owner's one for the member.
	if n, clients := p.rows(grantTable), p.rows(oauthSecretTable); n != 2 || clients != 0 || len(left) < 2 || p.isMember(id) {
		p.Errorf("%d tokens and %d OAuth clients are left after %d batches", n, clients, len(left))
	}
	p.verify()
}
