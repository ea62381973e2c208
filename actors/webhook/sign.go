package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Signature is the hexadecimal HMAC-SHA256 over timestamp + "." + body, keyed on
// the whole text of the secret (Decision 46).
func Signature(secret, timestamp string, body []byte) string {
	return hex.EncodeToString(digest([]byte(secret), timestamp, body))
}

// StandardSignature is that of Standard Webhooks: "v1," and the Base64 of the
// HMAC-SHA256 over id.timestamp.body, keyed on the bytes that the secret's text
// stands for.
func StandardSignature(secret, id, timestamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return "" // stored secrets are checked when they are written
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
