package tracker

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSummarize_PicksWhatTheTextIsAbout(t *testing.T) {
	t.Parallel()
	text := `Menu
Home
The replication log keeps every command of a shard in order. Cookies help us to serve you better today.
A follower applies the replication log in the same order as its leader. Subscribe now to get our monthly letter.
Dr. J. Doe says: "When the replication log is truncated, a follower needs a snapshot of the shard." It was sunny in Oslo on that day, they say.
Sign up
The snapshot of a shard is taken by its leader while commands go on.`
	got := summarize(cleanText(text))
	want := `The replication log keeps every command of a shard in order. A follower applies the replication log in the same order as its leader. Dr. J. Doe says: "When the replication log is truncated, a follower needs a snapshot of the shard."`
	if got != want {
		t.Errorf("summary is\n%s\nwant\n%s", got, want)
	}
	if summarize(cleanText(text)) != got {
		t.Error("another summary the second time")
	}
}

func TestSummarize_Shapes(t *testing.T) {
	t.Parallel()
	one := "There is exactly one sentence in this text."
	for text, want := range map[string]string{
		"":                             "",
		"Home\nMenu\nLogin":            "",
		one:                            one,
		strings.Repeat(one+" ", 50):    one,
		strings.Repeat("word ", 1_000): "",
		"第一句话说了些什么。第二句话说了别的。": "第一句话说了些什么。 第二句话说了别的。",
	} {
		if got := summarize(cleanText(text)); got != want {
			t.Errorf("%.40q gives %q, want %q", text, got, want)
		}
	}
}

// A summary has three to five sentences, whatever the length of the text.
func TestSummarize_IsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 10, 30, 40, 1_000, 100_000} {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Sentence number %d speaks about topic%d and others. ", i, i%17)
		}
		got := summarize(b.String())
		if sentences := strings.Count(got, "."); sentences < minSummary || sentences > maxSummary || utf8.RuneCountInString(got) > maxSummary*(maxSentence+1) {
			t.Errorf("%d sentences in %d", sentences, n)
		}
	}
}

func BenchmarkSummarize(b *testing.B) {
	text := strings.Repeat("Words of this sentence are as different as words can be, more or less alike. And another one.\nx1 ", 50_000)
	for b.Loop() {
		summarize(cleanText(text))
	}
}
