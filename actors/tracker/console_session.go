package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// A console session is a workspace token that the service makes when somebody signs in to
// the console (Decision 93). Its secret is the value of the browser's cookie. It acts for
// the same actor, with the same rights, as the token that opened it.

const (
	consoleTokenName = "Console"
	// maxConsoleSessions bounds the console sessions of a user or an agent in a workspace.
	// A new one ends the oldest.
	maxConsoleSessions = 20
	// maxConsoleWorkspaces bounds the workspaces that a console session names, and those in
	// which a user is looked for.
	maxConsoleWorkspaces = 50
)

// consoleOf is used as the actor type in index entries of console sessions by their actor,
// and openedWith in those by the token that opened them.
func consoleOf(t ActorType) ActorType { return "console." + t }

const openedWith ActorType = "console from"

// OpenConsoleIn opens a console session with a workspace token.
type OpenConsoleIn struct {
	Token string
	Life  time.Duration
}

// OpenedConsole is a new console session. Secret is its credential.
type OpenedConsole struct {
	Secret    string    `json:"secret"`
	ExpiresAt Timestamp `json:"expiresAt"`
}

// OpenConsole opens a console session with a workspace token. It returns UNAUTHORIZED for a
// token that is not valid, and BAD_REQUEST for a credential of another kind.
var OpenConsole = NewWorkflow[OpenConsoleIn, OpenedConsole]("OpenConsole", "Open a console session", Needs{Level: Public}, openConsole, Audits(auditToken))

func openConsole(f Flow, in *OpenConsoleIn) (Reply, error) {
	credential, err := ParseCredential(in.Token)
	if err != nil {
		return Reply{}, errNoSignIn()
	}
	if credential.Kind != WorkspaceToken {
		return Reply{}, BadRequest(Fault{Path: "token", Message: "Is not a workspace token. Paste one that begins with swy_, or the operator's token."})
	}
	principal, err := ask[Principal](f, credential.Home, AuthenticateOp, &credential)
	if err != nil {
		return Reply{}, signInError(err)
	}
	reply, err := f.CommandAs(permitSecret(credential.Home), Caller{Principal: principal}, credential.Home, openConsoleOp, &openConsoleIn{
		Credential: credential, Until: At(f.Now().Add(in.Life)),
	})
	return reply, signInError(err)
}

// errNoSignIn is the error for a token that opens no session; it is the same for all.
func errNoSignIn() *Error {
	return &Error{Code: CodeUnauthorized, Message: "The token is not valid.", Hint: "Check that it was copied whole, that it has not expired, and that nobody has deleted it."}
}

// signInError replaces the errors of a credential in a header by those of a pasted one.
func signInError(err error) error {
	if hasNoAccess(err) {
		return errNoSignIn()
	}
	return err
}

// openConsoleIn is the input of the step in the token's workspace. It has the hash of the
// secret, so the secret itself is not sent to another node.
type openConsoleIn struct {
	Credential Credential `json:"credential"`
	Until      Timestamp  `json:"until"`
}

var openConsoleOp = NewCommand[openConsoleIn, OpenedConsole]("OpenConsoleHere", "Make a console session's token", Needs{}, func(tx *Tx, in *openConsoleIn) (Reply, error) {
	opener, err := tokenGrants.Get(tx, storage.Key(nil).DescID(in.Credential.ID))
	if err != nil {
		return Reply{}, fmt.Errorf("read a token: %w", err)
	}
	if in.Credential.Kind != WorkspaceToken || opener == nil || !in.Credential.matches(opener.Value.Hash) {
		return Reply{}, Unauthorized()
	}
	g := &opener.Value
	if g.Console || g.ExpiresAt != nil && *g.ExpiresAt <= At(tx.now) {
		return Reply{}, Unauthorized() // a session opens no other one
	}
	until := in.Until
	if g.ExpiresAt != nil && *g.ExpiresAt < until {
		until = *g.ExpiresAt
	}
	token, err := tokens.Get(tx, tokenKey(nil, g.ID))
	if err != nil {
		return Reply{}, fmt.Errorf("read a token: %w", err)
	}
	if token == nil {
		return Reply{}, Unauthorized()
	}
	return tx.addConsole(token.Value.Permissions, tokenGrant{
		ActorType: g.ActorType, ActorID: g.ActorID, Provider: g.Provider, Permissions: g.Permissions, Confined: g.Confined,
		CreatedByID: g.ActorID, Sponsor: g.Sponsor, Via: g.Via, OpenedWith: g.ID, ExpiresAt: &until,
	})
}, Audits(auditToken))

// addConsole makes the token of a console session, and the timer that ends it. The grant
// has its rights and its end.
func (tx *Tx) addConsole(permissions string, grant tokenGrant) (Reply, error) {
	keys, err := tx.consolesBy(consoleOf(grant.ActorType), grant.ActorID)
	if err != nil {
		return Reply{}, err
	}
	// Tokens are ordered from the newest to the oldest.
	for i := maxConsoleSessions - 1; i < len(keys); i++ {
		if _, err := tx.endToken(keys[i]); err != nil {
			return Reply{}, err
		}
	}
	grant.Console = true
	token, err := tx.addToken(consoleTokenName, permissions, grant)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.SetTimer(timerConsole, string(token.ID), grant.ExpiresAt.Time()); err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, OpenedConsole{Secret: token.Secret, ExpiresAt: *grant.ExpiresAt})
}

// consolesBy returns the keys of console sessions with an index entry, newest first.
func (tx *Tx) consolesBy(kind ActorType, id string) (keys [][]byte, err error) {
	prefix := actorKey(nil, kind, id)
	err = tx.Rows(grantByActor, prefix, nil, func(fields, _ []byte) (bool, error) {
		keys = append(keys, append([]byte(nil), fields[len(prefix):]...))
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("list console sessions: %w", err)
	}
	return keys, nil
}

// leaveConsoles ends what depends on a token that is being removed: the sessions that it
// opened, or the timer of a session.
func (tx *Tx) leaveConsoles(g *tokenGrant) error {
	if g.Console {
		return tx.ClearTimer(timerConsole, string(g.ID))
	}
	keys, err := tx.consolesBy(openedWith, string(g.ID))
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := tx.endToken(key); err != nil {
			return err
		}
	}
	return nil
}

// timerConsole removes the token of a console session at its end; the subject is the
// token's id.
const timerConsole = "console.end"

var consoleEndOp = NewCommand[TimerIn, None]("ExpireConsole", "Remove a console session at its end", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if _, ok := storage.ParseID(TokenID(in.Subject)); ok {
		if _, err := tx.endToken(tokenKey(nil, TokenID(in.Subject))); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
}, WithSpaceEffect(FreesSpace))

// checkConsoles checks that every console session has a timer that ends it.
func checkConsoles(v *storage.View, report reporter) error {
	return tokenGrants.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := tokenGrants.Decode(rec)
		if err != nil || !row.Value.Console {
			return err == nil, err
		}
		set, err := v.Has(timerTable, timerKey(nil, timerConsole, string(row.Value.ID)))
		if err == nil && !set {
			report(tokenGrants.Name, pk, "it is a console session without a timer that ends it")
		}
		return true, err
	})
}
