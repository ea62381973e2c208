package actors

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// Operations of the tests. The count of a workspace is a plain row, so one number shows
// what a command read and whether its write took effect.

const testTable storage.TableID = 250

type countIn struct {
	// Fail and Panic act after the write.
	Fail, Panic bool
	Large       int           // number of further bytes to write
	Answer      int           // number of further bytes to answer
	Entered     chan struct{} // closed when it runs
	Leave       chan struct{} // waited for before it ends
}

var errRefused = errors.New("refused by the test")

// countUp adds one and answers the new count.
var countUp = tracker.NewCommand[countIn, int]("CountUp", "", tracker.Needs{Level: tracker.Write}, func(tx *tracker.Tx, in *countIn) (tracker.Reply, error) {
	n, err := tx.Number(testTable, []byte("count"))
	if err != nil {
		return tracker.Reply{}, err
	}
	n++
	if err := tx.Writer().SetNumber(testTable, []byte("count"), n); err != nil {
		return tracker.Reply{}, err
	}
	if in.Large > 0 {
		if err := tx.Writer().SetValue(testTable, []byte("large"), make([]byte, in.Large)); err != nil {
			return tracker.Reply{}, err
		}
	}
	if in.Entered != nil {
		close(in.Entered)
	}
	if in.Leave != nil {
		<-in.Leave
	}
	switch {
	case in.Fail:
		return tracker.Reply{}, errRefused
	case in.Panic:
		panic("the command broke")
	}
	return tracker.Reply{Body: append(strconv.AppendUint(nil, n, 10), make([]byte, in.Answer)...)}, nil
}, tracker.RunsWithoutWorkspace)

// readCount answers the count.
var readCount = tracker.NewQuery[tracker.None, int]("ReadCount", "", tracker.Needs{Level: tracker.Read}, func(v *tracker.View, _ *tracker.None) (tracker.Reply, error) {
	n, err := v.Number(testTable, []byte("count"))
	if err != nil {
		return tracker.Reply{}, err
	}
	return tracker.Reply{Body: strconv.AppendUint(v.Buf[:0], n, 10)}, nil
})

// readMoment is like readCount, from a snapshot.
var readMoment = tracker.NewQuery[tracker.None, int]("ReadMoment", "", tracker.Needs{Level: tracker.Read}, func(v *tracker.View, _ *tracker.None) (tracker.Reply, error) {
	n, err := v.Number(testTable, []byte("count"))
	return tracker.Reply{Body: strconv.AppendUint(nil, n, 10)}, err
}, tracker.FromSnapshot)

// brokenQuery panics.
var brokenQuery = tracker.NewQuery[tracker.None, int]("BrokenQuery", "", tracker.Needs{Level: tracker.Read}, func(*tracker.View, *tracker.None) (tracker.Reply, error) {
	panic("the query broke")
})

// refuse writes nothing and fails.
var refuse = tracker.NewCommand[tracker.None, int]("Refuse", "", tracker.Needs{Level: tracker.Write}, func(*tracker.Tx, *tracker.None) (tracker.Reply, error) {
	return tracker.Reply{}, tracker.Conflict("It is taken.", "Take another.")
}, tracker.RunsWithoutWorkspace)

type stepsIn struct{ Steps int }

// inSteps adds one per run and asks to run again until the count is Steps.
var inSteps = tracker.NewCommand[stepsIn, int]("InSteps", "", tracker.Needs{Level: tracker.Write}, func(tx *tracker.Tx, in *stepsIn) (tracker.Reply, error) {
	n, err := tx.Number(testTable, []byte("count"))
	if err != nil {
		return tracker.Reply{}, err
	}
	if err := tx.Writer().SetNumber(testTable, []byte("count"), n+1); err != nil {
		return tracker.Reply{}, err
	}
	return tracker.Reply{Body: strconv.AppendUint(nil, n+1, 10), More: int(n+1) < in.Steps}, nil
}, tracker.RunsWithoutWorkspace)

// stuck asks to run again without having written anything.
var stuck = tracker.NewCommand[tracker.None, int]("Stuck", "", tracker.Needs{Level: tracker.Write}, func(*tracker.Tx, *tracker.None) (tracker.Reply, error) {
	return tracker.Reply{More: true}, nil
}, tracker.RunsWithoutWorkspace)

type alarmIn struct {
	Kind string
	At   time.Time
}

// setAlarm sets a timer.
var setAlarm = tracker.NewCommand[alarmIn, tracker.None]("SetAlarm", "", tracker.Needs{}, func(tx *tracker.Tx, in *alarmIn) (tracker.Reply, error) {
	return tracker.Reply{}, tx.SetTimer(in.Kind, "bell", in.At)
}, tracker.RunsWithoutWorkspace)

// ring returns a timer's operation that records when it ran and clears the timer.
func ring(fail func() error) *tracker.Op {
	return tracker.NewCommand[tracker.TimerIn, tracker.None]("Ring", "", tracker.Needs{}, func(tx *tracker.Tx, in *tracker.TimerIn) (tracker.Reply, error) {
		if fail != nil {
			if err := fail(); err != nil {
				return tracker.Reply{}, err
			}
		}
		earlier, err := tx.Value(testTable, []byte("rung"), nil)
		if err != nil {
			return tracker.Reply{}, err
		}
		earlier = fmt.Appendf(earlier, "%s ", tx.Now().Format("15:04:05.000"))
		if err := tx.Writer().SetValue(testTable, []byte("rung"), earlier); err != nil {
			return tracker.Reply{}, err
		}
		return tracker.Reply{}, tx.ClearTimer(in.Kind, in.Subject)
	}, tracker.RunsWithoutWorkspace)
}

// readRung returns when ring ran.
var readRung = tracker.NewQuery[tracker.None, tracker.None]("ReadRung", "", tracker.Needs{}, func(v *tracker.View, _ *tracker.None) (tracker.Reply, error) {
	b, err := v.Value(testTable, []byte("rung"), nil)
	return tracker.Reply{Body: []byte(strings.TrimSpace(string(b)))}, err
})

type pairIn struct {
	First, Second storage.ID
	FailSecond    bool
}

// countBoth is a workflow over two workspaces.
var countBoth = tracker.NewWorkflow[pairIn, int]("CountBoth", "", tracker.Needs{Level: tracker.Identified}, func(f tracker.Flow, in *pairIn) (tracker.Reply, error) {
	if _, err := f.Command(f.Request().Permit(), in.First, countUp, &countIn{}); err != nil {
		return tracker.Reply{}, err
	}
	return f.CommandAs(f.Request().Permit(), f.Request().Caller, in.Second, countUp, &countIn{Fail: in.FailSecond})
})
