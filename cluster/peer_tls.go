package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// peerTLS holds the TLS configuration of both sides. Each side shows a certificate of the cluster's
// CA. The certificate proves that a node belongs to the cluster; the hello says which node it is.
type peerTLS struct{ server, client *tls.Config }

// newPeerTLS makes the configuration of both sides from a node's certificate and the CA in RootCAs.
func newPeerTLS(own *tls.Config) *peerTLS {
	server, client := own.Clone(), own.Clone()
	server.MinVersion, client.MinVersion = tls.VersionTLS13, tls.VersionTLS13
	// Session tickets would be unrequested bytes on idle connections, and no node resumes sessions.
	server.SessionTicketsDisabled = true
	server.ClientCAs, server.ClientAuth = own.RootCAs, tls.RequireAndVerifyClientCert
	// Nodes move between addresses, so the name in the certificate is not checked; the chain is
	// checked below.
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

// tlsError adds the remedy to the error of a failed handshake.
func tlsError(err error) error {
	return fmt.Errorf("%w (give every node a certificate of one CA: --cluster-cert, --cluster-key and --cluster-ca on all nodes or on none)", err)
}
