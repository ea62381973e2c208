package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/valyala/fasthttp"
)

// receiver takes webhook deliveries within the generator's process. It answers at
// once and notes how long after its event each one came.
type receiver struct {
	server *fasthttp.Server
	url    string
	took   atomic.Int64 // deliveries

	mu  sync.Mutex
	lag *hdrhistogram.Histogram // microseconds since the event's createdAt, which is in whole milliseconds
}

func startReceiver() (*receiver, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: a receiver: %w", err)
	}
	r := &receiver{url: "http://" + l.Addr().String(), lag: newHistogram()}
	r.server = &fasthttp.Server{Handler: r.take, NoDefaultServerHeader: true}
	go func() { _ = r.server.Serve(l) }() // ends in stop; a delivery not taken shows in the count
	return r, nil
}

func (r *receiver) take(c *fasthttp.RequestCtx) {
	r.took.Add(1)
	_, rest, ok := bytes.Cut(c.PostBody(), []byte(`"createdAt":"`))
	if !ok || len(rest) < 24 {
		return
	}
	at, err := time.Parse("2006-01-02T15:04:05.000Z", string(rest[:24]))
	if err != nil {
		return
	}
	lag := max(time.Since(at).Microseconds(), lowestLatency)
	r.mu.Lock()
	_ = r.lag.RecordValue(min(lag, highestLatency))
	r.mu.Unlock()
}

func (r *receiver) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return r.server.ShutdownWithContext(ctx)
}

// subscriptions of the workspace that is written to.
const subscriptions = 3

// hook subscribes a receiver to the events of the workspace made for it.
func (w *world) hook() (err error) {
	if w.receiver, err = startReceiver(); err != nil {
		return err
	}
	d := w.dial()
	defer d.close()
	for i := range subscriptions {
		body := fmt.Sprintf(`{"url":%q}`, w.receiver.url+"/"+strconv.Itoa(i))
		status, answer, err := d.do(request("POST", w.host, "/workspaces/"+w.hooked.id+"/webhook-subscriptions", w.hooked.token, body))
		if err != nil {
			return fmt.Errorf("bench: subscribe: %w", err)
		}
		if status != 201 {
			return fmt.Errorf("bench: subscribe: status %d (the node needs --webhooks-allow-http --webhooks-allow-cidr 127.0.0.0/8): %.300s", status, answer)
		}
	}
	return nil
}

// drained tells of the deliveries: those that were made beside the load, and then
// of the rest.
func (w *world) drained(ctx context.Context, out io.Writer, began time.Time, before int64) {
	r := w.receiver
	beside, ended := r.took.Load(), time.Now()
	last, at := beside, ended
	for time.Since(at) < time.Second && ctx.Err() == nil { // until none comes any longer
		sleep(ctx, 10*time.Millisecond)
		if now := r.took.Load(); now != last {
			last, at = now, time.Now()
		}
	}
	_, _ = fmt.Fprintf(out, "  deliveries: %.0f/s beside the load", float64(beside-before)/ended.Sub(began).Seconds())
	if left := last - beside; left > 0 && at.After(ended) {
		_, _ = fmt.Fprintf(out, ", then %d at %.0f/s", left, float64(left)/at.Sub(ended).Seconds())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(out, "; from event to receiver p50 %.1f ms, p99 %.1f ms\n", float64(r.lag.ValueAtQuantile(50))/1000, float64(r.lag.ValueAtQuantile(99))/1000)
	r.lag.Reset()
}
