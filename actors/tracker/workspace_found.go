package tracker

import (
	"fmt"

	"switchyard/storage"
)

// NewWorkspaceIn is a new workspace.
type NewWorkspaceIn struct {
	Name string `json:"name" rules:"required,min=1,max=200"`
	Slug string `json:"slug" rules:"required,min=1,max=64" form:"slug"`
	// Key is derived from the slug if it is absent.
	Key Opt[string] `json:"key" rules:"min=1,max=10" form:"key"`
}

func isSlug(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// key returns the workspace's key: the requested one, or the slug's letters and digits.
func (in *NewWorkspaceIn) key() string {
	if key, ok := upperKey(in.Key.Value); ok {
		return key
	}
	plain := make([]byte, 0, maxKey)
	for _, c := range []byte(in.Slug) {
		if keyByte(c) && len(plain) < maxKey {
			plain = append(plain, c)
		}
	}
	if key, ok := upperKey(string(plain)); ok {
		return key
	}
	return "WS" // the slug has hyphens only
}

// foundIn is the input of the step that makes a workspace in its own shard.
type foundIn struct {
	Name     string    `json:"name"`
	Slug     string    `json:"slug"`
	Key      string    `json:"key"`
	Owner    UserID    `json:"owner"`
	Reserved Timestamp `json:"reserved"` // the time when the slug was reserved
	// Again is set if the workspace was founded before, so that it isn't made a second
	// time after its deletion.
	Again bool `json:"again,omitempty"`
}

// foundOp makes a workspace with its owner only.
var foundOp = NewCommand[foundIn, Workspace]("FoundWorkspace", "Make a workspace", Needs{}, func(tx *Tx, in *foundIn) (Reply, error) {
	ws, err := tx.foundWorkspace(in)
	if err != nil {
		return Reply{}, err
	}
	body, err := workspaces.Insert(tx, ws)
	if err != nil {
		return Reply{}, fmt.Errorf("found a workspace: %w", err)
	}
	return Reply{Outcome: Created, Body: body}, nil
}, RunsWithoutWorkspace, Audits(auditWorkspace))

// onboardOp makes a workspace with its owner, a default team, and a token for the
// owner.
var onboardOp = NewCommand[foundIn, Onboarded]("OnboardWorkspaceHere", "Onboard a workspace", Needs{}, func(tx *Tx, in *foundIn) (Reply, error) {
	ws, err := tx.foundWorkspace(in)
	if err != nil {
		return Reply{}, err
	}
	team, _, err := tx.addTeam(Team{Key: in.Key, Name: "General", OwnerID: in.Owner, IsDefault: true, IsPublic: true})
	if err != nil {
		return Reply{}, err
	}
	ws.DefaultTeamID = &team.ID
	if _, err := workspaces.Insert(tx, ws); err != nil {
		return Reply{}, fmt.Errorf("found a workspace: %w", err)
	}
	grant := tokenGrant{ActorType: ActorUser, ActorID: string(in.Owner), Permissions: permissionWords["admin"], CreatedByID: string(in.Owner), Sponsor: in.Owner}
	token, err := tx.addToken("Onboarding", "admin", grant)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Created, Onboarded{Workspace: *ws, Team: *team, Token: *token})
}, RunsWithoutWorkspace, WithSecret, Audits(auditWorkspace))

// foundWorkspace makes the owner and returns the workspace, which the caller inserts. It refuses
// if the reservation is so old that the directory may give the slug to another.
func (tx *Tx) foundWorkspace(in *foundIn) (*Workspace, error) {
	there, err := tx.Has(workspaceTable, nil)
	if err != nil {
		return nil, fmt.Errorf("look for the workspace: %w", err)
	}
	if there {
		// Each run without a key has a new id. So this request ran before with its key,
		// and its answer is no longer kept: answers are kept here as long as in the
		// directory, but by another node's clock.
		return nil, Conflict("The workspace made with this Idempotency-Key exists, and its answer is no longer kept.", "Get the workspace by its slug, or use a new key and another slug.")
	}
	if in.Again {
		return nil, errWorkspaceGone()
	}
	if tx.now.Sub(in.Reserved.Time()) > foundWithin {
		return nil, NotApplied("The workspace could not be made in time.")
	}
	if _, err := tx.Next(memberChange, storage.ID{}); err != nil { // skips the number that is the owner's firstOwnerVersion
		return nil, err
	}
	// The workspace must not make credentials for its owner, who may be a known user,
	// so the owner does not count as issued.
	if _, err := tx.insertMember(&Member{UserID: in.Owner, Role: RoleOwner}, false); err != nil {
		return nil, err
	}
	if tx.Caller.ID == "" {
		tx.founder = in.Owner
	}
	return &Workspace{
		ID: WorkspaceID(tx.Workspace().String()), Name: in.Name, Slug: in.Slug, Key: &in.Key, OwnerID: in.Owner,
		CreatedAt: At(tx.now), UpdatedAt: At(tx.now),
	}, nil
}

// existence reports whether a workspace exists.
type existence struct {
	Exists bool `json:"exists"`
}

var existsOp = NewQuery[None, existence]("WorkspaceExists", "Tell whether a workspace is there", Needs{}, func(v *View, _ *None) (Reply, error) {
	there, err := v.Has(workspaceTable, nil)
	if err != nil {
		return Reply{}, fmt.Errorf("look for the workspace: %w", err)
	}
	return jsonReply(Done, existence{there})
})
