package tracker

import (
	"errors"
	"time"

	"switchyard/storage"
)

// SignInConsoleIn is a person whom the service's identity provider has confirmed.
type SignInConsoleIn struct {
	// Slug names the workspace; empty: the only one that has the person.
	Slug string
	Identity
	Life time.Duration
}

// Identity is a person at the identity provider.
type Identity struct {
	// Subject is the person's id there, and never another person's.
	Subject string `json:"subject"`
	// Email is an address that the provider has verified; empty: none.
	Email string `json:"email"`
}

// The reasons for which SignInConsole refuses a person.
const (
	// SignInUnknown: no member has this identity.
	SignInUnknown = "unknown"
	// SignInSeveral: several workspaces have the person, and none was named.
	SignInSeveral = "several"
)

// SignInConsole opens a console session for a person whom the identity provider has
// confirmed. The session is confined to its workspace unless the workspace has created the
// user: an admin may have given a member the id of a user of other workspaces.
var SignInConsole = NewWorkflow[SignInConsoleIn, OpenedConsole]("SignInConsole", "Open a console session for a confirmed person", Needs{Level: Public}, func(f Flow, in *SignInConsoleIn) (Reply, error) {
	candidates, err := signInCandidates(f, in.Slug)
	if err != nil {
		return Reply{}, err
	}
	var home storage.ID
	var user UserID
	for _, id := range candidates {
		found, err := ask[signInUser](f, id.raw(), signInUserOp, &in.Identity)
		switch {
		case isNotFound(err):
			continue // being deleted
		case err != nil:
			return Reply{}, err
		case found.User == "":
			continue
		case user != "":
			return Reply{}, Conflict("Several workspaces have a member with this identity.", "Open the address of one workspace, then sign in.").withReason(SignInSeveral)
		}
		home, user = id.raw(), found.User
	}
	if user == "" {
		return Reply{}, errNotMember()
	}
	caller := Caller{Principal: Principal{Type: ActorUser, ID: string(user), Home: home}}
	return f.CommandAs(permitSignedIn(home), caller, home, signInConsoleOp, &signInConsoleIn{Identity: in.Identity, Until: At(f.Now().Add(in.Life))})
}, Audits(auditToken))

func errNotMember() *Error {
	return Forbidden("No member of the workspace has this identity.", "Ask an admin to add a member with the address that the identity provider has verified, or to provision one with SCIM.").withReason(SignInUnknown)
}

// signInCandidates returns the workspaces to look for a person in.
func signInCandidates(f Flow, slug string) ([]WorkspaceID, error) {
	if slug == "" {
		known, err := ask[knownOut](f, storage.DirectoryID, knownWorkspacesOp, &knownIn{Limit: maxConsoleWorkspaces})
		if known.More {
			return nil, Conflict("There are too many workspaces to look for the person in all of them.", "Open the address of one workspace, then sign in.").withReason(SignInSeveral)
		}
		return known.IDs, err
	}
	if !isSlug(slug) {
		return nil, errNotMember()
	}
	step, err := ask[directoryStep](f, storage.DirectoryID, slugHolderOp, &WorkspaceBySlugIn{Slug: slug})
	if isNotFound(err) {
		return nil, errNotMember()
	}
	return []WorkspaceID{step.Workspace}, err
}

// signInUser is the member with an identity; User is empty if there is none.
type signInUser struct {
	User UserID `json:"user"`
}

var signInUserOp = NewQuery[Identity, signInUser]("SignInUser", "Find the member with an identity", Needs{}, func(v *View, in *Identity) (Reply, error) {
	user, err := v.identified(in)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, signInUser{user})
})

// identified returns the member with an identity, or "": the provisioned user whose
// externalId is the subject, or whose userName is the verified address, or else the only
// member with that address.
func (v *View) identified(in *Identity) (UserID, error) {
	if in.Subject != "" && indexable(in.Subject) {
		rows, err := v.scimUsersBy(scimByExternal, in.Subject)
		if err != nil {
			return "", err
		}
		if len(rows) == 1 {
			return v.activeUser(rows[0].Value.ID)
		}
	}
	if in.Email == "" || !indexable(in.Email) {
		return "", nil
	}
	rows, err := v.scimUsersBy(scimByName, foldName(in.Email))
	if err != nil {
		return "", err
	}
	for _, row := range rows {
		if sameAddress(row.Value.UserName, in.Email) {
			return v.activeUser(row.Value.ID)
		}
	}
	var found []UserID
	prefix := storage.Key(nil).Str(foldName(in.Email))
	err = v.Rows(memberByEmail, prefix, nil, func(fields, _ []byte) (bool, error) {
		m, err := members.Get(v, fields[len(prefix):])
		if err != nil || m == nil {
			return false, errors.Join(err, storage.ErrFormat)
		}
		if sameAddress(*m.Value.Email, in.Email) {
			found = append(found, m.Value.UserID)
		}
		return len(found) < 2, nil
	})
	if err != nil || len(found) != 1 {
		return "", err // two members with one address can't be told apart
	}
	return found[0], nil
}

// activeUser returns a provisioned user that is a member, or "".
func (v *View) activeUser(id UserID) (UserID, error) {
	m, err := v.member(id)
	if err != nil || m == nil {
		return "", err
	}
	return id, nil
}

// sameAddress reports whether two e-mail addresses are the same. Only ASCII letters are
// compared without their case: other letters may fold to one that looks alike.
func sameAddress(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if asciiLower(a[i]) != asciiLower(b[i]) {
			return false
		}
	}
	return true
}

func asciiLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

type signInConsoleIn struct {
	Identity Identity  `json:"identity"`
	Until    Timestamp `json:"until"`
}

// signInConsoleOp looks the member up again: the membership may have ended since.
var signInConsoleOp = NewCommand[signInConsoleIn, OpenedConsole]("SignInConsoleHere", "Make the token of a confirmed person's session", Needs{}, func(tx *Tx, in *signInConsoleIn) (Reply, error) {
	user, err := tx.identified(&in.Identity)
	if err != nil {
		return Reply{}, err
	}
	if user == "" || string(user) != tx.Caller.ID {
		return Reply{}, errNotMember()
	}
	issued, err := tx.issued(user)
	if err != nil {
		return Reply{}, err
	}
	// The role of the member decides; the permissions are the most that a token can have.
	return tx.addConsole("admin", tokenGrant{
		ActorType: ActorUser, ActorID: string(user), Permissions: permissionWords["admin"], Confined: !issued,
		CreatedByID: string(user), Sponsor: user, ExpiresAt: &in.Until,
	})
}, Audits(auditToken))
