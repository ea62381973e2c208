package httpapi

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// discarding takes spans and sends them nowhere.
type discarding struct{}

func (discarding) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }

func (discarding) Shutdown(context.Context) error { return nil }

// BenchmarkTraces is the price of traces beside the same request without them.
func BenchmarkTraces(b *testing.B) {
	get := "GET " + things + "/01931f6e-7a3c-7def-8123-456789abcd00 HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + token + "\r\nAccept: */*\r\n\r\n"
	for _, row := range []struct {
		name  string
		ratio float64
	}{{"off", -1}, {"0", 0}, {"0.01", 0.01}, {"1", 1}} {
		b.Run(row.name, func(b *testing.B) {
			cfg := Config{Engine: benchEngine{nineHundred}, Slow: time.Second}
			if row.ratio >= 0 {
				provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithBatcher(discarding{}))
				b.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(b.Context())) })
				cfg.Tracing = &Tracing{Tracer: provider.Tracer("bench"), Ratio: row.ratio}
			}
			s, err := newServer(cfg, fakeRoutes())
			if err != nil {
				b.Fatal(err)
			}
			ln := loopback(b)
			go s.Serve(ln) //nolint:errcheck // ends with the listener
			b.Cleanup(func() { _ = s.Shutdown(context.WithoutCancel(b.Context())) })
			roundTrips(b, ln, get, len(nineHundred))
		})
	}
}
