package tracker

import (
	"fmt"

	"switchyard/storage"
)

// inboundSecret is the secret that signs the calls of a source. It can't be hashed,
// since signatures are computed with it. It is shown once, and is in no other record,
// event, log line or error.
type inboundSecret struct {
	Source    string    `json:"source"`
	Secret    string    `json:"secret"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

var inboundSecrets = storage.Table[inboundSecret]{
	Changed: audited(auditInboundSecret, func(s *inboundSecret) string { return s.Source }),
	ID:      inboundSecretTable,
	Name:    "inboundSecret",
	Key:     func(k storage.Key, s *inboundSecret) storage.Key { return k.Str(s.Source) },
}

var _ = declareTable(&inboundSecrets, atMost(1_000, "inbound secrets"))

const (
	inboundSecretPrefix = "whsec_"
	// inboundSecretLen is the number of random bytes of a generated secret.
	inboundSecretLen = 32
	maxSource        = 64
)

// sourceFault returns the fault of a source's name, or "".
func sourceFault(source string) string {
	for _, c := range []byte(source) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return "Must be of a to z, 0 to 9, hyphens, underscores and dots."
		}
	}
	if len(source) == 0 || len(source) > maxSource {
		return fmt.Sprintf("Must be 1 to %d characters long.", maxSource)
	}
	return ""
}

// inboundSecret returns the secret of a source, or "" if there is none.
func (v *View) inboundSecret(source string) (string, error) {
	if sourceFault(source) != "" {
		return "", nil
	}
	row, err := inboundSecrets.Get(v, storage.Key(nil).Str(source))
	if err != nil {
		return "", fmt.Errorf("read an inbound secret: %w", err)
	}
	if row == nil {
		return "", nil
	}
	return row.Value.Secret, nil
}

// InboundSourceIn identifies a source.
type InboundSourceIn struct {
	Source string `path:"source" form:"source"`
}
