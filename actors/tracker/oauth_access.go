package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"switchyard/storage"
)

// accessToken is the credential of an OAuth client for one hour. Each request checks
// the permissions of both the token and its client, so a client that is deleted or
// loses a permission takes effect on its tokens at once, and nothing has to look for
// them.
type accessToken struct {
	ID          TokenID       `json:"id"`
	Client      OAuthClientID `json:"client"`
	Hash        []byte        `json:"hash"`
	Permissions Permissions   `json:"permissions"`
	ExpiresAt   Timestamp     `json:"expiresAt"`
}

// accessLife is how long an access token is valid.
const accessLife = time.Hour

// Access tokens don't touch access: every request checks the expiry of its cached
// caller, and a new token has no cached caller yet.
var accessTokens = storage.Table[accessToken]{
	ID:   accessTokenTable,
	Name: "accessToken",
	Key:  func(k storage.Key, t *accessToken) storage.Key { return tokenKey(k, t.ID) },
	Indexes: []storage.Index[accessToken]{{
		ID:   accessTokenByExpiry,
		Name: "expiry",
		Entries: func(e *storage.Entries, t *accessToken) {
			e.Add(e.Key().U64(uint64(t.ExpiresAt.Time().UnixMilli())))
		},
	}},
}

var _ = declareTable(&accessTokens, newestFirst, atMost(50_000, "OAuth access tokens"))

// authenticateAccess returns the principal of an access token. Idempotency keys belong
// to the client, so they remain valid with its next token.
func authenticateAccess(v *storage.View, c Credential) (Principal, error) {
	row, err := accessTokens.Get(v, storage.Key(nil).DescID(c.ID))
	if err != nil {
		return Principal{}, fmt.Errorf("read an access token: %w", err)
	}
	if row == nil || !c.matches(row.Value.Hash) {
		return Principal{}, Unauthorized()
	}
	t := &row.Value
	client, err := oauthSecrets.Get(v, newestKey(nil, t.Client))
	if err != nil {
		return Principal{}, fmt.Errorf("read an access token's client: %w", err)
	}
	if client == nil {
		return Principal{}, Unauthorized()
	}
	p := clientPrincipal(c.Home, &client.Value)
	p.Permissions &= t.Permissions
	p.Expires = t.ExpiresAt.Time()
	return p, nil
}

// clientPrincipal returns the principal of an OAuth client, with all of its
// permissions.
func clientPrincipal(home storage.ID, s *oauthSecret) Principal {
	return Principal{
		Type: ActorAgent, ID: string(s.ID), Kind: OAuthAccessToken, Token: string(s.ID), Home: home,
		Permissions: s.Permissions, Confined: true, Sponsor: s.Sponsor, Via: s.Via,
	}
}

// addAccessToken makes an access token and returns its text.
func (tx *Tx) addAccessToken(client OAuthClientID, permissions Permissions) (string, error) {
	n, err := tx.Counter(recordCountTable, recordCountSubject(accessTokenTable))
	if err != nil {
		return "", err
	}
	if n >= quotas[accessTokenTable].most {
		return "", &Error{
			Code: CodeTooManyRequests, Message: "The workspace has too many access tokens that are still valid.",
			Hint: "Use an access token until it expires instead of asking for one each time.", RetryAfter: time.Minute,
		}
	}
	if err := tx.countRecord(accessTokenTable, 1); err != nil {
		return "", err
	}
	id, err := tx.NewID()
	if err != nil {
		return "", fmt.Errorf("make an access token's id: %w", err)
	}
	var secret [secretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return "", fmt.Errorf("make an access token's secret: %w", err)
	}
	text, credential := newCredential(OAuthAccessToken, tx.Workspace(), id, secret)
	expires := tx.now.Add(accessLife)
	t := accessToken{ID: TokenID(id.String()), Client: client, Hash: credential.Hash[:], Permissions: permissions, ExpiresAt: At(expires)}
	if _, err := accessTokens.Insert(tx, &t); err != nil {
		return "", fmt.Errorf("add an access token: %w", err)
	}
	set, err := tx.Has(timerTable, timerKey(nil, timerSweepAccess, ""))
	if err == nil && !set {
		err = tx.SetTimer(timerSweepAccess, "", expires)
	}
	if err != nil {
		return "", fmt.Errorf("see to an access token's end: %w", err)
	}
	return text, nil
}

// timerSweepAccess is set while there are access tokens.
const timerSweepAccess = "sweep.access"

var sweepAccessOp = NewCommand[TimerIn, None]("SweepAccess", "Remove expired access tokens", Needs{}, func(tx *Tx, _ *TimerIn) (Reply, error) {
	var expired [][]byte
	more, next := false, time.Time{}
	err := tx.Rows(accessTokenByExpiry, nil, nil, func(fields, _ []byte) (bool, error) {
		if len(fields) != 8+16 {
			return false, fmt.Errorf("%w: expiry entry of %d bytes", storage.ErrFormat, len(fields))
		}
		dies := time.UnixMilli(int64(binary.BigEndian.Uint64(fields)))
		if dies.After(tx.now) {
			next = dies
			return false, nil
		}
		if more = len(expired) == sweepBatch; more {
			return false, nil
		}
		expired = append(expired, append([]byte(nil), fields[8:]...))
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("sweep access tokens: %w", err)
	}
	for _, pk := range expired {
		row, err := accessTokens.Get(tx, pk)
		if err != nil {
			return Reply{}, fmt.Errorf("sweep access tokens: %w", err)
		}
		if row == nil {
			return Reply{}, fmt.Errorf("%w: an expiry entry names an access token that is not there", storage.ErrFormat)
		}
		if err := accessTokens.Delete(tx, row); err != nil {
			return Reply{}, fmt.Errorf("sweep access tokens: %w", err)
		}
		if err := tx.countRecord(accessTokenTable, -1); err != nil {
			return Reply{}, err
		}
	}
	switch {
	case more:
		err = tx.SetTimerAtOnce(timerSweepAccess, "")
	case next.IsZero():
		err = tx.ClearTimer(timerSweepAccess, "")
	default:
		// Tokens that expire shortly after each other are removed together;
		// authentication refuses them meanwhile.
		if soon := tx.now.Add(sweepPause); next.Before(soon) {
			next = soon
		}
		err = tx.SetTimer(timerSweepAccess, "", next)
	}
	return Reply{Outcome: NoContent}, err
}, WithSpaceEffect(FreesSpace))
