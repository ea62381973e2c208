package storage

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// ordered is a segment whose pairs are ordered, and the memory for that.
type ordered struct {
	t       *testing.T
	tx      *Tx
	docs    [][]uint64
	segment Segment
	blocks  *SegmentBlocks
	left    atomic.Int64
	orders  []*PairsOrder
}

func newOrdered(t *testing.T, memory int64) *ordered {
	o := &ordered{t: t, tx: segmentTx(t), docs: drawDocs(rand.New(rand.NewPCG(5, 5)), 2000)}
	o.segment = slicedDocs(t, o.tx, 1, 1<<20, o.docs)
	o.left.Store(memory)
	reserve := func(bytes int64) bool {
		if o.left.Add(-bytes) < 0 && bytes > 0 {
			o.left.Add(bytes)
			return false
		}
		return true
	}
	o.blocks = NewSegmentBlocks(1, reserve, reserve)
	return o
}

// pairs asks for the pairs; begin says whether they can be begun.
func (o *ordered) pairs(begin bool) (*TermPairs, bool) {
	r := slicedSegments.ReaderWith(o.tx, o.blocks)
	defer func() { must(o.t, r.Close()) }()
	return r.Pairs(&o.segment, func(order *PairsOrder) bool {
		if begin {
			o.orders = append(o.orders, order)
		}
		return begin
	})
}

// list reads the list of a term, which is kept.
func (o *ordered) list() {
	r := slicedSegments.ReaderWith(o.tx, o.blocks)
	defer func() { must(o.t, r.Close()) }()
	ok(r.List(1, 1, binary.BigEndian.AppendUint64(nil, hashed(3))))(o.t)
}

func (o *ordered) forget() { o.blocks.Keep(func(uint32) bool { return false }) }

func TestPairsOrder_GivesMemoryBack(t *testing.T) {
	t.Parallel()
	const memory = 1 << 20
	for name, end := range map[string]func(t *testing.T, o *ordered){
		"refused":  func(_ *testing.T, o *ordered) { o.pairs(false) },
		"given up": func(_ *testing.T, o *ordered) { o.pairs(true); o.orders[0].GiveUp(); o.orders[0].GiveUp() },
		"made, then dropped": func(t *testing.T, o *ordered) {
			o.list()
			o.pairs(true)
			must(t, o.orders[0].Make(&slicedSegments, o.tx, func() error { return nil }))
			if p, pending := o.pairs(true); p == nil || pending || len(o.orders) != 1 {
				t.Errorf("pairs %v, pending %v, %d orders", p != nil, pending, len(o.orders))
			} else if used := memory - o.left.Load(); used != p.bytes() {
				t.Errorf("%d bytes are used for pairs of %d and no lists", used, p.bytes())
			}
			o.forget()
		},
		"dropped while they are made": func(t *testing.T, o *ordered) {
			o.pairs(true)
			err := o.orders[0].Make(&slicedSegments, o.tx, func() error { o.forget(); return nil })
			if !errors.Is(err, errPairsDropped) {
				t.Errorf("dropped pairs: %v", err)
			}
		},
		"stopped": func(t *testing.T, o *ordered) {
			o.pairs(true)
			stopped := errors.New("stopped")
			if err := o.orders[0].Make(&slicedSegments, o.tx, func() error { return stopped }); !errors.Is(err, stopped) {
				t.Errorf("stopped: %v", err)
			}
			if p, pending := o.pairs(true); p != nil || pending || len(o.orders) != 1 {
				t.Error("what failed is not left alone")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrdered(t, memory)
			end(t, o)
			if left := o.left.Load(); left != memory {
				t.Errorf("%d of %d bytes are not given back", memory-left, memory)
			}
		})
	}
}

// Where lists have the memory they are given up for pairs, once; where there is none, or it gets used up, no pairs are made.
func TestPairsOrder_NeedsMemory(t *testing.T) {
	t.Parallel()
	o := newOrdered(t, pairsPeak(2000))
	o.list()
	if _, pending := o.pairs(true); !pending {
		t.Error("the lists were not given up")
	}
	o.left.Store(0)
	if err := o.orders[0].Make(&slicedSegments, o.tx, func() error { return nil }); !errors.Is(err, errPairsRoom) {
		t.Errorf("making them without memory for more: %v", err)
	}
	small := newOrdered(t, pairsPeak(2000)-1)
	small.list()
	small.pairs(true)
	small.list()
	kept := small.left.Load()
	if p, pending := small.pairs(true); p != nil || pending || len(small.orders) != 0 || small.left.Load() != kept {
		t.Error("without memory for pairs the lists are given up again and again")
	}
}
