package tracker

import (
	"fmt"

	"switchyard/storage"
)

// inboundSecret is what the calls of a source are signed with. It can't be kept as a
// hash, since signatures are made with it; it is shown once, and is in no other
// record, event, log line or error.
type inboundSecret struct {
	Source    string    `json:"source"`
	Secret    string    `json:"secret"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

var inboundSecrets = storage.Table[inboundSecret]{
	ID:   inboundSecretTable,
	Name: "inboundSecret",
	Key:  func(k storage.Key, s *inboundSecret) storage.Key { return k.Str(s.Source) },
}

const (
	inboundSecretPrefix = "whsec_"
	// inboundSecretLen are the random bytes of a secret made here.
	inboundSecretLen = 32
	maxSource        = 64
)

// sourceFault tells what is wrong with the name of a source; empty for nothing.
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

// inboundSecret reads the secret of a source; empty when there is none.
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

// InboundSourceIn names a source.
type InboundSourceIn struct {
	Source string `path:"source" form:"source"`
}
