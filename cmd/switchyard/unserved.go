package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"switchyard/cmd/internal/transfer"
)

// asked describes what a command has asked a service for, for the texts of its errors.
type asked struct {
	doing string // such as "back up"
	flags string // that name the service
	token string // that the service accepts
}

// operatorsToken is what a service accepts for the operator's commands.
const operatorsToken = "the operator's token that the nodes were started with"

// failed returns the error of the command. If nobody reaches the service or it refuses the token, the error says what
// to do and has an exit code of the cluster's commands. ctx is from interruptible.
func (a asked) failed(ctx context.Context, err error) error {
	err = fmt.Errorf("%s: %w", a.doing, err)
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	if _, ok := errors.AsType[*transfer.UnreachedError](err); ok {
		return unreachable(err, a.flags)
	}
	refused, ok := errors.AsType[*transfer.RefusedError](err)
	if !ok {
		return err
	}
	switch refused.Status {
	case http.StatusUnauthorized:
		return &exitError{exitCredential, fmt.Errorf("%w: it must be %s", err, a.token)}
	case http.StatusForbidden:
		return &exitError{exitCredential, err}
	case http.StatusServiceUnavailable:
		return &exitError{exitUnreachable, err}
	}
	return err
}

// unreachable returns the error of a command whose node did not answer. flags name the node.
func unreachable(err error, flags string) error {
	return &exitError{exitUnreachable, fmt.Errorf("%w: is the node running? %s names another one", err, flags)}
}
