package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"switchyard/actors/delivery"
	"switchyard/actors/webhook"
	"switchyard/httpapi"
)

const (
	// traceQueue bounds the spans that wait for the collector; more are dropped.
	traceQueue = 4096
	// traceBatch is how many spans are sent at once, and traceEvery how long they wait for
	// others.
	traceBatch = 512
	traceEvery = 2 * time.Second
	// traceSend bounds the time in which spans are sent, with repeats, and traceFlush that of
	// the last ones when the node stops.
	traceSend  = 10 * time.Second
	traceFlush = 2 * time.Second
	// traceWarnings is the time between two lines in the log about a collector that fails.
	traceWarnings = time.Minute
)

// validateTraces checks the flags of traces.
func (c Config) validateTraces() error {
	if c.TraceRatio < 0 || c.TraceRatio > 1 || c.TraceRatio != c.TraceRatio {
		return fmt.Errorf("--trace-ratio %v: must be from 0 to 1", c.TraceRatio)
	}
	if c.TraceEndpoint == "" {
		return nil
	}
	_, err := c.traceURL()
	return err
}

// traceURL is the URL to which spans are sent. Without a path it gets that of OTLP.
func (c Config) traceURL() (string, error) {
	u, err := url.Parse(c.TraceEndpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--trace-endpoint: must be like http://127.0.0.1:4318 or https://HOST/v1/traces; credentials belong into OTEL_EXPORTER_OTLP_HEADERS")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// traces sends the spans of a node to a collector. Its one goroutine is the SDK's, which ends
// with stop. A nil traces makes none.
type traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	ratio    float64
	spans    *spanCounter
	export   *spanExporter
}

// newTraces returns the traces of the flags; nil if there is no endpoint.
func (n *Node) newTraces() (*traces, error) {
	c := n.cfg
	if c.TraceEndpoint == "" {
		return nil, nil
	}
	to, err := c.traceURL()
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(traceSend),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: 5 * time.Second, MaxElapsedTime: traceSend}))
	if err != nil {
		return nil, fmt.Errorf("trace exporter: %w", err)
	}
	t := &traces{ratio: c.TraceRatio, spans: &spanCounter{}, export: &spanExporter{SpanExporter: exporter, log: c.Logger, lines: rate.NewLimiter(rate.Every(traceWarnings), 1)}}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // the server has chosen the requests
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "switchyard"), attribute.String("service.version", c.Version), attribute.String("service.instance.id", n.groups.Name()),
		)),
		sdktrace.WithSpanProcessor(t.spans),
		sdktrace.WithBatcher(t.export, sdktrace.WithMaxQueueSize(traceQueue), sdktrace.WithMaxExportBatchSize(traceBatch), sdktrace.WithBatchTimeout(traceEvery), sdktrace.WithExportTimeout(traceSend)),
	)
	t.tracer = t.provider.Tracer("switchyard")
	n.registry.MustRegister(t.collector())
	return t, nil
}

// requests configures the traces of requests.
func (t *traces) requests() *httpapi.Tracing {
	if t == nil {
		return nil
	}
	return &httpapi.Tracing{Tracer: t.tracer, Ratio: t.ratio}
}

// stop sends the last spans. A collector that does not take them is no error of the node.
func (t *traces) stop(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, traceFlush)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.export.log.Warn("the last spans were not sent", "error", err)
	}
}

// spanCounter counts the spans that have ended.
type spanCounter struct{ ended atomic.Uint64 }

// OnStart implements sdktrace.SpanProcessor.
func (*spanCounter) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (c *spanCounter) OnEnd(sdktrace.ReadOnlySpan) { c.ended.Add(1) }

// Shutdown implements sdktrace.SpanProcessor.
func (*spanCounter) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*spanCounter) ForceFlush(context.Context) error { return nil }

// spanExporter counts the spans that are sent. It logs failures, a line in traceWarnings at
// most, and keeps them from the SDK, whose handler of errors is the process's.
type spanExporter struct {
	sdktrace.SpanExporter
	log          *slog.Logger
	lines        *rate.Limiter
	sent, failed atomic.Uint64
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.failed.Add(uint64(len(spans)))
		if e.lines.Allow() {
			e.log.Warn("spans were not sent", "spans", len(spans), "error", err)
		}
		return nil
	}
	e.sent.Add(uint64(len(spans)))
	return nil
}

// collector reports the numbers of spans.
func (t *traces) collector() prometheus.Collector {
	return &spanCollector{t, prometheus.NewDesc("switchyard_trace_spans_total", "Spans of traces, by what became of them: ended (all), sent or failed. The others wait, or were dropped because too many waited.", []string{"outcome"}, nil)}
}

type spanCollector struct {
	t    *traces
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *spanCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *spanCollector) Collect(ch chan<- prometheus.Metric) {
	for outcome, n := range map[string]*atomic.Uint64{"ended": &c.t.spans.ended, "sent": &c.t.export.sent, "failed": &c.t.export.failed} {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n.Load()), outcome)
	}
}

// deliveries wraps the sender of webhooks, so that the chosen ones have a trace of their own.
// The event's request may have ended long before, on another node.
func (t *traces) deliveries() func(delivery.Sender) delivery.Sender {
	if t == nil {
		return nil
	}
	return func(s delivery.Sender) delivery.Sender { return &tracedSender{s, t} }
}

type tracedSender struct {
	delivery.Sender
	traces *traces
}

// Send implements delivery.Sender.
func (s *tracedSender) Send(ctx context.Context, d *webhook.Delivery) webhook.Result {
	if rand.Float64() >= s.traces.ratio {
		return s.Sender.Send(ctx, d)
	}
	ctx, span := s.traces.tracer.Start(ctx, "webhook delivery", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("switchyard.event", d.Type), attribute.String("switchyard.delivery", d.ID)))
	defer span.End()
	d.Traceparent = httpapi.Traceparent(span)
	result := s.Sender.Send(ctx, d)
	if result.StatusCode != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", result.StatusCode))
	}
	if result.Failure != "" {
		span.SetStatus(codes.Error, result.Failure)
	}
	return result
}
