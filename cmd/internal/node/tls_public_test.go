package node

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// shown returns the common name of the certificate that a handshake is given.
func shown(t *testing.T, k *keyPair) string {
	t.Helper()
	pair, err := k.certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.Subject.CommonName
}

func TestKeyPair_IsReadAgainWhenItsFilesChange(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for _, name := range []string{"first", "second", "third"} {
		a.issue(t, name, &x509.Certificate{DNSNames: []string{"localhost"}})
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	put := func(from, to string) { // as a renewal does: the file is another one
		t.Helper()
		text, err := os.ReadFile(filepath.Join(a.dir, from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+".new", text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(to+".new", to); err != nil {
			t.Fatal(err)
		}
	}
	put("first.pem", cert)
	put("first.key", key)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k := &keyPair{cert: cert, key: key, log: slog.New(slog.NewTextHandler(&log, nil))}
		if err := k.read(); err != nil {
			t.Fatal(err)
		}
		want := func(name string) {
			t.Helper()
			time.Sleep(2 * keyPairLook) // of the bubble
			if got := shown(t, k); got != name {
				t.Errorf("%s is shown, want %s", got, name)
			}
		}
		want("first")
		put("second.pem", cert)
		want("first") // the key does not belong to it yet
		want("first")
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("logged %d times: %s", n, &log)
		}
		put("second.key", key)
		want("second")
		if err := os.Remove(cert); err != nil {
			t.Fatal(err)
		}
		want("second")
		want("second")
		put("third.pem", cert)
		put("third.key", key)
		want("third")
		if n := strings.Count(log.String(), "level=ERROR"); n != 2 {
			t.Errorf("logged %d times: %s", n, &log)
		}
		// Files that did not change are not read for each handshake.
		put("first.pem", cert)
		put("first.key", key)
		if got := shown(t, k); got != "third" {
			t.Errorf("%s is shown within a second", got)
		}
	})
}

func TestConfig_PublicTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue(t, "one", &x509.Certificate{DNSNames: []string{"localhost"}})
	a.issue(t, "two", &x509.Certificate{DNSNames: []string{"localhost"}})
	path := func(name string) string { return filepath.Join(a.dir, name) }
	for _, row := range []struct{ cert, key, fault string }{
		{path("one.pem"), path("two.key"), "--tls-cert"},
		{path("one.key"), path("one.pem"), "--tls-cert"},
		{path("none.pem"), path("one.key"), "none.pem"},
		{path("one.pem"), path("none.key"), "none.key"},
		{path("one.pem"), path("one.key"), ""},
	} {
		got, err := Config{TLSCert: row.cert, TLSKey: row.key}.publicTLS()
		if row.fault == "" && (err != nil || got == nil) || row.fault != "" && (err == nil || !strings.Contains(err.Error(), row.fault)) {
			t.Errorf("%s with %s: %v", row.cert, row.key, err)
		}
	}
	for _, c := range []Config{{TLSCert: "a"}, {TLSKey: "b"}} {
		if err := c.validateTLS(); err == nil {
			t.Errorf("%q alone is taken", c.TLSCert+c.TLSKey)
		}
	}
	if got, err := (Config{}).publicTLS(); err != nil || got != nil {
		t.Errorf("without a certificate: %v", err)
	}
}
