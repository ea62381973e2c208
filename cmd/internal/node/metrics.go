package node

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"switchyard/storage"
)

// shardCollector reports what the shard groups and the store say of themselves.
type shardCollector struct {
	n       *Node
	leads   *prometheus.Desc
	term    *prometheus.Desc
	applied *prometheus.Desc
	failed  *prometheus.Desc
	stuck   *prometheus.Desc
	noRoom  *prometheus.Desc
	differ  *prometheus.Desc
	compare *prometheus.Desc
	disk    *prometheus.Desc
	full    *prometheus.Desc
	free    *prometheus.Desc
	reserve *prometheus.Desc
	format  *prometheus.Desc
	slowed  *prometheus.Desc

	budget     *prometheus.Desc
	blockCache *prometheus.Desc
	lookups    *prometheus.Desc
	memTables  *prometheus.Desc
	openFiles  *prometheus.Desc

	records       *prometheus.Desc
	recordLookups *prometheus.Desc
	rows          *prometheus.Desc
	rowLookups    *prometheus.Desc
	tails         *prometheus.Desc
}

func (n *Node) collector() prometheus.Collector {
	shard, instance := []string{"shard"}, []string{"instance"}
	return &shardCollector{
		n:       n,
		leads:   prometheus.NewDesc("switchyard_shard_leader", "1 when this node leads the shard.", shard, nil),
		term:    prometheus.NewDesc("switchyard_shard_term", "The shard's election term.", shard, nil),
		applied: prometheus.NewDesc("switchyard_shard_applied_index", "Last log entry of the shard applied here.", shard, nil),
		failed:  prometheus.NewDesc("switchyard_shard_failed", "1 when this node's replica of the shard can't follow the shard's log.", shard, nil),
		stuck:   prometheus.NewDesc("switchyard_shard_stuck", "1 while entries of the shard wait for this node's disk for longer than 5 seconds.", shard, nil),
		noRoom:  prometheus.NewDesc("switchyard_shard_no_room", "1 while this node, which owns the shard, refuses changes because too few of its voters answer and have room for them.", shard, nil),
		differ:  prometheus.NewDesc("switchyard_shard_differing_replicas", "Replicas of the shard whose rows are not those of the majority, by the last comparison of this node, which owns the shard.", shard, nil),
		compare: prometheus.NewDesc("switchyard_replica_comparisons_total", "Comparisons of the replicas of shards that this node owns, by result: equal, different, or unknown if a replica could not be read.", []string{"result"}, nil),
		disk:    prometheus.NewDesc("switchyard_disk_bytes", "Bytes on disk, by instance.", instance, nil),
		full:    prometheus.NewDesc("switchyard_disk_full", "1 while changes are refused because less than the reserve is free on the disk.", nil, nil),
		free:    prometheus.NewDesc("switchyard_disk_free_bytes", "Bytes free on the disk.", nil, nil),
		reserve: prometheus.NewDesc("switchyard_disk_reserve_bytes", "Bytes that should stay free on the disk.", nil, nil),

		format: prometheus.NewDesc("switchyard_format", "Format in which this node writes. It is the same on all nodes of a cluster.", nil, nil),

		slowed: prometheus.NewDesc("switchyard_writes_slowed_seconds_total", "Time that entries of shards waited because the compactions of their data fell behind.", nil, nil),

		budget:     prometheus.NewDesc("switchyard_memory_budget_bytes", "Bytes of --memory.", nil, nil),
		blockCache: prometheus.NewDesc("switchyard_block_cache_bytes", "Bytes of table blocks kept in memory, of both instances.", nil, nil),
		lookups:    prometheus.NewDesc("switchyard_block_cache_lookups_total", "Look-ups in the block cache, by result: hit or miss.", []string{"result"}, nil),
		memTables:  prometheus.NewDesc("switchyard_memtable_bytes", "Bytes of memtables, by instance.", instance, nil),
		openFiles:  prometheus.NewDesc("switchyard_open_table_bytes", "Bytes kept in memory for open table files, by instance.", instance, nil),

		records:       prometheus.NewDesc("switchyard_record_cache_bytes", "Bytes of copies of records that are read often.", nil, nil),
		recordLookups: prometheus.NewDesc("switchyard_record_cache_lookups_total", "Look-ups in the cache of records, by result: hit or miss.", []string{"result"}, nil),
		rows:          prometheus.NewDesc("switchyard_segment_cache_bytes", "Bytes of rows of search indexes that are read often.", nil, nil),
		rowLookups:    prometheus.NewDesc("switchyard_segment_cache_lookups_total", "Look-ups in the cache of rows of search indexes, by result: hit or miss.", []string{"result"}, nil),
		tails:         prometheus.NewDesc("switchyard_search_tail_bytes", "Bytes kept in memory for search indexes, by kind: titles and words of issues that are in no index yet, columns and pairs of terms of the titles that are, blocks of the lists of their terms.", []string{"kind"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *shardCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.leads, c.term, c.applied, c.failed, c.stuck, c.noRoom, c.differ, c.compare, c.disk, c.full, c.free, c.reserve, c.format, c.slowed,
		c.budget, c.blockCache, c.lookups, c.memTables, c.openFiles, c.records, c.recordLookups, c.rows, c.rowLookups, c.tails,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *shardCollector) Collect(ch chan<- prometheus.Metric) {
	// A node that waits for its cluster has no shards and no engine yet, and may write in another format.
	if c.n.serving.Load() {
		c.collectJoined(ch)
	}
	log, state := c.n.store.DiskUse()
	ch <- prometheus.MustNewConstMetric(c.disk, prometheus.GaugeValue, float64(log), "raft")
	ch <- prometheus.MustNewConstMetric(c.disk, prometheus.GaugeValue, float64(state), "state")
	space := c.n.store.Space()
	full := 0.0
	if space.Full() {
		full = 1
	}
	ch <- prometheus.MustNewConstMetric(c.full, prometheus.GaugeValue, full)
	ch <- prometheus.MustNewConstMetric(c.free, prometheus.GaugeValue, float64(space.Free()))
	ch <- prometheus.MustNewConstMetric(c.reserve, prometheus.GaugeValue, float64(space.Reserve()))
	ch <- prometheus.MustNewConstMetric(c.slowed, prometheus.CounterValue, c.n.store.WritePace().Waited().Seconds())
	c.collectMemory(ch)
}

// collectJoined reports what a node has once it belongs to a cluster.
func (c *shardCollector) collectJoined(ch chan<- prometheus.Metric) {
	for i := 0; i <= c.n.groups.Shards(); i++ {
		s := c.n.groups.ShardStats(storage.Shard(i))
		label := strconv.Itoa(i)
		leads, failed, stuck, noRoom := 0.0, 0.0, 0.0, 0.0
		if s.Epoch != 0 {
			leads = 1
		}
		if s.Failed != nil {
			failed = 1
		}
		if s.Stuck {
			stuck = 1
		}
		if s.NoRoom {
			noRoom = 1
		}
		ch <- prometheus.MustNewConstMetric(c.stuck, prometheus.GaugeValue, stuck, label)
		ch <- prometheus.MustNewConstMetric(c.noRoom, prometheus.GaugeValue, noRoom, label)
		ch <- prometheus.MustNewConstMetric(c.differ, prometheus.GaugeValue, float64(len(c.n.groups.Differing(storage.Shard(i)))), label)
		ch <- prometheus.MustNewConstMetric(c.failed, prometheus.GaugeValue, failed, label)
		ch <- prometheus.MustNewConstMetric(c.leads, prometheus.GaugeValue, leads, label)
		ch <- prometheus.MustNewConstMetric(c.term, prometheus.GaugeValue, float64(s.Term), label)
		ch <- prometheus.MustNewConstMetric(c.applied, prometheus.GaugeValue, float64(s.Applied), label)
	}
	compared := c.n.groups.Comparisons()
	ch <- prometheus.MustNewConstMetric(c.compare, prometheus.CounterValue, float64(compared.Equal), "equal")
	ch <- prometheus.MustNewConstMetric(c.compare, prometheus.CounterValue, float64(compared.Different), "different")
	ch <- prometheus.MustNewConstMetric(c.compare, prometheus.CounterValue, float64(compared.Unknown), "unknown")
	ch <- prometheus.MustNewConstMetric(c.format, prometheus.GaugeValue, float64(c.n.groups.Format()))
	tails := c.n.engine.Tails()
	ch <- prometheus.MustNewConstMetric(c.tails, prometheus.GaugeValue, float64(tails.Titles), "titles")
	ch <- prometheus.MustNewConstMetric(c.tails, prometheus.GaugeValue, float64(tails.Words), "words")
	ch <- prometheus.MustNewConstMetric(c.tails, prometheus.GaugeValue, float64(tails.Columns), "columns")
	ch <- prometheus.MustNewConstMetric(c.tails, prometheus.GaugeValue, float64(tails.Terms), "terms")
}

// collectMemory reports what is held in memory. Go's heap and limit are reported by
// the Go collector.
func (c *shardCollector) collectMemory(ch chan<- prometheus.Metric) {
	use := c.n.store.Memory()
	ch <- prometheus.MustNewConstMetric(c.budget, prometheus.GaugeValue, float64(c.n.cfg.memory()))
	ch <- prometheus.MustNewConstMetric(c.blockCache, prometheus.GaugeValue, float64(use.BlockCache))
	ch <- prometheus.MustNewConstMetric(c.lookups, prometheus.CounterValue, float64(use.Hits), "hit")
	ch <- prometheus.MustNewConstMetric(c.lookups, prometheus.CounterValue, float64(use.Misses), "miss")
	records := c.n.store.Records().Use()
	ch <- prometheus.MustNewConstMetric(c.records, prometheus.GaugeValue, float64(records.Bytes))
	ch <- prometheus.MustNewConstMetric(c.recordLookups, prometheus.CounterValue, float64(records.Hits), "hit")
	ch <- prometheus.MustNewConstMetric(c.recordLookups, prometheus.CounterValue, float64(records.Misses), "miss")
	rows := c.n.store.Segments().Use()
	ch <- prometheus.MustNewConstMetric(c.rows, prometheus.GaugeValue, float64(rows.Bytes))
	ch <- prometheus.MustNewConstMetric(c.rowLookups, prometheus.CounterValue, float64(rows.Hits), "hit")
	ch <- prometheus.MustNewConstMetric(c.rowLookups, prometheus.CounterValue, float64(rows.Misses), "miss")
	for name, instance := range map[string]storage.InstanceMemory{"raft": use.Raft, "state": use.State} {
		ch <- prometheus.MustNewConstMetric(c.memTables, prometheus.GaugeValue, float64(instance.MemTables), name)
		ch <- prometheus.MustNewConstMetric(c.openFiles, prometheus.GaugeValue, float64(instance.OpenFiles), name)
	}
}
