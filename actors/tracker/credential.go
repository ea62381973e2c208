package tracker

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"strings"

	"switchyard/storage"
)

// CredentialKind is the kind of a credential; its text begins with it.
type CredentialKind string

// The kinds of credentials (Decision 8).
const (
	WorkspaceToken   CredentialKind = "swy_"
	LaneToken        CredentialKind = "swl_"
	SCIMToken        CredentialKind = "sws_"
	OAuthSecret      CredentialKind = "swc_"
	OAuthAccessToken CredentialKind = "swo_"
)

func (k CredentialKind) known() bool {
	switch k {
	case WorkspaceToken, LaneToken, SCIMToken, OAuthSecret, OAuthAccessToken:
		return true
	}
	return false
}

// A credential's text is its kind and the URL-safe Base64 of: home workspace (16
// bytes), id (16), secret (24), CRC-32C over the kind and all of these (4). 60 bytes
// fill 80 characters exactly, so a credential has only one text.
const (
	kindLen        = 4
	secretLen      = 24
	credentialLen  = 16 + 16 + secretLen + 4
	credentialText = kindLen + credentialLen/3*4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Credential is a parsed credential, with its secret already hashed.
type Credential struct {
	Kind CredentialKind
	// Home is the workspace that stores the credential.
	Home storage.ID
	ID   storage.ID
	// Hash is the SHA-256 of the secret.
	Hash [sha256.Size]byte
}

// ParseCredential parses a credential. The checksum detects mistyped credentials
// without a look-up. The error is UNAUTHORIZED.
func ParseCredential(text string) (Credential, error) {
	var raw [credentialLen]byte
	// The decoder skips line breaks; the exact length leaves no room for them.
	if len(text) != credentialText || !CredentialKind(text[:kindLen]).known() || strings.ContainsAny(text, "\r\n") {
		return Credential{}, Unauthorized()
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(text[kindLen:]))
	if err != nil || n != credentialLen {
		return Credential{}, Unauthorized()
	}
	c := Credential{Kind: CredentialKind(text[:kindLen])}
	if credentialSum(c.Kind, raw[:credentialLen-4]) != binary.BigEndian.Uint32(raw[credentialLen-4:]) {
		return Credential{}, Unauthorized()
	}
	copy(c.Home[:], raw[:])
	copy(c.ID[:], raw[16:])
	c.Hash = sha256.Sum256(raw[32 : 32+secretLen])
	return c, nil
}

func credentialSum(kind CredentialKind, raw []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(kind), castagnoli), castagnoli, raw)
}

// newCredential returns a credential's text, which is shown once, and the Credential
// that is stored.
func newCredential(kind CredentialKind, home, id storage.ID, secret [secretLen]byte) (string, Credential) {
	raw := make([]byte, 0, credentialLen)
	raw = append(append(append(raw, home[:]...), id[:]...), secret[:]...)
	raw = binary.BigEndian.AppendUint32(raw, credentialSum(kind, raw))
	text := string(kind) + base64.RawURLEncoding.EncodeToString(raw)
	return text, Credential{Kind: kind, Home: home, ID: id, Hash: sha256.Sum256(secret[:])}
}

// matches compares the secret with a stored hash in constant time.
func (c *Credential) matches(hash []byte) bool {
	return subtle.ConstantTimeCompare(c.Hash[:], hash) == 1
}
