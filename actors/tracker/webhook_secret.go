package tracker

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// A webhook's secret can't be stored as a hash: it signs every delivery. It has a row
// of its own, so that no answer made from the webhook's record can show it, and is in
// no event, log line or error.

const (
	webhookSecretPrefix = "whsec_"
	// webhookSecretLen is the number of random bytes of a generated secret; one that a
	// caller sends has from minWebhookSecret to maxWebhookSecret (Standard Webhooks).
	webhookSecretLen = 32
	minWebhookSecret = 24
	maxWebhookSecret = 64
	// rotationGrace is the time for which the previous secret still signs.
	rotationGrace = 24 * time.Hour
)

// webhookSecret holds the secrets that sign a webhook's deliveries.
type webhookSecret struct {
	Secret string `json:"secret"`
	// Previous signs, too, until Until.
	Previous string    `json:"previous,omitempty"`
	Until    Timestamp `json:"until,omitempty"`
}

// secretFault returns the fault of a secret that a caller sent, or "". It never quotes
// the secret.
func secretFault(secret string) string {
	text, ok := strings.CutPrefix(secret, webhookSecretPrefix)
	if ok && !strings.ContainsAny(text, "\r\n") { // the decoder skips line breaks
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		ok = err == nil && len(raw) >= minWebhookSecret && len(raw) <= maxWebhookSecret
	} else {
		ok = false
	}
	if !ok {
		return "Must be whsec_ and the Base64 of 24 to 64 random bytes. Leave it out to have one made."
	}
	return ""
}

// newWebhookSecret returns the secret that a caller sent, or generates one.
func (tx *Tx) newWebhookSecret(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	var raw [webhookSecretLen]byte
	if err := tx.Secret(raw[:]); err != nil {
		return "", fmt.Errorf("make a webhook's secret: %w", err)
	}
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(raw[:]), nil
}

func (v *View) webhookSecret(id storage.ID) (s webhookSecret, err error) {
	return readWebhookSecret(&v.View, id)
}

func readWebhookSecret(v *storage.View, id storage.ID) (s webhookSecret, err error) {
	value, err := v.Value(webhookSecrets, id[:], nil)
	if err != nil {
		return s, fmt.Errorf("read a webhook's secret: %w", err)
	}
	return parseWebhookSecret(value)
}

func parseWebhookSecret(value []byte) (s webhookSecret, err error) {
	if err := json.Unmarshal(value, &s); err != nil || secretFault(s.Secret) != "" {
		return s, fmt.Errorf("%w: a webhook's secret is missing or broken", storage.ErrFormat) // without the value, which is secret
	}
	return s, nil
}

func (tx *Tx) setWebhookSecret(id storage.ID, s webhookSecret) error {
	value, err := json.Marshal(&s)
	if err != nil {
		return fmt.Errorf("encode a webhook's secret: %w", err)
	}
	tx.Writer().MarkDirty(DirtyWebhooks)
	return tx.Writer().SetValue(webhookSecrets, id[:], value)
}
