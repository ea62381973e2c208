package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// Issues refer to people, labels and projects. All are skewed as words are: a few of each
// have most of the issues.
const (
	crewSize     = 60
	labelCount   = 40
	projectCount = 12
)

// issueWriter writes issues, each different from all others of the run.
type issueWriter struct {
	*prose
	crew, labels, projects *distribution
	// mark is the prefix of titles.
	mark string
	// priority is that of all issues; empty: each has one of its own.
	priority string
}

func newIssueWriter(stream uint64) *issueWriter {
	return &issueWriter{prose: newProse(stream), crew: zipf(crewSize), labels: zipf(labelCount), projects: zipf(projectCount)}
}

// appendIssue appends the JSON of a request for an issue. The words need no escapes.
func (w *issueWriter) appendIssue(b []byte) []byte {
	b = append(append(b, `{"title":"`...), w.mark...)
	b = append(w.appendWords(b, w.titleWords()), '"')
	if n := w.descriptionWords(); n > 0 {
		b = append(w.appendWords(append(b, `,"description":"`...), n), '"')
	}
	priorities := [...]string{"medium", "medium", "medium", "medium", "high", "high", "low", "low", "low", "urgent"}
	priority := cmp.Or(w.priority, priorities[w.random.IntN(len(priorities))])
	b = append(append(append(b, `,"priority":"`...), priority...), '"')
	if w.random.IntN(5) > 0 {
		b = append(strconv.AppendInt(append(b, `,"assigneeId":"crew-`...), int64(w.crew.draw(w.random)), 10), '"')
	}
	if w.random.IntN(3) > 0 {
		b = append(strconv.AppendInt(append(b, `,"projectId":"yard-`...), int64(w.projects.draw(w.random)), 10), '"')
	}
	b = append(b, `,"labelIds":[`...)
	var has [3]int
	n := w.random.IntN(len(has) + 1)
	for i := range n {
		for has[i] = w.labels.draw(w.random); slices.Contains(has[:i], has[i]); {
			has[i] = w.labels.draw(w.random)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendInt(append(b, `"label-`...), int64(has[i]), 10), '"')
	}
	return append(b, `]}`...)
}

// typicalFrom and typicalTo bound the JSON of a typical issue, in bytes.
const typicalFrom, typicalTo = 700, 1000

// typical returns the JSON of the next issue of about the usual size.
func (w *issueWriter) typical() string {
	for {
		if b := w.appendIssue(nil); len(b) >= typicalFrom && len(b) <= typicalTo {
			return string(b)
		}
	}
}

// IssueBodies returns a source of the bodies of requests that create issues, for measurements outside of
// this package. The same stream has the same issues. A body is valid until the next call.
func IssueBodies(stream uint64) func() []byte {
	issues := newIssueWriter(stream)
	var body []byte
	return func() []byte {
		body = issues.appendIssue(body[:0])
		return body
	}
}

// creates gives requests that create issues. Each goes to one of the workspaces, the
// first of which get the most, by Zipf's law.
func creates(w *world, in []workspace, connection int) func() []byte {
	return createsMarked(w, in, connection, "")
}

// createsMarked is creates with titles that begin with a text.
func createsMarked(w *world, in []workspace, connection int, mark string) func() []byte {
	issues := newIssueWriter(w.stream(connection))
	issues.mark = mark
	tenants := zipf(len(in))
	var body, r []byte
	return func() []byte {
		to := in[0]
		if len(in) > 1 {
			to = in[tenants.draw(issues.random)]
		}
		body = issues.appendIssue(body[:0])
		r = appendRequest(r[:0], "POST", w.host, "/workspaces/"+to.id+"/issues", to.token, body)
		return r
	}
}

// stream gives the number of the next stream of texts of a connection. A connection's
// loads come one after another, so a run writes the same texts as the one before.
func (w *world) stream(connection int) uint64 {
	w.streams.Lock()
	defer w.streams.Unlock()
	if w.streams.of == nil {
		w.streams.of = map[int]uint64{}
	}
	w.streams.of[connection]++
	return w.streams.of[connection]<<16 | uint64(connection)
}

// TextStatistics describe a sample of the generated issues.
type TextStatistics struct {
	Vocabulary int `json:"vocabulary"`
	// Title and Description are words on average, Longest those of the longest
	// description, Distinct the different words of an issue on average, and Used those
	// of the sample.
	Title       float64 `json:"title"`
	Description float64 `json:"description"`
	Longest     int     `json:"longest"`
	Distinct    float64 `json:"distinct"`
	Used        int     `json:"used"`
	// Bytes is the size of a request's body on average, and Issues that of the sample.
	Bytes  float64 `json:"bytes"`
	Issues int     `json:"issues"`
	// LargestTenant is the share of all creates that the largest workspace gets; 1 where each client has a
	// workspace of its own.
	LargestTenant float64 `json:"largestTenant"`
}

// String returns the statistics as a line of the report.
func (s TextStatistics) String() string {
	text := fmt.Sprintf("text: titles of %.1f words, descriptions of %.1f (the longest %d), %.1f different words an issue, %d in %d issues, of a vocabulary of %d words and %d numbers; %.0f bytes a request",
		s.Title, s.Description, s.Longest, s.Distinct, s.Used, s.Issues, s.Vocabulary, differentNumbers, s.Bytes)
	if s.LargestTenant < 1 {
		text += fmt.Sprintf("; the largest workspace has %.0f %% of the issues", 100*s.LargestTenant)
	}
	return text
}
