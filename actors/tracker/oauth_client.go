package tracker

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// OAuthClientID is the id of an OAuth client, as in paths.
type OAuthClientID string

// OAuthClient is a program that gets access tokens for itself (Decision 49). Its secret
// is shown once, in the answer to its creation.
type OAuthClient struct {
	ID             OAuthClientID `json:"id"`
	OrganizationID WorkspaceID   `json:"organizationId"`
	Name           string        `json:"name"`
	RedirectURIs   []string      `json:"redirectUris"`
	Scopes         []string      `json:"scopes"`
	Permissions    string        `json:"permissions"`
	CreatedAt      Timestamp     `json:"createdAt"`
}

// CreatedOAuthClient is a client with its secret.
type CreatedOAuthClient struct {
	OAuthClient
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
}

// oauthSecret is the part of a client that clients of the API never see.
type oauthSecret struct {
	ID   OAuthClientID `json:"id"`
	Hash []byte        `json:"hash"`
	// Permissions and Scopes are those of the client.
	Permissions Permissions `json:"permissions"`
	Scopes      []string    `json:"scopes,omitempty"`
	// Sponsor is the member with whose membership the client ends; see
	// Principal.Sponsor.
	Sponsor UserID `json:"sponsor,omitempty"`
	// Via are the other members on whom the client depends; see Principal.Via.
	Via []UserID `json:"via,omitempty"`
}

var oauthClients = storage.Table[OAuthClient]{
	Changed: audited(auditOAuthClient, func(c *OAuthClient) string { return string(c.ID) }),
	ID:      oauthClientTable,
	Name:    "oauthClient",
	Key:     func(k storage.Key, c *OAuthClient) storage.Key { return newestKey(k, c.ID) },
}

var _ = declareTable(&oauthClients, newestFirst, atMost(1_000, "OAuth clients"))

// The permissions of a client limit those of its tokens, so every change invalidates
// its cached callers.
var oauthSecrets = storage.Table[oauthSecret]{
	ID:    oauthSecretTable,
	Name:  "oauthSecret",
	Key:   func(k storage.Key, s *oauthSecret) storage.Key { return newestKey(k, s.ID) },
	Dirty: DirtyAccess,
}

var _ = declareTable(&oauthSecrets)

// hasOAuthClient reports whether id is the id of a client.
func (v *View) hasOAuthClient(id string) (bool, error) {
	parsed, ok := storage.ParseID(id)
	if !ok {
		return false, nil
	}
	there, err := v.Has(oauthSecretTable, storage.Key(nil).DescID(parsed))
	if err != nil {
		return false, fmt.Errorf("look for an OAuth client: %w", err)
	}
	return there, nil
}

// A client identifier is a prefix and the URL-safe Base64 of: workspace (16 bytes),
// client (16), CRC-32C of both (4). The address of the token endpoint does not name the
// workspace, so the identifier does; any node can find the workspace.
const (
	clientIDPrefix = "swid_"
	clientIDLen    = 16 + 16 + 4
	clientIDText   = len(clientIDPrefix) + clientIDLen/3*4
)

func clientIdentifier(workspace, client storage.ID) string {
	raw := append(append(make([]byte, 0, clientIDLen), workspace[:]...), client[:]...)
	raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	return clientIDPrefix + base64.RawURLEncoding.EncodeToString(raw)
}

// parseClientIdentifier parses a client identifier; false if it is not valid.
func parseClientIdentifier(text string) (workspace, client storage.ID, ok bool) {
	var raw [clientIDLen]byte
	encoded, prefixed := strings.CutPrefix(text, clientIDPrefix)
	if !prefixed || len(text) != clientIDText || strings.ContainsAny(text, "\r\n") {
		return workspace, client, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(encoded))
	if err != nil || n != clientIDLen || crc32.Checksum(raw[:32], castagnoli) != binary.BigEndian.Uint32(raw[32:]) {
		return workspace, client, false
	}
	copy(workspace[:], raw[:])
	copy(client[:], raw[16:])
	// The ids of key ranges that are not workspaces have other versions.
	return workspace, client, workspace[6]>>4 == 7
}

// clientPermissions parses a permissions field of a client, and returns its value and
// stored form. A caller can't make a client with more permissions than its own.
func (tx *Tx) clientPermissions(raw json.RawMessage) (Permissions, string, error) {
	text, _ := permissionsText(raw)
	if text == "" {
		text = defaultClientPermissions
	}
	p, stored, _ := ParsePermissions(text)
	if !tx.Caller.Permissions.Includes(p) {
		return 0, "", Forbidden("The client would have more permissions than the credential that creates it.", "Ask for permissions that the credential itself has.")
	}
	return p, stored, nil
}

// scopeFaults adds a fault for each scope that RFC 6749, section 3.3, does not allow.
func scopeFaults(scopes []string, faults *Faults) {
	for i, scope := range scopes {
		bad := strings.IndexFunc(scope, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) >= 0
		if path := fmt.Sprintf("scopes[%d]", i); (bad || scope == "") && !faults.Has(path) {
			faults.Add(path, "Must be visible ASCII without spaces, quotes and backslashes.")
		}
	}
}

// orNone returns an empty list for a nil one.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
