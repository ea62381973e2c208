package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// keyPairLook is the least time between two looks at the files of the certificate.
const keyPairLook = time.Second

// keyPair is the certificate that clients are shown. It is read again when its files
// change, so that a renewal needs no restart. Files that can't be used leave it as it is.
type keyPair struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	files   [2]os.FileInfo // as they were when pair was read
	failure string         // why they could not be read since; empty: they were not tried, or could
	looked  time.Time
}

// publicTLS reads the certificate of the public port; nil if there is none.
func (c Config) publicTLS() (*keyPair, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	k := &keyPair{cert: c.TLSCert, key: c.TLSKey, log: c.Logger}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// listener wraps the listener of the public port in TLS.
func (k *keyPair) listener(ln net.Listener) net.Listener {
	return tls.NewListener(ln, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"}, // HTTP/2 is what a proxy in front may speak
		GetCertificate: k.certificate,
	})
}

// validateTLS reports what is wrong with the flags of TLS on the public port.
func (c Config) validateTLS() error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("--tls-cert and --tls-key need each other")
	}
	return nil
}

// certificate implements tls.Config.GetCertificate.
func (k *keyPair) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Sub(k.looked) < keyPairLook {
		return k.pair, nil
	}
	k.looked = now
	// After a failure the files are read at each look: their state doesn't show each repair, such as that of
	// a key's rights.
	if files, err := k.look(); err == nil && k.failure == "" && same(files, k.files) {
		return k.pair, nil
	}
	err := k.read()
	switch {
	case err == nil:
		k.failure = ""
		k.log.Info("the certificate of the public port was read again", "file", k.cert, "until", k.pair.Leaf.NotAfter)
	case err.Error() != k.failure:
		k.failure = err.Error()
		k.log.Error("the certificate of the public port can't be read again; the old one is still shown", "error", err)
	}
	return k.pair, nil
}

// read takes the certificate and the key from their files.
func (k *keyPair) read() error {
	files, err := k.look() // first: a change after it is seen next time
	if err != nil {
		return fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err != nil {
		return fmt.Errorf("--tls-cert %s with --tls-key %s: %w", k.cert, k.key, err)
	}
	k.pair, k.files = &pair, files
	return nil
}

func (k *keyPair) look() (files [2]os.FileInfo, err error) {
	for i, name := range [...]string{k.cert, k.key} {
		if files[i], err = os.Stat(name); err != nil {
			return [2]os.FileInfo{}, err
		}
	}
	return files, nil
}

// same reports whether files are those that were looked at before, and unchanged.
func same(a, b [2]os.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil || !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}
