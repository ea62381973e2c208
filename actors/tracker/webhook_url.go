package tracker

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"switchyard/storage"
)

// WebhookPolicy decides which addresses webhooks may have. The zero policy allows
// public addresses with https.
type WebhookPolicy struct {
	// AllowHTTP also allows http.
	AllowHTTP bool
	// AllowPrivate allows every address and port.
	AllowPrivate bool
	// Allow are ranges of addresses that are allowed in any case.
	Allow []netip.Prefix
	// PerHost is the number of webhooks of a workspace with the same host; 0 means
	// DefaultWebhooksPerHost.
	PerHost int
}

// MaxWebhooks is the number of webhooks that a workspace may have.
const MaxWebhooks = 100

// DefaultWebhooksPerHost limits the requests that one change causes to a host that may
// not want any.
const DefaultWebhooksPerHost = 10

// notPublic are the ranges of addresses that are not on the public internet, or that
// contain another address which may not be.
var notPublic = parsePrefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
	// Of IPv6 only 2000::/3 is allocated; within it: protocol assignments with Teredo,
	// documentation, 6to4.
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

var globalIPv6 = netip.MustParsePrefix("2000::/3")

func parsePrefixes(texts ...string) []netip.Prefix {
	prefixes := make([]netip.Prefix, 0, len(texts))
	for _, s := range texts {
		prefixes = append(prefixes, netip.MustParsePrefix(s))
	}
	return prefixes
}

// Permits reports whether deliveries may be sent to an address. An IPv4 address mapped
// to IPv6 is checked as the IPv4 address.
func (p *WebhookPolicy) Permits(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	a = a.Unmap().WithZone("")
	if p.AllowPrivate || within(p.Allow, a) {
		return true
	}
	return (a.Is4() || globalIPv6.Contains(a)) && !within(notPublic, a)
}

func within(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// webhookURLFault returns the fault of an address under any policy, or "".
func webhookURLFault(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return "Not a valid URL: it must look like https://example.com/hook."
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return "Must begin with https://."
	case u.User != nil:
		return "Must not contain a user name or password: check the signature instead, or put a secret into the path."
	case strings.Contains(text, "#"):
		return "Must not have a fragment: it would not be sent."
	case strings.HasSuffix(u.Host, ":"):
		return "Has a colon without a port."
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "Has a port that is not from 1 to 65535."
		}
	}
	return hostFault(u.Hostname())
}

// hostFault refuses hosts that different parsers take for different addresses.
func hostFault(host string) string {
	if host == "" {
		return "Must have a host."
	}
	if strings.Contains(host, ":") {
		if a, err := netip.ParseAddr(host); err != nil || a.Zone() != "" {
			return "Has a host that is not a valid IPv6 address."
		}
		return ""
	}
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`%"<>\^{|}`+"`", c) >= 0 {
			return "Has a host with characters that names don't have; write an international one as xn--."
		}
	}
	host = strings.TrimSuffix(host, ".")
	if !numeric(host) {
		return ""
	}
	if a, err := netip.ParseAddr(host); err != nil || !a.Is4() {
		return "Has a host that looks like an IPv4 address; write it as four decimal numbers."
	}
	return ""
}

// numeric reports whether a host's last label is a number, decimal, octal or
// hexadecimal: some parsers take the whole for an IPv4 address.
func numeric(host string) bool {
	label := host[strings.LastIndexByte(host, '.')+1:]
	if rest, hex := strings.CutPrefix(strings.ToLower(label), "0x"); hex {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

// fault returns the fault that the policy finds in a valid address, or "". Names are
// not resolved: the addresses of a host are checked when it is dialed.
func (p *WebhookPolicy) fault(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "Not a valid URL."
	}
	if u.Scheme == "http" && !p.AllowHTTP {
		return "Must begin with https://."
	}
	if fault := p.portFault(u.Port()); fault != "" {
		return fault
	}
	const private = "Leads to a private, local or otherwise special address, which this service does not send to."
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		if !p.Permits(a) {
			return private
		}
		return ""
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		if !p.Permits(netip.AddrFrom4([4]byte{127, 0, 0, 1})) && !p.Permits(netip.IPv6Loopback()) {
			return private
		}
	}
	return ""
}

// portFault refuses the ports of other well-known services: requests could reach mail
// and name servers, and the errors of deliveries would reveal which of them exist.
func (p *WebhookPolicy) portFault(port string) string {
	if n, err := strconv.Atoi(port); err != nil || n >= 1024 || n == 443 || n == 80 || p.AllowPrivate {
		return ""
	}
	return "Has a port below 1024 that is neither 443 nor 80."
}

// webhookHost returns the host of a webhook's URL in a normalized form.
func webhookHost(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "" // URLs are checked when they are written
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().WithZone("").String()
	}
	return host
}

// webhookURL checks the URL of a webhook by the service's policy. before is the URL
// that it replaces; empty for a new webhook.
func (tx *Tx) webhookURL(text, before string) error {
	if fault := tx.buffer.policy.fault(text); fault != "" {
		return BadRequest(Fault{Path: "url", Message: fault})
	}
	host := webhookHost(text)
	if before != "" && webhookHost(before) == host {
		return nil
	}
	return tx.roomAtHost(host)
}

// roomAtHost refuses one more webhook to a host that has as many as there may be.
func (tx *Tx) roomAtHost(host string) error {
	n, most := 0, cmp.Or(tx.buffer.policy.PerHost, DefaultWebhooksPerHost)
	err := webhooks.Scan(tx, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := webhooks.Decode(rec)
		if err == nil && webhookHost(row.Value.URL) == host {
			n++
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the webhooks: %w", err)
	}
	if n >= most {
		return Conflict(fmt.Sprintf("The workspace has %s to the host %s, the most there can be (--webhooks-per-host).", Counted(n, "webhook subscription", "webhook subscriptions"), host),
			"Delete one of them, or have one subscription get more types of events.")
	}
	return nil
}

// SetWebhookPolicy sets the policy for the addresses of webhooks.
func (l *WriteBuffer) SetWebhookPolicy(p WebhookPolicy) { l.policy = p }
