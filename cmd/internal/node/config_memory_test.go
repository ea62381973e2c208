package node

import (
	"strings"
	"testing"
)

func TestConfig_Memory(t *testing.T) {
	t.Parallel()
	c := sane()
	if err := c.validate(); err != nil || c.GoMemory() != 480*mebibyte || c.cacheBytes() != 160*mebibyte || c.segmentBytes() != 30*mebibyte || c.recordBytes() != 30*mebibyte || c.tailBytes() != 15*mebibyte || c.deliveryBytes() != 30*mebibyte || c.GCPercent() != 75 {
		t.Errorf("by default %d for Go, %d for caches, %v", c.GoMemory(), c.cacheBytes(), err)
	}
	c.Memory = 16 << 30
	if err := c.validate(); err != nil || c.GoMemory() != 16<<30-32*mebibyte || c.deliveryBytes() != 128*mebibyte || c.GCPercent() != 100 {
		t.Errorf("of 16 GiB %d for Go, %v", c.GoMemory(), err)
	}
	for _, bytes := range []uint64{1, minMemory - 1, maxMemory + 1, 1 << 60} {
		c.Memory = bytes
		if err := c.validate(); err == nil || !strings.HasPrefix(err.Error(), "--memory ") || c.GoMemory() != 0 {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
}

func TestMetrics_Memory(t *testing.T) {
	t.Parallel()
	n := started(t, func(c *Config) { c.Memory = minMemory })
	_, body := ask(t, n, "/metrics")
	for _, line := range []string{
		"switchyard_memory_budget_bytes 1.17440512e+08",
		"switchyard_block_cache_bytes ",
		`switchyard_block_cache_lookups_total{result="hit"} `, `switchyard_block_cache_lookups_total{result="miss"} `,
		"switchyard_record_cache_bytes ",
		`switchyard_record_cache_lookups_total{result="hit"} `, `switchyard_record_cache_lookups_total{result="miss"} `,
		"switchyard_segment_cache_bytes ",
		`switchyard_segment_cache_lookups_total{result="hit"} `, `switchyard_segment_cache_lookups_total{result="miss"} `,
		`switchyard_memtable_bytes{instance="raft"} `, `switchyard_memtable_bytes{instance="state"} `,
		`switchyard_open_table_bytes{instance="raft"} `, `switchyard_open_table_bytes{instance="state"} `,
		`switchyard_search_tail_bytes{kind="titles"} `, `switchyard_search_tail_bytes{kind="words"} `, `switchyard_search_tail_bytes{kind="columns"} `, `switchyard_search_tail_bytes{kind="terms"} `,
		"go_memstats_heap_inuse_bytes ", "go_gc_gomemlimit_bytes ",
	} {
		if !strings.Contains(body, "\n"+line) {
			t.Errorf("no %q", line)
		}
	}
}
