package tracker

import (
	"errors"
	"fmt"
	"strings"

	"switchyard/storage"
)

// ConsoleSession describes a credential to the console: its actor, its rights and its
// workspaces.
type ConsoleSession struct {
	Kind string `json:"kind" enum:"member,root"`
	// ActorID is the user or the agent; "root" for the operator.
	ActorID   string  `json:"actorId"`
	ActorType *string `json:"actorType"`
	Name      *string `json:"name"`
	Email     *string `json:"email"`
	// Role is the role in the workspace that stores the token.
	Role        *string `json:"role"`
	Permissions string  `json:"permissions"`
	// Workspaces are the newest 50 that the credential gives access to.
	Workspaces []ConsoleWorkspace `json:"workspaces"`
	ExpiresAt  *Timestamp         `json:"expiresAt"`
}

// ConsoleWorkspace names a workspace.
type ConsoleWorkspace struct {
	ID   WorkspaceID `json:"id"`
	Slug string      `json:"slug"`
	Name string      `json:"name"`
}

// DescribeConsole describes the caller's credential. It returns UNAUTHORIZED for one that
// gives access to no workspace.
var DescribeConsole = NewWorkflow[None, ConsoleSession]("DescribeConsole", "Describe a console session", Needs{Level: Identified}, func(f Flow, _ *None) (Reply, error) {
	caller := &f.Request().Caller
	s := ConsoleSession{Kind: "root", ActorID: caller.ID, Permissions: strings.Join(permissionNames(caller.Permissions), ","), Workspaces: []ConsoleWorkspace{}}
	if !caller.Root {
		if err := s.describe(f); err != nil {
			return Reply{}, err
		}
	}
	known, err := knownWorkspaces(f, nil, maxConsoleWorkspaces)
	if err != nil {
		return Reply{}, err
	}
	for _, id := range known.IDs[:min(len(known.IDs), maxConsoleWorkspaces)] {
		w, err := ask[ConsoleWorkspace](f, id.raw(), consoleWorkspaceOp, &openIn{caller.Principal})
		if isNotFound(err) {
			continue // being deleted, or the membership has ended
		}
		if err != nil {
			return Reply{}, err
		}
		s.Workspaces = append(s.Workspaces, w)
	}
	if !caller.Root && len(s.Workspaces) == 0 {
		return Reply{}, &Error{Code: CodeUnauthorized, Message: "The credential gives access to no workspace any more.", Hint: "Ask an admin of the workspace to add the member again, then sign in."}
	}
	return jsonReply(Done, &s)
})

// describe fills in the actor of a workspace token.
func (s *ConsoleSession) describe(f Flow) error {
	caller := &f.Request().Caller
	kind := string(caller.Type)
	s.Kind, s.ActorType = "member", &kind
	if !caller.Expires.IsZero() {
		at := At(caller.Expires)
		s.ExpiresAt = &at
	}
	actor, err := ask[consoleActor](f, caller.Home, consoleActorOp, &openIn{caller.Principal})
	if isNotFound(err) {
		return nil // not a member where the token is stored
	}
	s.Name, s.Email, s.Role = actor.Name, actor.Email, actor.Role
	return err
}

// consoleActor is a user or an agent in the workspace of its token.
type consoleActor struct {
	Name  *string `json:"name"`
	Email *string `json:"email"`
	Role  *string `json:"role"`
}

var consoleActorOp = NewQuery[openIn, consoleActor]("ConsoleActor", "Describe the actor of a token", Needs{}, func(v *View, in *openIn) (Reply, error) {
	caller, err := ResolveCaller(v.Reader(), in.Principal)
	if err != nil {
		return Reply{}, err
	}
	role := string(caller.Role)
	actor := consoleActor{Role: &role}
	if caller.Type == ActorUser {
		m, err := v.member(UserID(caller.ID))
		if err != nil {
			return Reply{}, err
		}
		if m != nil {
			actor.Name, actor.Email = m.Value.Name, m.Value.Email
		}
		return jsonReply(Done, &actor)
	}
	a, err := v.agent(caller.ID)
	if err != nil {
		return Reply{}, err
	}
	if a != nil {
		actor.Name = &a.Value.Name
	}
	return jsonReply(Done, &actor)
})

// consoleWorkspaceOp names the workspace to a principal that has access to it.
var consoleWorkspaceOp = NewQuery[openIn, ConsoleWorkspace]("ConsoleWorkspace", "Name a workspace", Needs{}, func(v *View, in *openIn) (Reply, error) {
	if _, err := ResolveCaller(v.Reader(), in.Principal); err != nil {
		return Reply{}, err
	}
	w, err := v.workspace()
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, ConsoleWorkspace{ID: w.Value.ID, Slug: w.Value.Slug, Name: w.Value.Name})
})

// EndConsoleIn says which console sessions end.
type EndConsoleIn struct {
	// Everywhere ends all console sessions of the caller.
	Everywhere bool
}

// EndConsole ends the caller's console session, or all of the caller's. For a credential
// that is not a console session it ends none, or all of its actor's.
var EndConsole = NewWorkflow[EndConsoleIn, None]("EndConsole", "End a console session", Needs{Level: Identified}, func(f Flow, in *EndConsoleIn) (Reply, error) {
	caller := f.Request().Caller
	credential, err := ParseCredential(f.Request().Credential)
	if err != nil {
		return Reply{}, err
	}
	if credential.Kind != WorkspaceToken {
		return Reply{Outcome: NoContent}, nil // opens no sessions
	}
	reply, err := f.CommandAs(permitSecret(credential.Home), caller, credential.Home, endConsoleOp, &endConsoleIn{Credential: credential, Everywhere: in.Everywhere})
	if err != nil || !in.Everywhere || caller.Confined {
		return reply, err
	}
	return reply, endConsolesElsewhere(f, credential.Home)
}, Audits(auditToken))

// endConsolesElsewhere ends the caller's console sessions in all other workspaces of the caller.
// Those in workspaces that the caller has left ended with the membership. A workspace that can't
// do so now, as a read-only one, does not keep the sessions of others.
func endConsolesElsewhere(f Flow, home storage.ID) error {
	caller := f.Request().Caller
	var failed error
	var after []byte
	for {
		known, err := knownWorkspaces(f, after, maxConsoleWorkspaces)
		if err != nil {
			return err
		}
		for _, id := range known.IDs {
			after = id.listKey()
			if id.raw() == home {
				continue
			}
			if _, err := f.CommandAs(permitOwn(id.raw()), caller, id.raw(), endConsolesOp, &None{}); err != nil && !isNotFound(err) {
				failed = err
			}
		}
		if !known.More {
			break
		}
	}
	if failed == nil {
		return nil
	}
	var refusal *Error
	if errors.As(failed, &refusal) && refusal.Code == CodeUnavailable {
		return &Error{
			Code: CodeUnavailable, Message: "Sessions in some of the workspaces have not ended: " + refusal.Message, Hint: "Sign in again later, and end all sessions once more.",
			Details: OutcomeDetails{"unknown"}, RetryAfter: refusal.RetryAfter,
		}
	}
	return failed
}

type endConsoleIn struct {
	Credential Credential `json:"credential"`
	Everywhere bool       `json:"everywhere"`
}

var endConsoleOp = NewCommand[endConsoleIn, None]("EndConsoleHere", "End a console session's token", Needs{}, func(tx *Tx, in *endConsoleIn) (Reply, error) {
	key := storage.Key(nil).DescID(in.Credential.ID)
	row, err := tokenGrants.Get(tx, key)
	if err != nil {
		return Reply{}, fmt.Errorf("read a console session: %w", err)
	}
	if in.Credential.Kind != WorkspaceToken || row == nil || !in.Credential.matches(row.Value.Hash) {
		return Reply{}, Unauthorized()
	}
	if in.Everywhere {
		return tx.endConsoles(row.Value.ActorType, row.Value.ActorID)
	}
	if row.Value.Console {
		_, err = tx.endToken(key)
	}
	return Reply{Outcome: NoContent}, err
}, WithSpaceEffect(FreesSpace), Audits(auditToken))

// endConsolesOp ends the console sessions of a caller in a workspace that does not store the
// caller's token.
var endConsolesOp = NewCommand[None, None]("EndConsoles", "End a user's console sessions", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
	if tx.Caller.Confined {
		return Reply{}, errNoRights("the end of sessions elsewhere")
	}
	return tx.endConsoles(tx.Caller.Type, tx.Caller.ID)
}, WithSpaceEffect(FreesSpace), Audits(auditToken))

func (tx *Tx) endConsoles(kind ActorType, id string) (Reply, error) {
	keys, err := tx.consolesBy(consoleOf(kind), id)
	if err != nil {
		return Reply{}, err
	}
	for _, key := range keys {
		if _, err := tx.endToken(key); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
}
