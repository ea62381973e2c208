package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/httpapi"
)

// direct answers requests without a network, so that time can be the test's own.
type direct struct{ http.Handler }

func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, req)
	if rec.Code == 599 {
		return nil, errors.New("cut off")
	}
	return rec.Result(), nil
}

func asking(t *testing.T, answer http.HandlerFunc) *clusterClient {
	t.Helper()
	c, err := newClusterClient("http://node/", "the-operators-token")
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = direct{answer}
	return c
}

func TestCluster_ErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status int
		body   string
		code   int
		says   []string
	}{
		{401, `{"code":"UNAUTHORIZED","message":"No.","hint":"Send."}`, exitCredential, []string{"started with"}},
		{403, `{"code":"FORBIDDEN","message":"No.","hint":"Send."}`, exitCredential, []string{"root token"}},
		{404, `{"code":"NOT_FOUND","message":"No node.","hint":"Look."}`, exitNoNode, []string{"No node.", "Look."}},
		{409, `{"code":"CONFLICT","message":"The last.","hint":"Add one."}`, exitRefused, []string{"The last.", "Add one."}},
		{503, `{"code":"UNAVAILABLE","message":"Not now.","hint":"Later."}`, exitUnreachable, []string{"Not now.", "Later."}},
		{500, `{"code":"INTERNAL","message":"Broken.","hint":"Report."}`, exitFailed, []string{"Broken."}},
		{302, ``, exitFailed, []string{"302", "is it a Switchyard node?"}},
		{404, `<html>`, exitNoNode, []string{"is it a Switchyard node?"}},
	} {
		c := asking(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere/")
			w.WriteHeader(row.status)
			_, _ = w.Write([]byte(row.body))
		})
		_, err := c.do(t.Context(), "GET", nodePath("node-2"))
		if err == nil || exitCode(err) != row.code {
			t.Errorf("%d: code %d, %v", row.status, exitCode(err), err)
			continue
		}
		for _, part := range row.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%d lacks %q: %v", row.status, part, err)
			}
		}
	}
}

// A URL with a path that the service does not have is no unknown node.
func TestCluster_OnlyANodeIsUnknown(t *testing.T) {
	t.Parallel()
	c := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"code":"NOT_FOUND","message":"There is nothing at this path.","hint":"Look."}`))
	})
	if _, err := c.do(t.Context(), "GET", "/cluster"); exitCode(err) != exitFailed || !strings.Contains(err.Error(), "nothing at this path") {
		t.Errorf("%d, %v", exitCode(err), err)
	}
}

func TestCluster_NothingListens(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	c, err := newClusterClient("http://"+address, "the-operators-token")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.do(t.Context(), "GET", "/cluster"); exitCode(err) != exitUnreachable || !strings.Contains(err.Error(), "is the node running?") {
		t.Errorf("%d, %v", exitCode(err), err)
	}
}

func TestClusterClient_NeedsAddressAndToken(t *testing.T) {
	t.Parallel()
	if _, err := newClusterClient("127.0.0.1:8080", "the-operators-token"); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("%v", err)
	}
	if _, err := newClusterClient("http://127.0.0.1:8080", ""); exitCode(err) != exitCredential || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("%v", err)
	}
}

// draining answers a drain of node-2 and then, look after look, with what is left
// on it: [leads, replicas]; a negative number is a node that does not answer.
func draining(t *testing.T, moves string, left ...[2]int) (*clusterClient, *int) {
	looks := new(int)
	return asking(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if r.URL.Path != "/cluster/nodes/node-2/drain" {
				w.WriteHeader(http.StatusNotFound)
			}
			_, _ = fmt.Fprintf(w, `{"node":"node-2","moves":%q}`, moves)
			return
		}
		now := left[min(*looks, len(left)-1)]
		*looks++
		if now[0] < 0 {
			w.WriteHeader(599)
			return
		}
		_, _ = fmt.Fprintf(w, `{"nodes":[{"name":"node-1","leads":9,"replicas":9},{"name":"node-2","leads":%d,"replicas":%d}]}`, now[0], now[1])
	}), looks
}

func TestClusterDrain_WaitsUntilTheNodeIsEmpty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := draining(t, httpapi.DrainsReplicas, [2]int{5, 6}, [2]int{5, 6}, [2]int{-1, 0}, [2]int{1, 2}, [2]int{0, 0})
		var out bytes.Buffer
		if err := (clusterDrainCmd{Node: "node-2", Timeout: time.Minute}).run(t.Context(), c, &progress{out: &out}); err != nil {
			t.Fatal(err)
		}
		want := "node-2: 5 leaderships and 6 replicas left\nnode-2: 1 leadership and 2 replicas left\nnode-2: 0 leaderships and 0 replicas left\n" +
			"node-2 is empty: it can be stopped, and taken out with `switchyard cluster remove node-2`.\n"
		if out.String() != want {
			t.Errorf("got\n%s", out.String())
		}
	})
}

func TestClusterDrain_DrawsABarOnATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := draining(t, httpapi.DrainsReplicas, [2]int{4, 6}, [2]int{0, 5}, [2]int{0, 0})
		var out bytes.Buffer
		if err := (clusterDrainCmd{Node: "node-2", Timeout: time.Minute}).run(t.Context(), c, &progress{out: &out, bar: true}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\r\x1b[K")
		if len(lines) != 4 || !strings.HasPrefix(lines[1], "[..............................] ") || !strings.HasPrefix(lines[2], "[###############...............] node-2: 0 leaderships and 5 replicas left") ||
			!strings.HasPrefix(lines[3], "[##############################] ") || !strings.Contains(lines[3], "\nnode-2 is empty") {
			t.Errorf("drew %q", lines)
		}
	})
}

func TestClusterDrain_OfLeadershipsSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := draining(t, httpapi.DrainsLeaderships, [2]int{2, 6}, [2]int{0, 6})
		var out bytes.Buffer
		if err := (clusterDrainCmd{Node: "node-2", Timeout: time.Minute}).run(t.Context(), c, &progress{out: &out}); err != nil {
			t.Fatal(err)
		}
		if said := out.String(); !strings.HasPrefix(said, "Only leaderships move off node-2") || !strings.Contains(said, "leads nothing now. It still holds 6 replicas.") {
			t.Errorf("said %q", said)
		}
	})
}

// A node that does not answer for a moment seems to have nothing left: its own report is missing, and the
// shards that it leads have no leader.
func TestClusterDrain_WaitsForANodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	view := func(state, leader string, leads, replicas int) string {
		return fmt.Sprintf(`{"nodes":[{"name":"node-2","state":%q,"leads":%d,"replicas":%d}],"shards":[{"id":0,"leader":"node-1"},{"id":1,"leader":%q}]}`, state, leads, replicas, leader)
	}
	for moves, views := range map[string][]string{
		httpapi.DrainsLeaderships: {view("draining", "node-2", 1, 2), view("suspect", "", 0, 2), view("draining", "node-1", 0, 2)},
		httpapi.DrainsReplicas:    {view("draining", "node-2", 1, 1), view("suspect", "", 0, 0), view("suspect", "node-1", 0, 0)},
	} {
		t.Run(moves, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				c := asking(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						_, _ = fmt.Fprintf(w, `{"node":"node-2","moves":%q}`, moves)
						return
					}
					_, _ = w.Write([]byte(views[min(looks, len(views)-1)]))
					looks++
				})
				err := clusterDrainCmd{Node: "node-2", Timeout: time.Minute}.run(t.Context(), c, &progress{out: &bytes.Buffer{}})
				if err != nil || looks != len(views) {
					t.Errorf("it was over after %d looks of %d, %v", looks, len(views), err)
				}
			})
		})
	}
}

func TestClusterDrain_StopsWaiting(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		left [2]int
		code int
		stop time.Duration // of Ctrl-C
		says string
	}{
		{"at its time-out", [2]int{1, 1}, exitTimeout, time.Hour, "is not empty after 1m0s: the drain continues"},
		{"at Ctrl-C", [2]int{1, 1}, exitInterrupted, 3 * time.Second, "stopped waiting: the drain continues"},
		{"for a node that stays away", [2]int{-1, 0}, exitUnreachable, time.Hour, "can't reach"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, looks := draining(t, httpapi.DrainsReplicas, row.left)
				ctx, cancel := context.WithTimeout(t.Context(), row.stop)
				defer cancel()
				err := clusterDrainCmd{Node: "node-2", Timeout: time.Minute}.run(ctx, c, &progress{out: &bytes.Buffer{}})
				if exitCode(err) != row.code || !strings.Contains(err.Error(), row.says) || *looks < 2 {
					t.Errorf("after %d looks: %d, %v", *looks, exitCode(err), err)
				}
			})
		})
	}
}

func TestClusterDrain_DoesNotWaitWhenToldSo(t *testing.T) {
	t.Parallel()
	c, looks := draining(t, httpapi.DrainsReplicas, [2]int{1, 1})
	if err := (clusterDrainCmd{Node: "node-2", NoWait: true}).run(t.Context(), c, &progress{out: &bytes.Buffer{}}); err != nil || *looks != 0 {
		t.Errorf("%d looks, %v", *looks, err)
	}
}

// The first views of the cluster may be older than a new node's join.
func TestClusterDrain_NodeNotListed(t *testing.T) {
	t.Parallel()
	const with, without = `{"nodes":[{"name":"node-1"},{"name":"node-2"}]}`, `{"nodes":[{"name":"node-1"}]}`
	const working = `{"nodes":[{"name":"node-1"},{"name":"node-2","leads":1,"replicas":1}]}`
	for _, row := range []struct {
		name  string
		views []string
		code  int
	}{
		{"it has just joined", []string{without, without, with}, 0},
		{"it is removed meanwhile", []string{working, without}, exitNoNode},
		{"it was removed at once", []string{without}, exitNoNode},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				c := asking(t, func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						_, _ = w.Write([]byte(`{"node":"node-2","moves":"replicas"}`))
						return
					}
					_, _ = w.Write([]byte(row.views[min(looks, len(row.views)-1)]))
					looks++
				})
				err := clusterDrainCmd{Node: "node-2", Timeout: time.Minute}.run(t.Context(), c, &progress{out: &bytes.Buffer{}})
				if code := exitCode(err); err == nil && row.code != 0 || err != nil && code != row.code || looks < len(row.views) {
					t.Errorf("after %d looks: %v", looks, err)
				}
			})
		})
	}
}
