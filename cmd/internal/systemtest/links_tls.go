package systemtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certificate writes a certificate that is its own authority, and its key, for nodes that prove
// themselves to each other with it.
func certificate(dir string) (cert, key string, err error) {
	pair, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make a certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nodes"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		return "", "", fmt.Errorf("make a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		return "", "", fmt.Errorf("make a certificate: %w", err)
	}
	cert, key = filepath.Join(dir, "node.pem"), filepath.Join(dir, "node.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return "", "", fmt.Errorf("make a certificate: %w", err)
		}
	}
	return cert, key, nil
}

// certificateFlags are the flags of nodes that use such a certificate.
func certificateFlags(cert, key string) []string {
	return []string{"--cluster-cert", cert, "--cluster-key", key, "--cluster-ca", cert}
}

// Secure has the nodes that are added use TLS between them. The relays have the nodes' certificate: each
// ends the TLS of the node that dials and begins another one to the node behind. So they can read the
// name of the dialing node, as without TLS.
func (f *Fleet) Secure() error {
	cert, key, err := certificate(f.Dir)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("read the nodes' certificate: %w", err)
	}
	f.links.secure = &pair
	f.Flags = append(f.Flags, certificateFlags(cert, key)...)
	return nil
}

// inside returns two connections of a relay, one from the node that dials and one to the node behind, as
// they are inside TLS. The handshakes happen with the first bytes.
func (l *links) inside(in, out net.Conn) (inner, outer net.Conn) {
	if l.secure == nil {
		return in, out
	}
	own := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*l.secure}, ClientAuth: tls.RequireAnyClientCert,
		SessionTicketsDisabled: true, // nodes expect no bytes on idle connections
		InsecureSkipVerify:     true, //nolint:gosec // the nodes check the certificates of the relays, and tests have both ends
	}
	return tls.Server(in, own), tls.Client(out, own)
}
