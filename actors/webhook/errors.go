package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// describe returns the reason of a failure for a subscriber's admin. It has no
// addresses, which could reveal the service's own network.
func describe(err error) string {
	var (
		dns       *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		untrusted *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		timeout   interface{ Timeout() bool }
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "The try was cut short."
	case errors.Is(err, errForbidden), errors.As(err, &dns) && !dns.IsTimeout:
		// The text is the same for both: tenants must not learn which names exist in
		// the service's own network.
		return "The host's name is not known, or leads to an address that this service does not send to."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "There was no answer within 10 seconds."
	case errors.As(err, &host):
		return "The receiver's certificate is for another host."
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &untrusted):
		return "The receiver's certificate is not valid."
	case errors.As(err, &record), errors.As(err, &alert):
		return "The receiver's TLS is not valid."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The connection was refused."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "The receiver can't be reached."
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "The connection was closed before an answer came."
	}
	return "There was no valid answer."
}
