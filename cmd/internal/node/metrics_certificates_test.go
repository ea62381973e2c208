package node

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// expiries returns the samples of a collector by port.
func expiries(t *testing.T, c *certificateCollector) map[string]int64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			found[m.GetLabel()[0].GetValue()] = int64(m.GetGauge().GetValue())
		}
	}
	return found
}

func TestCertificateExpiry_OfBothPorts(t *testing.T) {
	t.Parallel()
	a := newAuthority(t) // good for an hour
	short, long := time.Now().Add(20*time.Minute), time.Now().Add(48*time.Hour)
	a.issue(t, "short", &x509.Certificate{ExtKeyUsage: both(), NotAfter: short})
	a.issue(t, "long", &x509.Certificate{ExtKeyUsage: both(), NotAfter: long})
	file := func(name string) string { return filepath.Join(a.dir, name) }
	join := func(to string, from ...string) {
		t.Helper()
		var all []byte
		for _, name := range from {
			text, err := os.ReadFile(file(name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		if err := os.WriteFile(file(to), all, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	join("chain.pem", "long.pem", "ca.pem")
	for _, row := range []struct {
		name   string
		config Config
		want   map[string]int64
	}{
		{"no TLS", Config{}, map[string]int64{}},
		{"the certificate between nodes", a.config("short"), map[string]int64{"peer": short.Unix()}},
		{"its authority expires first", a.config("long"), map[string]int64{"peer": a.cert.NotAfter.Unix()}},
		{"the public certificate", Config{TLSCert: file("long.pem"), TLSKey: file("long.key")}, map[string]int64{"http": long.Unix()}},
		{"one behind it expires first", Config{TLSCert: file("chain.pem"), TLSKey: file("long.key")}, map[string]int64{"http": a.cert.NotAfter.Unix()}},
	} {
		row.config.Logger = slog.New(slog.DiscardHandler)
		public, err := row.config.publicTLS()
		if err != nil {
			t.Fatal(err)
		}
		secure, err := row.config.clusterTLS()
		if err != nil {
			t.Fatal(err)
		}
		if got := expiries(t, newCertificateCollector(public, secure)); !maps.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// While an authority is renewed its old certificate stays in the file. The end of that says nothing.
func TestCertificateExpiry_BesideAnOldAuthority(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue(t, "node-1", &x509.Certificate{ExtKeyUsage: both(), NotAfter: time.Now().Add(3 * time.Hour)})
	renewed := *a.cert
	renewed.NotAfter = a.cert.NotAfter.Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &renewed, &renewed, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	config := a.config("node-1")
	file, err := os.OpenFile(config.ClusterCA, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: der}), file.Close()); err != nil {
		t.Fatal(err)
	}
	secure, err := config.clusterTLS()
	if err != nil {
		t.Fatal(err)
	}
	if got := expiries(t, newCertificateCollector(nil, secure))["peer"]; got != renewed.NotAfter.Unix() {
		t.Errorf("the certificate expires at %d, want %d", got, renewed.NotAfter.Unix())
	}
}

// A scrape shows a renewal although no client has connected since.
func TestCertificateExpiry_AfterARenewal(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	renewed := time.Now().Add(90 * time.Minute)
	a.issue(t, "site", &x509.Certificate{})
	public, err := Config{TLSCert: filepath.Join(a.dir, "site.pem"), TLSKey: filepath.Join(a.dir, "site.key"), Logger: slog.New(slog.DiscardHandler)}.publicTLS()
	if err != nil {
		t.Fatal(err)
	}
	c := newCertificateCollector(public, nil)
	before := expiries(t, c)["http"]
	a.issue(t, "next", &x509.Certificate{NotAfter: renewed})
	for _, kind := range []string{".pem", ".key"} {
		if err := os.Rename(filepath.Join(a.dir, "next"+kind), filepath.Join(a.dir, "site"+kind)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		public.looked = time.Now()
		time.Sleep(2 * keyPairLook) // of the bubble
		if after := expiries(t, c)["http"]; after != renewed.Unix() || before == after {
			t.Errorf("the certificate expires at %d, want %d; before the renewal it was %d", after, renewed.Unix(), before)
		}
	})
}
