package tracker

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	json "github.com/goccy/go-json"
)

// defaultPermissions are a token's permissions if its creation names none (Decision
// 10).
const defaultPermissions = "write"

// CreateTokenIn is a new workspace token.
type CreateTokenIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	// Permissions is a comma-separated string of words, or an array of words.
	Permissions json.RawMessage `json:"permissions" rules:"strings" form:"permissions" absent:"\"write\""`
	// ActorType defaults to user, or to agent if AgentID is set.
	ActorType ActorType `json:"actorType" enum:"user,agent"`
	Provider  string    `json:"provider" rules:"max=200"`
	// AgentID is the agent that an agent's token acts for; absent: a new one with the
	// token's id.
	AgentID string `json:"agentId" rules:"min=1,max=255"`
	// UserID is the member that a user's token acts for; absent: the caller.
	UserID UserID `json:"userId" rules:"min=1,max=255"`
	// ExpiresAt is the time when the token ends; absent or null: never.
	ExpiresAt Opt[string] `json:"expiresAt" rules:"nullable,datetime"`
}

// Validate checks what the tags can't express.
func (in *CreateTokenIn) Validate(faults *Faults) {
	if !faults.Has("permissions") {
		permissionFaults(in.Permissions, faults)
	}
	if in.ActorType == ActorUser && in.AgentID != "" {
		faults.Add("agentId", `Goes with actorType "agent" only.`)
	}
	if (in.ActorType == ActorAgent || in.AgentID != "") && in.UserID != "" {
		faults.Add("userId", `Goes with actorType "user" only.`)
	}
	if at := in.ExpiresAt.Ptr(); at != nil && !faults.Has("expiresAt") && snooze(at) == nil {
		faults.Add("expiresAt", "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
	}
}

// ValidateFor checks that the token's end lies ahead.
func (in *CreateTokenIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	if ends := snooze(in.ExpiresAt.Ptr()); ends != nil && *ends <= At(now) {
		faults.Add("expiresAt", faultPast)
	}
}

// permissionFaults adds the faults of a permissions field.
func permissionFaults(raw json.RawMessage, faults *Faults) {
	text, ok := permissionsText(raw)
	if !ok {
		faults.Add("permissions", "Must be a string or an array of strings.")
		return
	}
	if len(raw) == 0 {
		return
	}
	const known = "some of read, write, admin, issues:read, issues:write, sessions:read and sessions:write."
	if strings.Trim(text, ", ") == "" {
		faults.Add("permissions", "Must have at least one permission: "+known)
		return
	}
	if _, _, unknown := ParsePermissions(text); len(unknown) > 0 {
		const most = 5
		quoted := make([]string, 0, most)
		for _, word := range unknown[:min(len(unknown), most)] {
			quoted = append(quoted, fmt.Sprintf("%.40q", word))
		}
		faults.Add("permissions", "Unknown permission "+strings.Join(quoted, ", ")+". Use "+known)
	}
}

// CreateToken makes a workspace token. Its secret is in the answer, and stored as a
// hash.
var CreateToken = NewCommand[CreateTokenIn, CreatedToken]("CreateToken", "Create a workspace token", Needs{Level: Admin}, createToken, WithSecret, Answers(Created), Audits(auditToken))

func createToken(tx *Tx, in *CreateTokenIn) (Reply, error) {
	text, _ := permissionsText(in.Permissions)
	if text == "" {
		text = defaultPermissions
	}
	p, stored, _ := ParsePermissions(text)
	if !tx.Caller.Permissions.Includes(p) {
		return Reply{}, Forbidden("The token would have more permissions than the credential that creates it.", "Ask for permissions that the credential itself has.")
	}
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	grant, err := tx.grantFor(in, &faults)
	if err == nil {
		err = faults.Err()
	}
	if err != nil {
		return Reply{}, err
	}
	grant.Provider, grant.Permissions, grant.ExpiresAt = in.Provider, p, snooze(in.ExpiresAt.Ptr())
	grant.CreatedByID = tx.Caller.ID
	if grant.Sponsor, grant.Via, err = tx.responsible(); err != nil {
		return Reply{}, err
	}
	t, err := tx.addToken(in.Name, stored, grant)
	if err != nil {
		return Reply{}, err
	}
	if grant.ActorType == ActorAgent {
		// An agent's token without an agentId acts for the agent with the token's id.
		if err := tx.registerAgentOf(cmp.Or(in.AgentID, string(t.ID)), in.Name, in.Provider); err != nil {
			return Reply{}, err
		}
	}
	return jsonReply(Created, t)
}

// grantFor returns the grant of a token: its actor, and whether it is confined to this
// workspace (Decision 9). It adds a fault where the actor can't have a token.
func (tx *Tx) grantFor(in *CreateTokenIn, faults *Faults) (grant tokenGrant, err error) {
	if in.ActorType == ActorAgent || in.AgentID != "" {
		return tokenGrant{ActorType: ActorAgent, ActorID: in.AgentID, Confined: true}, nil
	}
	self := in.UserID == "" || tx.Caller.Type == ActorUser && string(in.UserID) == tx.Caller.ID
	if self && tx.Caller.Type == ActorUser {
		return tokenGrant{ActorType: ActorUser, ActorID: tx.Caller.ID, Confined: tx.confines()}, nil
	}
	if in.UserID == "" {
		faults.Add("userId", "Is required, since the credential is not a person's.")
		return grant, nil
	}
	m, err := tx.member(in.UserID)
	if err != nil {
		return grant, err
	}
	if m == nil {
		faults.Add("userId", "There is no such member.")
		return grant, nil
	}
	// A token for another user must not give its maker access to other workspaces:
	// otherwise an admin could add a stranger's id as a member here and make a token
	// for it. Only for users whom admins of this workspace created is the token as good
	// as one of their own.
	issued, err := tx.issued(in.UserID)
	if err != nil {
		return grant, err
	}
	free := tx.Caller.Root || issued && !tx.confines()
	return tokenGrant{ActorType: ActorUser, ActorID: string(in.UserID), Confined: !free}, nil
}
