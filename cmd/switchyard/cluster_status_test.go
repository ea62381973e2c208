package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"switchyard/httpapi"
)

const topology = `{"clusterId":"c1","nodes":[
	{"name":"node-1","state":"alive","zone":"a","http":"10.0.0.1:8080","peer":"10.0.0.1:7947","gossip":"10.0.0.1:7946","version":"v1","leads":2,"replicas":2},
	{"name":"a-long-name","state":"dead","zone":"","http":"","peer":"","gossip":"","version":"","leads":0,"replicas":1}],
	"shards":[{"id":0,"leader":"node-1","term":3,"voters":["a-long-name","node-1"],"nonVoters":[],"applied":12345,"lag":0},
	{"id":1,"leader":"","term":11,"voters":["node-1"],"nonVoters":["a-long-name"],"applied":7,"lag":900}]}`

func TestClusterStatus_AlignsItsTables(t *testing.T) {
	t.Parallel()
	c := asking(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.String() != "GET http://node/cluster" || r.Header.Get("Authorization") != "Bearer the-operators-token" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte(topology))
	})
	var out bytes.Buffer
	if err := (clusterStatusCmd{}).run(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	want := `cluster c1: 2 nodes, 2 shards

NODE         STATE  ZONE  LEADS  REPLICAS  HTTP           PEER           GOSSIP         VERSION
node-1       alive  a     2      2         10.0.0.1:8080  10.0.0.1:7947  10.0.0.1:7946  v1
a-long-name  dead   -     0      1         -              -              -              -

0 of 2 shards with a leader and 2 voters that are not dead; the slowest replica is 900 entries behind

SHARD  LEADER  TERM  APPLIED  LAG  VOTERS              NON-VOTERS
1      -       11    7        900  node-1              a-long-name
0      node-1  3     12345    0    a-long-name,node-1  -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := (clusterStatusCmd{Shards: true}).run(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	want = `
SHARD  LEADER  TERM  APPLIED  LAG  VOTERS              NON-VOTERS
0      node-1  3     12345    0    a-long-name,node-1  -
1      -       11    7        900  node-1              a-long-name
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("got\n%s\nwant at its end\n%s", out.String(), want)
	}
	out.Reset()
	if err := (clusterStatusCmd{JSON: true}).run(t.Context(), c, &out); err != nil || out.String() != topology+"\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// Shards that lack nothing are counted, and those that lack something are listed.
func TestClusterStatus_ShardsThatLackSomething(t *testing.T) {
	t.Parallel()
	const well = `{"id":1,"leader":"a","voters":["a","b","c"]}`
	for _, row := range []struct {
		shard string
		lists bool
	}{
		{well, false},
		{`{"id":2,"leader":"a","voters":["a","b","c"],"lag":1000}`, false},
		{`{"id":2,"leader":"a","voters":["a","b","c"],"lag":1001}`, true},
		{`{"id":2,"leader":"","voters":["a","b","c"]}`, true},
		{`{"id":2,"leader":"a","voters":["a","b"]}`, true},
		{`{"id":2,"leader":"a","voters":["a","b","d"]}`, true},
		{`{"id":2,"leader":"a","voters":["a","b","c"],"nonVoters":["d"]}`, true},
		{`{"id":2,"leader":"a","voters":["a","b","c"],"failed":[{"node":"c"}]}`, true},
		{`{"id":2,"leader":"a","voters":["a","b","c"],"differing":["c"]}`, true},
	} {
		var read httpapi.Topology
		if err := json.Unmarshal([]byte(`{"nodes":[{"name":"a","state":"alive"},{"name":"d","state":"dead"}],"shards":[`+well+","+row.shard+`]}`), &read); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := writeTopology(&out, &read, false); err != nil {
			t.Fatal(err)
		}
		if lists := strings.Contains(out.String(), "\n2  "); lists != row.lists {
			t.Errorf("%s is listed: %t\n%s", row.shard, lists, out.String())
		}
		if text := map[bool]string{true: "\n1 of 2 shards", false: "\n2 of 2 shards"}[row.lists]; !strings.Contains(out.String(), text) {
			t.Errorf("%s: no %q in\n%s", row.shard, text, out.String())
		}
	}
}

func TestClusterStatus_OneOfEach(t *testing.T) {
	t.Parallel()
	var one httpapi.Topology
	one.Nodes = []httpapi.NodeStatus{{Name: "a", State: "alive"}}
	one.Shards = []httpapi.ShardStatus{{ID: 1, Leader: "a", Voters: []string{"a"}, Lag: 1}}
	var out bytes.Buffer
	if err := writeTopology(&out, &one, false); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{": 1 node, 1 shard\n", "1 of 1 shard with a leader and 1 voter that is not dead; the slowest replica is 1 entry behind\n"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("no %q in\n%s", text, out.String())
		}
	}
}

// When a node is dead all its shards lack a voter: the first are listed, before them those without a leader.
func TestClusterStatus_ListsSomeShards(t *testing.T) {
	t.Parallel()
	var read httpapi.Topology
	read.Nodes = []httpapi.NodeStatus{{Name: "a", State: "alive"}, {Name: "b", State: "dead"}}
	for id := range 129 {
		read.Shards = append(read.Shards, httpapi.ShardStatus{ID: id, Leader: "a", Voters: []string{"a", "b"}})
	}
	read.Shards[77].Leader = ""
	var out bytes.Buffer
	if err := writeTopology(&out, &read, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n0 of 129 shards", "NON-VOTERS\n77     -  ", "\n0      a  ", "\n18     a  ", "and 109 more: --shards lists all\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\n19     a") {
		t.Errorf("too many shards are listed:\n%s", out.String())
	}
}

// Below the tables are the replicas with which something is wrong.
func TestClusterStatus_Replicas(t *testing.T) {
	t.Parallel()
	c := asking(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"clusterId":"c1","nodes":[],"shards":[{"id":1,"voters":[],"nonVoters":[],"failed":[{"node":"node-1","reason":"checksum"}]},
			{"id":2,"voters":[],"nonVoters":[],"differing":["node-2","node-3"]}]}`))
	})
	var out bytes.Buffer
	if err := (clusterStatusCmd{}).run(t.Context(), c, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\nshard 1 on node-1 has failed and is being replaced: checksum\n",
		"\nshard 2 has other rows on node-2, node-3 than on the other nodes: see \"Replicas that differ\" in docs/operations.md\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestClusterStatus_Format(t *testing.T) {
	t.Parallel()
	for want, topology := range map[string]string{
		"":                             `{}`,
		", format 2":                   `{"format":2,"nodes":[{"name":"a","newestFormat":2}]}`,
		", format 1 (not 3: b, c)":     `{"format":1,"nodes":[{"name":"a","newestFormat":3},{"name":"b","newestFormat":1},{"name":"c"}]}`,
		", format 1 (going over to 2)": `{"format":1,"nodes":[{"name":"a","newestFormat":2},{"name":"b","newestFormat":2}]}`,
	} {
		var read httpapi.Topology
		if err := json.Unmarshal([]byte(topology), &read); err != nil {
			t.Fatal(err)
		}
		if got := formatState(&read); got != want {
			t.Errorf("%s: %q, want %q", topology, got, want)
		}
	}
}
