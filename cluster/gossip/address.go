package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// gossipBind splits the address to listen at. It returns the host as an IP address.
func gossipBind(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("cluster: the gossip address %q is not host:port", addr)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("cluster: the gossip address %q has no port", addr)
	}
	if host == "" {
		return "0.0.0.0", int(number), nil
	}
	ip, err := lookupOne(host)
	if err != nil {
		return "", 0, fmt.Errorf("look up the gossip address %q: %w", addr, err)
	}
	return ip.String(), int(number), nil
}

// advertisedHost returns the host at which others reach a port: the operator's setting, or the
// address that the port is bound to, or the machine's first private address if the port is bound to
// all.
func advertisedHost(advertise, bound string) (string, error) {
	if advertise != "" {
		return advertise, nil
	}
	if ip := net.ParseIP(bound); bound != "" && (ip == nil || !ip.IsUnspecified()) {
		return bound, nil
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list the machine's addresses: %w", err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsPrivate() {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("cluster: the machine has no private address: set --advertise to the host at which other nodes reach it")
}

// AdvertisedAddr returns the address at which others reach a listener.
func AdvertisedAddr(advertise string, bound net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", fmt.Errorf("read a listener's address: %w", err)
	}
	if host, err = advertisedHost(advertise, host); err != nil {
		return "", err
	}
	return net.JoinHostPort(host, port), nil
}

// lookupOne returns one IP address of a host, an IPv4 address if there is one: gossip binds to one
// address and is known by it.
func lookupOne(host string) (net.IP, error) {
	if ip := net.ParseIP(host); ip != nil {
		return ip, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for _, ip := range found {
		if ip.To4() != nil {
			return ip, nil
		}
	}
	return found[0], nil
}
