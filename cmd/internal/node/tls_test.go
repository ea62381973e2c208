package node

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority makes certificates.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.issue(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// issue writes name.pem and name.key.
func (a *authority) issue(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func (a *authority) config(name string) Config {
	file := func(name string) string { return filepath.Join(a.dir, name) }
	return Config{ClusterCert: file(name + ".pem"), ClusterKey: file(name + ".key"), ClusterCA: file("ca.pem")}
}

func both() []x509.ExtKeyUsage {
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

func TestClusterTLS_RefusesWhatOthersWould(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t), newAuthority(t)
	a.issue(t, "good", &x509.Certificate{ExtKeyUsage: both()})
	a.issue(t, "server", &x509.Certificate{ExtKeyUsage: both()[:1]})
	a.issue(t, "old", &x509.Certificate{ExtKeyUsage: both(), NotAfter: time.Now().Add(-time.Hour)})
	foreign := a.config("good")
	foreign.ClusterCA = other.config("good").ClusterCA
	mixed := a.config("good")
	mixed.ClusterKey = a.config("server").ClusterKey
	swapped := a.config("good")
	swapped.ClusterCA = swapped.ClusterKey
	missing := a.config("good")
	missing.ClusterCA += ".none"
	for _, row := range []struct {
		name   string
		config Config
		says   string // nothing: it is fine
	}{
		{"good", a.config("good"), ""},
		{"none", Config{}, ""},
		{"a server's only", a.config("server"), "extendedKeyUsage=serverAuth,clientAuth"},
		{"expired", a.config("old"), "expired"},
		{"another authority's", foreign, "was not issued by --cluster-ca"},
		{"another's key", mixed, "--cluster-key"},
		{"a key for the authority", swapped, "holds no certificate in PEM"},
		{"no file", missing, "--cluster-ca"},
		{"no certificate", a.config("none"), "--cluster-cert"},
	} {
		_, err := row.config.clusterTLS()
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestClusterTLS_BothSidesProveThemselves(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.issue(t, "node-1", &x509.Certificate{ExtKeyUsage: both(), DNSNames: []string{"node-1"}})
	conf, err := a.config("node-1").clusterTLS()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		client *tls.Config
		fine   bool
	}{
		{"a node", func() *tls.Config { c := conf.Clone(); c.ServerName = "node-1"; return c }(), true},
		{"a stranger", &tls.Config{RootCAs: conf.RootCAs, ServerName: "node-1"}, false},
	} {
		here, there := net.Pipe()
		failed := make(chan error, 1)
		go func() {
			server := tls.Server(there, conf)
			failed <- server.Handshake()
			_ = there.Close()
		}()
		client := tls.Client(here, row.client)
		_ = client.Handshake()
		_ = here.Close()
		if err := <-failed; (err == nil) != row.fine {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
