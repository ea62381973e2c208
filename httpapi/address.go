package httpapi

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// headerClient names the client's address between nodes. It means something on
// connections of ServePeers only; a client's is dropped.
const headerClient = "Switchyard-Client"

// Proxies are the proxies in front of the service whose word about the address of a
// client is believed.
type Proxies struct {
	Trusted []netip.Prefix
	// Header is the one in which they name the client: X-Forwarded-For, which is the
	// default, or Forwarded (RFC 7239). The other is ignored, because a client may have
	// sent it.
	Header string
}

// ParseProxies reads the ranges and the header of proxies.
func ParseProxies(ranges []string, header string) (Proxies, error) {
	p := Proxies{Header: "X-Forwarded-For"}
	for _, text := range ranges {
		prefix, err := netip.ParsePrefix(text)
		if addr, single := netip.ParseAddr(text); single == nil {
			prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || prefix != prefix.Masked() || prefix.Addr().Is4In6() {
			return p, fmt.Errorf("range %q: want an address or a range such as 10.1.0.0/16 or fd00::/8", text)
		}
		p.Trusted = append(p.Trusted, prefix)
	}
	switch strings.ToLower(header) {
	case "", "x-forwarded-for":
	case "forwarded":
		p.Header = "Forwarded"
	default:
		return p, fmt.Errorf("header %q: want X-Forwarded-For or Forwarded", header)
	}
	return p, nil
}

// trusts reports whether an address is a trusted proxy's.
func (p *Proxies) trusts(addr netip.Addr) bool {
	for _, prefix := range p.Trusted {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// client finds the address of a client in the values that proxies have appended to
// their header: the right-most that no trusted proxy has. A value that can't be read
// ends the search at the proxy that sent it.
func (p *Proxies) client(direct netip.Addr, values []byte) netip.Addr {
	at := direct
	for p.trusts(at) && len(values) > 0 {
		last := values
		if comma := bytes.LastIndexByte(values, ','); comma >= 0 {
			values, last = values[:comma], values[comma+1:]
		} else {
			values = nil
		}
		next, ok := p.hop(string(bytes.TrimSpace(last)))
		if !ok {
			break
		}
		at = next
	}
	return at
}

// hop reads the address of one value of the header.
func (p *Proxies) hop(value string) (netip.Addr, bool) {
	if p.Header == "Forwarded" {
		found := false
		for pair := range strings.SplitSeq(value, ";") {
			name, node, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				value, found = strings.Trim(node, `"`), true
			}
		}
		if !found {
			return netip.Addr{}, false
		}
	}
	if at, err := netip.ParseAddrPort(value); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(value, "["), "]"))
	return addr.Unmap().WithZone(""), err == nil
}

// addressOf is the address at a connection's other end; the zero Addr when it has
// none.
func addressOf(c net.Conn) netip.Addr {
	if at, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return at.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// sharer is the address that bounds per address are counted for: of IPv6 the
// network of 64 bits, all of which one client may have.
func sharer(addr netip.Addr) netip.Addr {
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.Addr()
		}
	}
	return addr
}

// client is the address of the request's client: the connection's, or the one that
// a trusted proxy or another node says.
func (s *Server) client(x *exchange) netip.Addr {
	switch c := x.conn; {
	case c == nil:
		return netip.Addr{}
	case c.peer:
		addr, _ := netip.ParseAddr(string(x.ctx.Request.Header.Peek(headerClient)))
		return addr
	case c.proxy:
		values, _ := x.header(s.cfg.Limits.Proxies.Header)
		return s.cfg.Limits.Proxies.client(c.address, values)
	default:
		return c.address
	}
}
