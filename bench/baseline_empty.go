package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

// emptyBody is the size of the answer to a get on average, in bytes.
const emptyBody = 1320

// ServeEmpty serves a handler that does nothing but answer as many bytes as a get, until ctx
// ends. It runs in a process of its own, as a node does, so that the two compare.
func ServeEmpty(ctx context.Context, addr string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	body := bytes.Repeat([]byte("x"), emptyBody)
	s := &fasthttp.Server{
		NoDefaultServerHeader: true,
		Handler: func(c *fasthttp.RequestCtx) {
			c.SetContentType("application/json")
			c.SetBody(body)
		},
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		return fmt.Errorf("bench: serve: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.ShutdownWithContext(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("bench: stop: %w", err)
	}
	return nil
}

// emptyRequests asks the empty handler what a get asks a node.
func emptyRequests(host string) func(int) func() []byte {
	const token = "swy_0000000000000000000000000000000000000000000000000000000000000000000000"
	r := request("GET", host, "/workspaces/00000000-0000-7000-8000-000000000000/issues/00000000-0000-7000-8000-000000000000", token, "")
	return func(int) func() []byte { return func() []byte { return r } }
}
