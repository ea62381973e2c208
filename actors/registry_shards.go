package actors

import cmap "github.com/orcaman/concurrent-map"

// protoactor keeps its actors in 1,024 maps, each of which the map library divides into
// 32 shards: 4.5 MB in 32,768 objects that every garbage collection scans. One shard of
// each is enough. The number must be set before an actor system is made, and never
// again.
func init() { cmap.SHARD_COUNT = 1 }
