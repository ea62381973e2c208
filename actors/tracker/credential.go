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

// CredentialKind tells what a credential opens; its text begins with it.
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
// bytes), id (16), secret (24), CRC-32C over the kind and all of that (4). 60
// bytes fill 80 characters exactly, so there is one text per credential.
const (
	kindLen        = 4
	secretLen      = 24
	credentialLen  = 16 + 16 + secretLen + 4
	credentialText = kindLen + credentialLen/3*4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Credential is what a credential's text says, with its secret already hashed.
type Credential struct {
	Kind CredentialKind
	// Home is the workspace that keeps the credential.
	Home storage.ID
	ID   storage.ID
	// Hash is the SHA-256 of the secret.
	Hash [sha256.Size]byte
}

// ParseCredential reads a credential. It refuses what was mistyped by the
// checksum alone, without a look-up; the error is UNAUTHORIZED.
func ParseCredential(text string) (Credential, error) {
	var raw [credentialLen]byte
	// The decoder skips line breaks; the exact lengths leave no room for them.
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

// newCredential makes a credential's text, to be shown once, and what is kept of
// it.
func newCredential(kind CredentialKind, home, id storage.ID, secret [secretLen]byte) (string, Credential) {
	raw := make([]byte, 0, credentialLen)
	raw = append(append(append(raw, home[:]...), id[:]...), secret[:]...)
	raw = binary.BigEndian.AppendUint32(raw, credentialSum(kind, raw))
	text := string(kind) + base64.RawURLEncoding.EncodeToString(raw)
	return text, Credential{Kind: kind, Home: home, ID: id, Hash: sha256.Sum256(secret[:])}
}

// matches compares with a stored hash in a time that does not depend on where
// they differ.
func (c *Credential) matches(hash []byte) bool {
	return subtle.ConstantTimeCompare(c.Hash[:], hash) == 1
}
