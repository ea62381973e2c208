package tracker

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// A webhook's secret is the one credential that can't be kept as a hash: it signs
// every delivery. It is in a row of its own, so that no answer made from the
// webhook's record can show it, and goes into no event, log line or error.

const (
	webhookSecretPrefix = "whsec_"
	// webhookSecretLen are the random bytes of a secret made here; one that a caller
	// brings has from minWebhookSecret to maxWebhookSecret (Standard Webhooks).
	webhookSecretLen = 32
	minWebhookSecret = 24
	maxWebhookSecret = 64
	// rotationGrace is how long the secret before goes on signing.
	rotationGrace = 24 * time.Hour
)

// webhookSecret is what a webhook's deliveries are signed with.
type webhookSecret struct {
	Secret string `json:"secret"`
	// Previous signs too until Until.
	Previous string    `json:"previous,omitempty"`
	Until    Timestamp `json:"until,omitempty"`
}

// secretFault tells what is wrong with a secret that a caller brings. It never
// quotes it.
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

// newWebhookSecret gives the secret a caller brought, or makes one.
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
		return s, fmt.Errorf("%w: a webhook's secret is missing or broken", storage.ErrFormat) // without what is there
	}
	return s, nil
}

func (tx *Tx) setWebhookSecret(id storage.ID, s webhookSecret) error {
	value, err := json.Marshal(&s)
	if err != nil {
		return fmt.Errorf("encode a webhook's secret: %w", err)
	}
	tx.Writer().Touch(TouchesWebhooks)
	return tx.Writer().SetValue(webhookSecrets, id[:], value)
}
