package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

func TestServer_ShutdownFinishesWhatIsInProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		close(entered)
		<-leave
		return tracker.Reply{Body: []byte(`{"done":true}`)}, nil
	})
	silent, err := net.Dial("tcp", b.addr) // says nothing, and must not hold things up
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, postHead+"Content-Length: 13\r\n\r\n{\"title\":\"t\"}"); err != nil {
		t.Fatal(err)
	}
	<-entered
	down := make(chan error, 1)
	go func() { down <- b.Shutdown(context.Background()) }()
	if err := <-b.served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if late, err := net.Dial("tcp", b.addr); err == nil {
		_ = late.Close()
		t.Error("still accepts")
	}
	close(leave)
	a, err := readAnswer(bufio.NewReader(c), "POST")
	if err != nil || a.body != `{"done":true}` || !a.Close {
		t.Fatalf("%v %+v", err, a)
	}
	select {
	case err := <-down:
		if err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("Shutdown does not return")
	}
}

func TestServer_ShutdownIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		close(entered)
		<-leave
		return tracker.Reply{}, nil
	})
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, postHead+"Content-Length: 13\r\n\r\n{\"title\":\"t\"}"); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := b.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still there")
	}
	close(leave)
}
