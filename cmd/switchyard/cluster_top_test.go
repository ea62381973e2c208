package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/cmd/internal/top"
)

const topToken = "the-operators-token-of-top"

// startNode starts a node that joins others, or the first of a cluster.
func startNode(t *testing.T, name string, join ...string) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{
		Name: name, Data: t.TempDir(), HTTP: "127.0.0.1:0", Peer: "127.0.0.1:0", Gossip: "127.0.0.1:0", Join: join, Shards: 2,
		RootToken: topToken, OpenOnboarding: true, RequestTimeout: 30 * time.Second, Version: "test", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(n.Join(t.Context()), n.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n
}

// call sends a request and returns the body of its answer.
func call(ctx context.Context, method, url, token, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %d %s", method, url, res.StatusCode, answer)
	}
	return answer, err
}

// The command draws a frame of two real nodes under load, of which it asks the first.
func TestClusterTop_RealNodes(t *testing.T) {
	t.Parallel()
	first := startNode(t, "node-1")
	second := startNode(t, "node-2", first.GossipAddr())
	raw, err := call(t.Context(), "POST", "http://"+first.HTTPAddr()+"/workspaces/onboard", "", `{"name":"Acme","slug":"acme"}`)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Workspace struct{ ID string }
		Token     struct{ Token string }
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		t.Fatal(err)
	}
	// Clients of both nodes keep on writing and reading, so the node that is not the owner
	// forwards.
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for _, n := range []*node.Node{first, second} {
		issues := "http://" + n.HTTPAddr() + "/workspaces/" + made.Workspace.ID + "/issues"
		clients.Go(func() {
			for ctx.Err() == nil {
				// A busy machine may refuse some; the frame below shows that enough came through.
				_, _ = call(ctx, "POST", issues, made.Token.Token, `{"title":"One more"}`)
				_, _ = call(ctx, "GET", issues, made.Token.Token, "")
			}
		})
	}
	c, err := newClusterClient("http://"+second.HTTPAddr(), topToken)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := (clusterTopCmd{Every: time.Second}).once(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^cluster \S+: 2 nodes, 3 shards, format \d`,
		`(?m)^requests [1-9]\d*(\.\d)?/s   reads \d\S*/s   writes \d\S*/s   forwarded \d\S*/s   unavailable \d\S*/s   failed \d\S*/s$`,
		`(?m)^sessions 0 created, 0 running, 0 waiting   webhook deliveries 0 pending$`,
		`(?m)^node-1 +alive +\d +\d +\d\S* +\d\S* +\d\S* +\d\S* +\d+% +\d`,
		`(?m)^node-2 +alive +\d +\d +\d\S* +\d\S* +\d\S* +\d\S* +\d+% +\d`,
		`(?m)^acme +` + made.Workspace.ID + ` +node-[12] +(0\.)?[1-9]\S* +(0\.)?[1-9]\S* +\d`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line is like %s:\n%s", want, out.String())
		}
	}

	// On a terminal, until q is pressed.
	screen := &watched{}
	in, keys := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- clusterTopCmd{Every: shortestEvery}.run(t.Context(), c, top.Terminal{In: in, Out: screen, Size: func() (width, height int) { return 100, 30 }})
	}()
	await(t, screen, screen.seen("q quit"))
	if _, err := keys.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestClusterTop_Errors(t *testing.T) {
	t.Parallel()
	refusing := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code":"UNAUTHORIZED","message":"No.","hint":"Send."}`))
	})
	if err := (clusterTopCmd{Every: time.Second}).once(t.Context(), refusing, io.Discard); exitCode(err) != exitCredential {
		t.Errorf("a wrong token: %d, %v", exitCode(err), err)
	}
	for _, every := range []time.Duration{0, 499 * time.Millisecond, time.Hour + 1, -time.Second} {
		if err := (clusterTopCmd{Every: every}).once(t.Context(), refusing, io.Discard); err == nil || !strings.Contains(err.Error(), "--every") {
			t.Errorf("--every %s: %v", every, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	answering := asking(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)); cancel() })
	if err := (clusterTopCmd{Every: time.Hour}).once(ctx, answering, io.Discard); exitCode(err) != exitInterrupted {
		t.Errorf("Ctrl-C: %d, %v", exitCode(err), err)
	}
}
