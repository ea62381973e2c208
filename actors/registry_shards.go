package actors

import cmap "github.com/orcaman/concurrent-map"

// protoactor keeps its actors in 1,024 maps, each of which this package divides into 32
// more: 4.5 MB in 32,768 parts that every garbage collection looks at. One part of each
// is enough. The number must be set before an actor system is made, and never again.
func init() { cmap.SHARD_COUNT = 1 }
