package systemtest

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is what clients saw of registers: an issue's title is the register, a
// PATCH writes it and a GET reads it. Every value is written once, so that what is
// read tells which write it saw.
type history struct {
	began time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

// registerOp is a write, or a read with its answer as the operation's output.
type registerOp struct {
	Register string
	Write    bool
	Value    string
}

func newHistory() *history { return &history{began: time.Now()} }

// now is the time in the history's own clock.
func (h *history) now() int64 { return int64(time.Since(h.began)) }

// outcomes of an operation.
const (
	done    = iota // answered
	refused        // certainly without effect
	lost           // nobody knows
)

// note adds an operation that began at call and ends now. Refused ones and reads
// without an answer say nothing. A write that may or may not have been applied may
// take effect at any time after its call.
func (h *history) note(client int, op registerOp, call int64, outcome int, read string) {
	if outcome == refused || outcome == lost && !op.Write {
		return
	}
	o := porcupine.Operation{ClientId: client, Input: op, Call: call, Output: read, Return: h.now()}
	if outcome == lost {
		o.Return = math.MaxInt64
	}
	h.mu.Lock()
	h.ops = append(h.ops, o)
	h.mu.Unlock()
}

// registers is the model: each register alone, holding the value written last.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[string][]porcupine.Operation{}
		for _, o := range history {
			name := o.Input.(registerOp).Register
			by[name] = append(by[name], o)
		}
		parts := make([][]porcupine.Operation, 0, len(by))
		for _, part := range by {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		op := input.(registerOp)
		if op.Write {
			return true, op.Value
		}
		return state == output, state
	},
	DescribeOperation: func(input, output any) string {
		op := input.(registerOp)
		if op.Write {
			return fmt.Sprintf("write %s", op.Value)
		}
		return fmt.Sprintf("read %v", output)
	},
	DescribeState: func(state any) string { return fmt.Sprint(state) },
}

// check reports whether there is an order of the operations, each between its call
// and its return, in which every read sees the latest write. On failure it leaves a
// picture of the history in the file.
func (h *history) check(limit time.Duration, picture string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(registers, h.ops, limit)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("the history of %d operations was not checked within %s", len(h.ops), limit)
	}
	if err := porcupine.VisualizePath(registers, info, picture); err != nil {
		return fmt.Errorf("the history is not linearizable, and no picture of it could be written: %w", err)
	}
	return fmt.Errorf("the history of %d operations is not linearizable: see %s", len(h.ops), picture)
}
