package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"switchyard/actors"
	"switchyard/cluster"
	"switchyard/httpapi"
	"switchyard/storage"
)

// Node is a running node.
type Node struct {
	cfg     Config
	store   *storage.Store
	groups  *cluster.Node
	engine  *actors.Engine
	api     *httpapi.Server
	http    net.Listener
	metrics *http.Server
	listen  net.Listener // of metrics
	failed  chan error   // the first listener that ended by itself
}

// Start assembles a node and returns when its listeners accept connections; the
// shards may still be electing, which Ready tells.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, failed: make(chan error, 2)}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Stop(ctx))
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) (err error) {
	cfg := n.cfg
	// Take the addresses first: a port in use should cost nothing else.
	if n.http, err = net.Listen("tcp", cfg.HTTP); err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	if cfg.Metrics != "" {
		if n.listen, err = net.Listen("tcp", cfg.Metrics); err != nil {
			return fmt.Errorf("listen for metrics: %w", err)
		}
	}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	if n.store, err = storage.Open(storage.Config{Dir: cfg.Data, Logger: cfg.Logger}); err != nil {
		return err
	}
	if n.groups, err = cluster.New(cluster.Config{Store: n.store, NodeName: cfg.Name, Shards: cfg.Shards, Logger: cfg.Logger}); err != nil {
		return err
	}
	if n.engine, err = actors.NewEngine(actors.Config{
		Store:          n.store,
		Replicator:     n.groups,
		RootToken:      cfg.RootToken,
		OpenOnboarding: cfg.OpenOnboarding,
		Clock:          time.Now,
		Random:         rand.Reader,
		Logger:         cfg.Logger,
		Full:           n.store.Space().Full,
	}); err != nil {
		return err
	}
	// What a full disk means to others, such as giving up leaderships, goes here too,
	// as OnFull.
	n.store.Space().OnLow(n.groups.Reclaim)
	n.store.Watch(cfg.DiskReserve)
	if err := n.groups.Start(ctx, n.engine); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), n.engine.Collector(), n.collector())
	if n.api, err = httpapi.New(httpapi.Config{
		Engine:         n.engine,
		Ready:          n.Ready,
		Version:        cfg.Version,
		PublicURL:      cfg.PublicURL,
		RequestTimeout: cfg.RequestTimeout,
		Rate:           cfg.Rate,
		Logger:         cfg.Logger,
		Registry:       registry,
	}); err != nil {
		return err
	}
	go func() { n.failed <- n.api.Serve(n.http) }()
	if n.listen != nil {
		n.metrics = &http.Server{Handler: n.api.Metrics(), ReadHeaderTimeout: 5 * time.Second}
		go func() {
			if err := n.metrics.Serve(n.listen); !errors.Is(err, http.ErrServerClosed) {
				n.failed <- fmt.Errorf("serve metrics: %w", err)
			}
		}()
	}
	return nil
}

// Ready is nil when this node can answer for every shard.
func (n *Node) Ready() error {
	if !n.groups.Ready() {
		return errors.New("not every shard has a leader yet")
	}
	return nil
}

// WaitReady returns nil once the node is ready, or an error when ctx ends first.
func (n *Node) WaitReady(ctx context.Context) error { return n.groups.WaitReady(ctx) }

// HTTPAddr is where the API is served.
func (n *Node) HTTPAddr() string { return n.http.Addr().String() }

// MetricsAddr is where metrics are served; empty when they are off.
func (n *Node) MetricsAddr() string {
	if n.listen == nil {
		return ""
	}
	return n.listen.Addr().String()
}

// Failed delivers the error of a listener that ended by itself.
func (n *Node) Failed() <-chan error { return n.failed }

// Stop finishes what is in flight and closes everything, within ctx's deadline.
func (n *Node) Stop(ctx context.Context) error {
	var errs []error
	switch {
	case n.api != nil:
		errs = append(errs, n.api.Shutdown(ctx))
	case n.http != nil:
		errs = append(errs, n.http.Close())
	}
	if n.engine != nil {
		errs = append(errs, n.engine.Close(ctx))
	}
	if n.groups != nil {
		errs = append(errs, n.groups.Close(ctx))
	}
	switch {
	case n.metrics != nil:
		errs = append(errs, n.metrics.Close())
	case n.listen != nil:
		errs = append(errs, n.listen.Close())
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}
