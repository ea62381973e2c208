package backup

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"filippo.io/age"

	"switchyard/internal/durable"
)

// Key encrypts backups, in the format of age (age-encryption.org). It stays with the operator:
// the program age decrypts the files with it, too.
type Key struct {
	identity *age.X25519Identity
	// names makes the names of files. The content alone would do for those who have the
	// content, and want to know whether it is in a backup.
	names []byte
}

// maxKeyFile bounds a key's file in bytes.
const maxKeyFile = 64 << 10

// NewKey makes a key and writes it to a file that was not there.
func NewKey(file string) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	_, err = fmt.Fprintf(out, "# Key of Switchyard backups. Without it they can't be read.\n%s\n", identity)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = durable.SyncDir(filepath.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("make a key: %w", errors.Join(err, os.Remove(file)))
	}
	return nil
}

// ReadKey reads the key in a file. An empty name is no key.
func ReadKey(file string) (*Key, error) {
	if file == "" {
		return nil, nil
	}
	in, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	defer func() { _ = in.Close() }()
	all, err := age.ParseIdentities(io.LimitReader(in, maxKeyFile))
	var identity *age.X25519Identity
	if err == nil && len(all) == 1 {
		identity, _ = all[0].(*age.X25519Identity)
	}
	if identity == nil {
		// The library's error may quote the line.
		return nil, fmt.Errorf("read the key: %s does not have one line with AGE-SECRET-KEY-1..., which `switchyard backup key` makes", file)
	}
	names := hmac.New(sha256.New, []byte(identity.String()))
	_, _ = io.WriteString(names, "switchyard: names of files of backups") // never fails
	return &Key{identity: identity, names: names.Sum(nil)}, nil
}

// name returns the name of a file by the hash of its content.
func (k *Key) name(sum string) string {
	mac := hmac.New(sha256.New, k.names)
	_, _ = io.WriteString(mac, sum) // never fails
	return hex.EncodeToString(mac.Sum(nil))
}

func (k *Key) seal(out io.Writer) (io.WriteCloser, error) {
	w, err := age.Encrypt(out, k.identity.Recipient())
	if err != nil {
		return nil, fmt.Errorf("encrypt: %w", err)
	}
	return w, nil
}

// errOtherKey is the error of open for a file of another key.
var errOtherKey = errors.New("it is encrypted with another key")

// open returns the content of an encrypted file. A change of any of its bytes is an error of
// open, or of reading.
func (k *Key) open(in io.Reader) (io.Reader, error) {
	r, err := age.Decrypt(in, k.identity)
	var other *age.NoIdentityMatchError
	switch {
	case errors.As(err, &other):
		return nil, errOtherKey
	case err != nil:
		return nil, fmt.Errorf("decrypt: %w", err)
	}
	return r, nil
}
