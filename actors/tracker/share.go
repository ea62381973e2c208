package tracker

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"

	"switchyard/storage"
)

// IssueShare lets anybody with its token read a part of an issue, without a credential
// (Decision 27). An issue has at most one.
type IssueShare struct {
	Token          string      `json:"token"`
	OrganizationID WorkspaceID `json:"organizationId"`
	IssueID        IssueID     `json:"issueId"`
	CreatedByID    string      `json:"createdById"`
	CreatedAt      Timestamp   `json:"createdAt"`
	ExpiresAt      *Timestamp  `json:"expiresAt"`
}

// A share's token is 24 random bytes in URL-safe Base64, without padding.
const (
	shareSecretLen = 24
	shareTokenLen  = shareSecretLen / 3 * 4
)

// shares holds the last share of every issue, also after it expired, until the next one
// replaces it. The token is shown again, so it is stored, but looked up by its hash:
// the time of a look-up reveals nothing about existing tokens.
var shares = storage.Table[IssueShare]{
	Changed: func(w storage.Writer, old, new *IssueShare) error {
		if new != nil {
			old = nil // a new share replaces another
		}
		return audited(auditShare, func(s *IssueShare) string { return string(s.IssueID) })(w, old, new)
	},
	ID:   shareTable,
	Name: "share",
	Key: func(k storage.Key, s *IssueShare) storage.Key {
		id, _ := storage.ParseID(s.IssueID)
		return k.DescID(id)
	},
	Indexes: []storage.Index[IssueShare]{{
		ID:      shareByToken,
		Name:    "token",
		Unique:  true,
		Entries: func(e *storage.Entries, s *IssueShare) { e.Add(append(e.Key(), shareHash(s.Token)...)) },
	}},
}

var _ = declareTable(&shares)

func shareHash(token string) []byte {
	hash := sha256.Sum256([]byte(token))
	return hash[:]
}

// is compares the share's token with the token of a request.
func (s *IssueShare) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.Token), []byte(token)) == 1
}

func (s *IssueShare) expired(now Timestamp) bool { return s.ExpiresAt != nil && *s.ExpiresAt <= now }

// activeShare returns the share of an issue, or nil if there is none or it has expired.
func (v *View) activeShare(issue storage.ID) (*storage.Row[IssueShare], error) {
	row, err := shares.Get(v, issueKey(issue))
	if err != nil {
		return nil, fmt.Errorf("read a share: %w", err)
	}
	if row == nil || row.Value.expired(At(v.now)) {
		return nil, nil
	}
	return row, nil
}

// newShareToken returns a random token.
func (tx *Tx) newShareToken() (string, error) {
	var secret [shareSecretLen]byte
	if err := tx.Secret(secret[:]); err != nil {
		return "", fmt.Errorf("make a share's token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(secret[:]), nil
}
