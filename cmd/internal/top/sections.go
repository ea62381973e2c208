package top

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"switchyard/cluster/topology"
	"switchyard/httpapi"
)

var nodeColumns = []column{
	{title: "NODE"}, {title: "STATE"}, {title: "LEADS", numeric: true}, {title: "SHARDS", numeric: true, narrow: 7},
	{title: "REQ/S", numeric: true}, {title: "READ/S", numeric: true, narrow: 8}, {title: "WRITE/S", numeric: true, narrow: 9}, {title: "FWD/S", numeric: true, narrow: 4},
	{title: "CPU", numeric: true}, {title: "MEMORY", numeric: true, narrow: 5}, {title: "LOG", numeric: true, narrow: 1}, {title: "DATA", numeric: true, narrow: 2},
	{title: "FREE", numeric: true, narrow: 6}, {title: "CONNS", numeric: true, narrow: 3}, {title: "NOTE"},
}

// nodes is the table of the nodes.
func (s *screen) nodes(width int) []line {
	t := table{columns: nodeColumns}
	for _, n := range s.now.Topology.Nodes {
		t.rows = append(t.rows, s.nodeRow(&n))
	}
	t.sorted(s.orders[nodesTable])
	return t.lines(s.orders[nodesTable], s.active == nodesTable, width)
}

func (s *screen) nodeRow(n *topology.NodeStatus) []cell {
	state := textCell(string(n.State))
	if n.State == "dead" || n.State == "suspect" {
		state.style = alarm
	}
	row := []cell{textCell(n.Name), state, numberCell(strconv.Itoa(n.Leads), float64(n.Leads)), numberCell(strconv.Itoa(n.Replicas), float64(n.Replicas))}
	load := s.now.load(n.Name)
	r := ratesOf(s.before.load(n.Name), load)
	row = append(row, rateCell(r.answered), rateCell(r.reads), rateCell(r.writes), rateCell(r.forwarded), numberCell(share(r.cpu), r.cpu))
	var notes []string
	if load == nil {
		none := numberCell("-", math.NaN())
		row = append(row, none, none, none, none, none)
		if why := s.now.Silent[n.Name]; why != "" {
			notes = append(notes, why)
		}
	} else {
		of := func(bytes uint64) cell { return numberCell(bytesText(bytes), float64(bytes)) }
		free := of(load.Disk.FreeBytes)
		if load.Disk.Full {
			free.style = alarm
			notes = append(notes, "disk full")
		}
		row = append(row, of(load.MemoryBytes), of(load.Disk.LogBytes), of(load.Disk.StateBytes), free, numberCell(strconv.FormatInt(load.Requests.Connections, 10), float64(load.Requests.Connections)))
	}
	if n.Note != "" {
		notes = append(notes, n.Note)
	}
	return append(row, cell{text: cut(safe(strings.Join(notes, "; ")), noteCells)})
}

// noteCells bounds a text at the end of a line.
const noteCells = 200

// highLag is the number of entries from which on a replica's lag is shown as trouble, as in
// the console.
const highLag = 1000

var shardColumns = []column{{title: "SHARD", numeric: true}, {title: "LEADER"}, {title: "LAG", numeric: true}, {title: "TROUBLE"}}

// shards lists the shards with trouble.
func (s *screen) shards(width int) []line {
	t := table{columns: shardColumns}
	all := s.now.Topology.Shards
	replicas := 0
	for i := range all {
		replicas = max(replicas, len(all[i].Voters))
	}
	for i := range all {
		shard := &all[i]
		trouble := s.trouble(shard, replicas)
		if len(trouble) == 0 {
			continue
		}
		leader := shard.Leader
		if leader == "" {
			leader = "-"
		}
		t.rows = append(t.rows, []cell{
			numberCell(strconv.Itoa(shard.ID), float64(shard.ID)), textCell(leader), numberCell(strconv.FormatUint(shard.Lag, 10), float64(shard.Lag)),
			{text: cut(safe(strings.Join(trouble, "; ")), noteCells), style: alarm},
		})
	}
	if len(t.rows) == 0 {
		return []line{{{"shards with trouble: none", bold}}}
	}
	title := line{{fmt.Sprintf("shards with trouble: %d", len(t.rows)), bold}}
	return append([]line{title}, t.lines(order{column: -1}, false, width)...)
}

// trouble says what is wrong with a shard. replicas is the largest number of voters that a
// shard has.
func (s *screen) trouble(shard *httpapi.ShardStatus, replicas int) []string {
	var trouble []string
	if shard.Leader == "" {
		trouble = append(trouble, "no owner")
	}
	if len(shard.Voters) < replicas {
		trouble = append(trouble, fmt.Sprintf("%d of %d replicas", len(shard.Voters), replicas))
	}
	for _, n := range s.now.Topology.Nodes {
		if n.State == "dead" && slices.Contains(shard.Voters, n.Name) {
			trouble = append(trouble, n.Name+" is dead")
		}
		if load := s.now.load(n.Name); load != nil && slices.Contains(load.StuckShards, shard.ID) {
			trouble = append(trouble, "waits for the disk of "+n.Name)
		}
	}
	if shard.Lag > highLag {
		trouble = append(trouble, fmt.Sprintf("a replica is %d entries behind", shard.Lag))
	}
	for _, failed := range shard.Failed {
		trouble = append(trouble, "failed on "+failed.Node+": "+failed.Reason)
	}
	for _, node := range shard.Differing {
		trouble = append(trouble, "other rows on "+node)
	}
	return trouble
}

var workspaceColumns = []column{
	{title: "WORKSPACE"}, {title: "ID", narrow: 1}, {title: "NODE"}, {title: "REQ/S", numeric: true}, {title: "READ/S", numeric: true}, {title: "WRITE/S", numeric: true}, {title: "SLOWEST", numeric: true},
}

// workspaces is the table of the workspaces with most requests and with the slowest ones.
func (s *screen) workspaces(width int) []line {
	t := table{columns: workspaceColumns}
	for _, w := range s.now.Busiest {
		slug := w.Slug
		if slug == "" {
			slug = "-"
		}
		total := rateCell(w.Reads + w.Writes)
		if w.Uncounted > 0 { // it may be more
			total.text += "+"
		}
		t.rows = append(t.rows, []cell{textCell(slug), textCell(w.ID), textCell(w.Node), total, rateCell(w.Reads), rateCell(w.Writes), numberCell(slowText(w.Slowest), float64(w.Slowest))})
	}
	if len(t.rows) == 0 {
		return []line{{{"busiest and slowest workspaces: none", bold}}}
	}
	t.sorted(s.orders[workspacesTable])
	title := line{{"busiest and slowest workspaces", bold}}
	return append([]line{title}, t.lines(s.orders[workspacesTable], s.active == workspacesTable, width)...)
}
