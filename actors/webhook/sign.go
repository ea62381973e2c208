package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Signature returns the hexadecimal HMAC-SHA256 of timestamp + "." + body, with the
// whole text of the secret as the key (Decision 46).
func Signature(secret, timestamp string, body []byte) string {
	return hex.EncodeToString(digest([]byte(secret), timestamp, body))
}

// StandardSignature returns the signature of Standard Webhooks: "v1," and the Base64 of
// the HMAC-SHA256 of id.timestamp.body, with the decoded secret as the key.
func StandardSignature(secret, id, timestamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return "" // secrets are validated before they are stored
	}
	return "v1," + base64.StdEncoding.EncodeToString(digest(key, id+"."+timestamp, body))
}

func digest(key []byte, head string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(head))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}
