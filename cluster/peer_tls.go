package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// peerTLS secures the peer port: both sides show a certificate of the cluster's
// CA. Who a node is its hello says; the certificate says that it belongs.
type peerTLS struct{ server, client *tls.Config }

// loadPeerTLS reads a node's certificate, its key, and the CA of all nodes.
func loadPeerTLS(cert, key, ca string) (*peerTLS, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the node's certificate (--cluster-cert, --cluster-key): %w", err)
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's CA (--cluster-ca): %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the cluster's CA (--cluster-ca): %s holds no certificate in PEM", ca)
	}
	return &peerTLS{
		server: &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{pair},
			ClientCAs:    pool,
			ClientAuth:   tls.RequireAndVerifyClientCert,
		},
		client: &tls.Config{
			MinVersion:   tls.VersionTLS13,
			Certificates: []tls.Certificate{pair},
			// Nodes move between addresses, so the name in the certificate says nothing;
			// the chain is checked below.
			InsecureSkipVerify: true, //nolint:gosec // VerifyConnection checks the chain
			VerifyConnection: func(state tls.ConnectionState) error {
				if len(state.PeerCertificates) == 0 {
					return errors.New("no certificate")
				}
				between := x509.NewCertPool()
				for _, c := range state.PeerCertificates[1:] {
					between.AddCert(c)
				}
				_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
					Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
				})
				return err
			},
		},
	}, nil
}

// tlsError says what to do about a handshake that failed.
func tlsError(err error) error {
	return fmt.Errorf("%w (give every node a certificate of one CA: --cluster-cert, --cluster-key and --cluster-ca on all nodes or on none)", err)
}
