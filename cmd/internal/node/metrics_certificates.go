package node

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificateCollector reports how long the certificates of this node are good. A port without
// TLS has no sample.
type certificateCollector struct {
	public *keyPair  // of the public port; nil: no TLS there
	peer   time.Time // when the certificate between nodes expires; zero: no TLS there
	expiry *prometheus.Desc
}

// newCertificateCollector takes what publicTLS and clusterTLS made. Both may be nil.
func newCertificateCollector(public *keyPair, cluster *tls.Config) *certificateCollector {
	c := &certificateCollector{
		public: public,
		expiry: prometheus.NewDesc("switchyard_certificate_expiry_timestamp_seconds",
			"When the certificate of a port expires, or one behind it that expires sooner, in seconds since 1970. The port is http or peer.", []string{"port"}, nil),
	}
	if cluster != nil {
		c.peer = expiry(&cluster.Certificates[0], cluster.RootCAs)
	}
	return c
}

// expiry returns when a certificate, or one behind it that is sent with it, expires first. With
// authorities it counts the one that issued it, too: a file of authorities may have an old one
// beside the present one, so the authority that is good for longest counts.
func expiry(pair *tls.Certificate, authorities *x509.CertPool) time.Time {
	sent := []*x509.Certificate{pair.Leaf}
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			sent = append(sent, c)
		}
	}
	if authorities != nil {
		chains, _ := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, Intermediates: chain(pair), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
		var latest time.Time
		for _, c := range chains {
			if first := first(c); first.After(latest) {
				latest = first
			}
		}
		if !latest.IsZero() {
			return latest
		}
	}
	return first(sent)
}

// first returns when the first of some certificates expires.
func first(certificates []*x509.Certificate) time.Time {
	earliest := certificates[0].NotAfter
	for _, c := range certificates[1:] {
		if c.NotAfter.Before(earliest) {
			earliest = c.NotAfter
		}
	}
	return earliest
}

// Describe implements prometheus.Collector.
func (c *certificateCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.expiry }

// Collect implements prometheus.Collector. A scrape looks for new files as a new connection does,
// so that a node without clients shows a renewal, too.
func (c *certificateCollector) Collect(ch chan<- prometheus.Metric) {
	if c.public != nil {
		if pair, err := c.public.certificate(nil); err == nil {
			ch <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, float64(expiry(pair, nil).Unix()), "http")
		}
	}
	if !c.peer.IsZero() {
		ch <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, float64(c.peer.Unix()), "peer")
	}
}
