package tracker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/storage"
)

// trackerText makes texts of words of a vocabulary in which, as in a language, few are
// frequent and many are rare.
type trackerText struct {
	random *rand.Rand
	zipf   *rand.Zipf
	words  []string
}

func newTrackerText() *trackerText {
	random := rand.New(rand.NewPCG(1, 2))
	t := &trackerText{random: random, zipf: rand.NewZipf(random, 1.07, 3, 24_999)}
	for i := range 25_000 {
		w := ""
		for n := i + 1; n > 0 || len(w) < 3; n /= 60 {
			w += string("bcdfghklmnprst"[n%14]) + string("aeiou"[n/14%5])
		}
		t.words = append(t.words, w)
	}
	return t
}

func (t *trackerText) phrase(words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(t.words[t.zipf.Uint64()])
		b.WriteByte(' ')
	}
	return b.String()
}

func (t *trackerText) title() string { return t.phrase(4 + t.random.IntN(8)) }

func (t *trackerText) description() string { return t.phrase(20 + t.random.IntN(130)) }

// searchableIssues makes issues with such texts, and indexes them; create makes one
// more, and indexes it with others.
func searchableIssues(b *testing.B, held int) (w *issueFixture, text *trackerText, create func() Reply) {
	b.Helper()
	w = newIssueBench(b)
	w.tails = NewTails(16 << 20)
	w.buffer.Remember(w.tails)
	text = newTrackerText()
	req := w.request(&w.ann)
	n := 0
	create = func() Reply {
		n++
		in := &CreateIssueIn{Title: text.title(), IssueFields: IssueFields{Description: Some(text.description())}}
		reply, err := w.buffer.Run(CreateIssue, req, in, w.now.Add(time.Duration(n)*time.Millisecond))
		if err != nil {
			b.Fatal(err)
		}
		switch {
		case n%1024 == 0:
			w.commit()
			w.indexAll()
		case n%32 == 0:
			w.commit()
		}
		return reply
	}
	for range held {
		create()
	}
	w.commit()
	w.indexAll()
	if err := w.db.Flush(); err != nil {
		b.Fatal(err)
	}
	return w, text, create
}

// searched is how many issues searches are measured in.
const searched = 100_000

// processorTime reports the processor time of an operation, with what it causes beside
// the measured goroutine: on a busy machine it says more than the time by the clock.
func processorTime(b *testing.B) (report func()) {
	b.Helper()
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			b.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkCreateIssue_Indexed creates issues with what they cost the search index,
// merges included, in workspaces that hold some already.
func BenchmarkCreateIssue_Indexed(b *testing.B) {
	for _, held := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(held), func(b *testing.B) {
			w, _, create := searchableIssues(b, held)
			before := w.db.Metrics()
			b.ReportAllocs()
			report := processorTime(b)
			for b.Loop() {
				create()
			}
			w.commit()
			report()
			after := w.db.Metrics()
			b.ReportMetric(float64(after.WAL.BytesIn-before.WAL.BytesIn)/float64(b.N), "written-B/op")
		})
	}
}

// BenchmarkSearch asks a large workspace.
func BenchmarkSearch(b *testing.B) {
	w, text, create := searchableIssues(b, searched)
	var like []any
	for range 64 {
		like = append(like, &SimilarIssuesIn{ID: string(decode[Issue](b, create().Body).ID)})
	}
	w.commit()
	w.indexAll()
	b.Logf("%d segments", len(w.manifest().Segments))
	query := func(name string, who *Caller, op *Op, in ...any) {
		b.Run(name, func(b *testing.B) {
			report := processorTime(b)
			w.benchQuery(b, who, op, in...)
			report()
		})
	}
	search := func(ranks ...int) *ListIssuesIn {
		var words []string
		for _, rank := range ranks {
			words = append(words, text.words[rank])
		}
		return &ListIssuesIn{Limit: 50, IssueFilter: IssueFilter{Search: Some(strings.Join(words, " "))}}
	}
	query("one word", &w.ann, ListIssues, search(400))
	query("one rare word", &w.ann, ListIssues, search(9000))
	query("two words", &w.ann, ListIssues, search(300, 700))
	query("two frequent words", &w.ann, ListIssues, search(10, 20))
	query("similar", &w.ann, SimilarIssues, like...)
	query("similar, as a guest", &w.gus, SimilarIssues, like...)
}

// BenchmarkSegmentBuild makes segments of so many issues; the figures are for one issue.
func BenchmarkSegmentBuild(b *testing.B) {
	for _, size := range []int{32, 256, 1024} {
		b.Run(fmt.Sprintf("of %d", size), func(b *testing.B) {
			w := newIssueBench(b)
			text := newTrackerText()
			for i := range size {
				in := &CreateIssueIn{Title: text.title(), IssueFields: IssueFields{Description: Some(text.description())}}
				if _, err := w.buffer.Run(CreateIssue, w.request(&w.ann), in, w.now.Add(time.Duration(i)*time.Millisecond)); err != nil {
					b.Fatal(err)
				}
			}
			w.commit()
			b.ReportAllocs()
			b.ResetTimer()
			report := processorTime(b)
			bytes, rows := 0, 0
			for range b.N/size + 1 {
				var s segmentBuild
				if _, err := w.ask(&System, BuildSegment, &s); err != nil {
					b.Fatal(err)
				}
				bytes, rows = s.bytes, len(s.rows)
			}
			report()
			b.ReportMetric(float64(bytes)/float64(size), "bytes/issue")
			b.ReportMetric(float64(rows)/float64(size), "rows/issue")
		})
	}
}

// timedFlow measures the commands of a workflow: for as long as one takes, the
// workspace's other commands wait.
type timedFlow struct {
	*fixtureFlow
	took map[*Op]time.Duration // the longest of each
}

func (f *timedFlow) Command(permit Permit, workspace storage.ID, op *Op, in any) (Reply, error) {
	f.w.now = f.w.now.Add(time.Millisecond)
	begun := time.Now()
	reply, err := f.w.buffer.Run(op, &f.request, in, f.w.now)
	f.took[op] = max(f.took[op], time.Since(begun))
	f.w.commit()
	return reply, err
}

// BenchmarkIndexCommands tells how long the longest command of each kind takes that the
// index asks of a workspace's goroutine, and how long it takes to read the titles of the
// longest tail when the workspace becomes active: of this the shortest time counts, since
// other work on the machine can't make it shorter.
func BenchmarkIndexCommands(b *testing.B) {
	var w *issueFixture
	took := map[*Op]time.Duration{}
	load := time.Hour
	for b.Loop() {
		w = newIssueBench(b)
		text := newTrackerText()
		for range 4 {
			for range indexMany {
				in := &CreateIssueIn{Title: text.title(), IssueFields: IssueFields{Description: Some(text.description())}}
				w.now = w.now.Add(time.Millisecond)
				if _, err := w.buffer.Run(CreateIssue, w.request(&w.ann), in, w.now); err != nil {
					b.Fatal(err)
				}
			}
			w.commit()
			w.buffer.Discard()
			w.run(&System, NewCommand[None, None]("", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				begun := time.Now()
				err := tx.recent().load(tx)
				load = min(load, time.Since(begun))
				return Reply{}, err
			}), &None{})
			for _, op := range []*Op{indexSearchOp, mergeSegmentsOp} {
				f := &timedFlow{&fixtureFlow{w: w, request: *w.request(&System)}, took}
				if _, err := op.RunFlow(f, &TimerIn{}); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	for op, longest := range took {
		b.ReportMetric(float64(longest.Microseconds()), op.Name+"-us")
	}
	b.ReportMetric(float64(load.Microseconds()), "load-us")
}

// BenchmarkIndexLongTexts counts the segments that are made and merged in 20 s of a load of long texts, with and
// without the rule that much text does not wait.
func BenchmarkIndexLongTexts(b *testing.B) {
	for _, load := range []struct{ size, aSecond int }{{16 << 10, 32}, {198 << 10, 1}, {198 << 10, 4}, {198 << 10, 24}} {
		for _, most := range [...]int{indexText, math.MaxInt} {
			b.Run(fmt.Sprintf("%d KiB, %d a second, at once %t", load.size>>10, load.aSecond, most == indexText), func(b *testing.B) {
				made, merged := 0, 0
				text := newTrackerText().phrase(load.size / 4)[:load.size]
				for b.Loop() {
					w := newIssueBench(b)
					w.buffer.indexFew, w.buffer.indexText = indexFew, most
					count := func(op *Op) error {
						switch op {
						case completeSegmentOp:
							made++
						case completeMergeOp:
							merged++
						}
						return nil
					}
					for i := range 20 * load.aSecond {
						w.create(CreateIssueIn{Title: fmt.Sprintf("Issue %d", i), IssueFields: IssueFields{Description: Some(text)}})
						w.now = w.now.Add(time.Second / time.Duration(load.aSecond))
						for _, timer := range [...]string{timerIndexSearch, timerMergeSegments} {
							if due := w.dueAt(timer); due.IsZero() || due.After(w.now) {
								continue
							}
							if err := w.flow(TimerOps[timer], count); err != nil {
								b.Fatal(err)
							}
						}
					}
				}
				b.ReportMetric(float64(made)/float64(b.N), "segments")
				b.ReportMetric(float64(merged)/float64(b.N), "merges")
			})
		}
	}
}
