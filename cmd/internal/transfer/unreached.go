package transfer

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// UnreachedError is the error of a request to a service from which no answer came.
type UnreachedError struct {
	base string
	err  error
}

// Unreached returns the error of a request to the service at an address. err is that of the connection.
func Unreached(base string, err error) error { return &UnreachedError{base, err} }

func (e *UnreachedError) Error() string {
	var timeout net.Error
	switch {
	case errors.Is(e.err, syscall.ECONNREFUSED):
		return "nothing listens at " + e.base
	case errors.As(e.err, &timeout) && timeout.Timeout():
		return e.base + " did not answer in time"
	}
	return fmt.Sprintf("can't reach %s: %v", e.base, e.err)
}

func (e *UnreachedError) Unwrap() error { return e.err }
