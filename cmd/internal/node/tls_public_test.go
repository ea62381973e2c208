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

// renewals are the files of a certificate, and others to replace them by.
type renewals struct{ dir, cert, key string }

func newRenewals(t *testing.T, names ...string) *renewals {
	t.Helper()
	a := newAuthority(t)
	for _, name := range names {
		a.issue(t, name, &x509.Certificate{DNSNames: []string{"localhost"}})
	}
	dir := t.TempDir()
	r := &renewals{dir: a.dir, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	r.put(t, names[0]+".pem", r.cert)
	r.put(t, names[0]+".key", r.key)
	return r
}

// put replaces a file as a renewal does: the file is another one.
func (r *renewals) put(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, from))
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

func TestKeyPair_IsReadAgainWhenItsFilesChange(t *testing.T) {
	t.Parallel()
	r := newRenewals(t, "first", "second", "third")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k := &keyPair{cert: r.cert, key: r.key, log: slog.New(slog.NewTextHandler(&log, nil))}
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
		r.put(t, "second.pem", r.cert)
		want("first") // the key does not belong to it yet
		want("first")
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
			t.Errorf("logged %d times: %s", n, &log)
		}
		r.put(t, "second.key", r.key)
		want("second")
		if err := os.Remove(r.cert); err != nil {
			t.Fatal(err)
		}
		want("second")
		want("second")
		r.put(t, "third.pem", r.cert)
		r.put(t, "third.key", r.key)
		want("third")
		if n := strings.Count(log.String(), "level=ERROR"); n != 2 {
			t.Errorf("logged %d times: %s", n, &log)
		}
		// Files that did not change are not read for each handshake.
		r.put(t, "first.pem", r.cert)
		r.put(t, "first.key", r.key)
		if got := shown(t, k); got != "third" {
			t.Errorf("%s is shown within a second", got)
		}
	})
}

// Files that can't be used are read again at each look, and each other reason is logged: a repair may change
// nothing that a look at the files shows, such as the rights of a key.
func TestKeyPair_IsReadAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	r := newRenewals(t, "first", "second", "third")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		k := &keyPair{cert: r.cert, key: r.key, log: slog.New(slog.NewTextHandler(&log, nil))}
		if err := k.read(); err != nil {
			t.Fatal(err)
		}
		want := func(step, name string, errors int) {
			t.Helper()
			time.Sleep(2 * keyPairLook) // of the bubble
			if got, n := shown(t, k), strings.Count(log.String(), "level=ERROR"); got != name || n != errors {
				t.Errorf("%s: %s is shown after %d errors, want %s after %d: %s", step, got, n, name, errors, &log)
			}
		}
		r.put(t, "second.pem", r.cert)
		r.put(t, "second.key", r.key)
		text, err := os.ReadFile(r.key)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(r.key)
		if err != nil {
			t.Fatal(err)
		}
		inPlace := func(text []byte) { // its name, size and time stay as they are
			t.Helper()
			if err := os.WriteFile(r.key, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(r.key, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
		inPlace(bytes.Repeat([]byte("-"), len(text)))
		want("no key", "first", 1)
		inPlace(text)
		want("a pair", "second", 1)
		want("the same pair", "second", 1)
		if n := strings.Count(log.String(), "level=INFO"); n != 1 {
			t.Errorf("the pair was read again %d times: %s", n, &log)
		}
		if err := os.Remove(r.cert); err != nil {
			t.Fatal(err)
		}
		want("no certificate", "second", 2)
		want("still none", "second", 2)
		r.put(t, "third.pem", r.cert)
		want("another key's certificate", "second", 3)
		r.put(t, "third.key", r.key)
		want("the third pair", "third", 3)
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
