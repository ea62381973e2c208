package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// clusterTLS reads this node's certificate and the authority of the cluster; nil if there
// are none. Both sides of a connection show a certificate of the cluster's own authority.
func (c Config) clusterTLS() (*tls.Config, error) {
	if c.ClusterCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.ClusterCert, c.ClusterKey)
	if err != nil {
		return nil, fmt.Errorf("--cluster-cert %s with --cluster-key %s: %w", c.ClusterCert, c.ClusterKey, err)
	}
	pem, err := os.ReadFile(c.ClusterCA)
	if err != nil {
		return nil, fmt.Errorf("--cluster-ca: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--cluster-ca %s: holds no certificate in PEM", c.ClusterCA)
	}
	// A certificate that other nodes would refuse is an error here already.
	for _, use := range []struct {
		name string
		key  x509.ExtKeyUsage
	}{{"serverAuth", x509.ExtKeyUsageServerAuth}, {"clientAuth", x509.ExtKeyUsageClientAuth}} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, Intermediates: chain(&pair), KeyUsages: []x509.ExtKeyUsage{use.key}})
		if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok && bad.Reason == x509.IncompatibleUsage {
			return nil, fmt.Errorf("--cluster-cert %s: nodes are client and server of each other, and the certificate does not allow %s: "+
				"make it with extendedKeyUsage=serverAuth,clientAuth", c.ClusterCert, use.name)
		}
		if err != nil {
			return nil, fmt.Errorf("--cluster-cert %s was not issued by --cluster-ca %s: %w", c.ClusterCert, c.ClusterCA, err)
		}
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{pair},
		RootCAs:      authorities,
		ClientCAs:    authorities,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}

// chain are the certificates between a node's own and the authority.
func chain(pair *tls.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool
}
