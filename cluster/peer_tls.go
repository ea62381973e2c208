package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// peerTLS secures the peer port: both sides show a certificate of the cluster's
// CA. Who a node is its hello says; the certificate says that it belongs.
type peerTLS struct{ server, client *tls.Config }

// newPeerTLS makes both sides' configuration of a node's certificate and the CA in
// RootCAs.
func newPeerTLS(own *tls.Config) *peerTLS {
	server, client := own.Clone(), own.Clone()
	server.MinVersion, client.MinVersion = tls.VersionTLS13, tls.VersionTLS13
	// Tickets would be unasked bytes on idle connections, and nobody resumes.
	server.SessionTicketsDisabled = true
	server.ClientCAs, server.ClientAuth = own.RootCAs, tls.RequireAndVerifyClientCert
	// Nodes move between addresses, so the name in the certificate says nothing; the
	// chain is checked below.
	client.InsecureSkipVerify = true //nolint:gosec // VerifyConnection checks the chain
	client.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
			Roots: own.RootCAs, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	return &peerTLS{server, client}
}

// tlsError says what to do about a handshake that failed.
func tlsError(err error) error {
	return fmt.Errorf("%w (give every node a certificate of one CA: --cluster-cert, --cluster-key and --cluster-ca on all nodes or on none)", err)
}
