package node

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen takes the TCP address of a flag.
func listen(flag, address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, addressError(flag, address, err)
	}
	return ln, nil
}

// addressError adds the remedy to the error of an address that can't be listened on.
func addressError(flag, address string, err error) error {
	advice := "give an address of this machine, as in 127.0.0.1:7000 or 0.0.0.0:7000"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "the port is taken, perhaps by another node on this machine: stop that one, or give " + flag +
			" another port (each node of a machine needs its own --data, --http, --metrics, --peer and --gossip)"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		advice = "this machine does not have the address: give one that it has, or 0.0.0.0 for all of them"
	case errors.Is(err, syscall.EACCES):
		advice = "this user may not listen on the port: choose one above 1023"
	}
	return fmt.Errorf("%s %s: %s: %w", flag, address, advice, err)
}
