package tracker

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// summarized is the number of a text's bytes that a summary considers: pages begin
	// with their subject, and a summary must not take long.
	summarized = 256 << 10
	// A sentence of a summary has this many characters: a shorter one is a heading or a
	// button, a longer one is text without sentences.
	minSentence = 25
	maxSentence = 400
	// A summary has this many sentences, if the text has as many.
	minSummary = 3
	maxSummary = 5
)

// sentence is a sentence of a text; its score measures how frequent its words are in
// the text.
type sentence struct {
	at    int
	text  string
	words []string
	score int
}

// summarize returns the sentences whose significant words are the most frequent ones in
// a clean text, in their order; it returns "" if the text has no sentences. The result
// is deterministic.
func summarize(text string) string {
	all := sentences(cutBytes(text, summarized))
	frequency := map[string]int{}
	for i := range all {
		for _, word := range all[i].words {
			frequency[word]++
		}
	}
	for i := range all {
		s := &all[i]
		sum := 0
		for _, word := range s.words {
			sum += frequency[word]
		}
		// The score is per word, so that long sentences don't win; the constant favors
		// sentences with more words.
		s.score = 1000 * sum / (len(s.words) + 4)
	}
	slices.SortFunc(all, func(a, b sentence) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.at, b.at))
	})
	best := all[:min(len(all), max(minSummary, min(maxSummary, len(all)/8)))]
	slices.SortFunc(best, func(a, b sentence) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for i := range best {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(best[i].text)
	}
	return b.String()
}

// sentences splits a clean text, each of whose lines is a block of a page. A repeated
// sentence counts once: pages repeat their menus.
func sentences(text string) (all []sentence) {
	said := map[string]bool{}
	for line := range strings.SplitSeq(text, "\n") {
		for line != "" {
			end := sentenceEnd(line)
			s := strings.TrimSpace(line[:end])
			line = line[end:]
			n := utf8.RuneCountInString(s)
			if n < minSentence && !strings.ContainsAny(s, "。！？") || n > maxSentence || said[s] {
				continue
			}
			said[s] = true
			all = append(all, sentence{at: len(all), text: s, words: significant(s)})
		}
	}
	return all
}

// sentenceEnd returns the position behind the first sentence of a line: behind a full
// stop and before a space, unless a single letter or a title comes before it, as in
// "Dr. J. Doe".
func sentenceEnd(line string) int {
	word := 0 // start of the letters before the present character
	for at, r := range line {
		end := at + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
			return end
		case '.', '!', '?', '…':
			for end < len(line) && strings.IndexByte(`"')]`, line[end]) >= 0 {
				end++
			}
			if end == len(line) || line[end] == ' ' && (r != '.' || !shortened(line[word:at])) {
				return end
			}
		}
		if !wordly(r) {
			word = at + utf8.RuneLen(r)
		}
	}
	return len(line)
}

// shortened reports whether a full stop behind a word belongs to the word.
func shortened(word string) bool {
	switch word {
	case "Dr", "Mr", "Mrs", "Ms", "Prof", "St", "vs":
		return true
	}
	return utf8.RuneCountInString(word) == 1
}

// significant returns the distinct words of a sentence that are not fillers.
func significant(s string) []string {
	var words []string
	for word := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return !wordly(r) && !unicode.IsMark(r) }) {
		if utf8.RuneCountInString(word) >= 4 && !fillers[word] && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// fillers are frequent words of four letters and more without a meaning of their own.
var fillers = func() map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(`about above after again against also another around because been before being below between
		both cannot could does doing down during each even ever every from further have having here into itself just like made make many
		might more most much must need only other otherwise over same shall should since some such than that their them then there these
		they this those through under until upon very want well were what when where which while whom whose will with within without
		would your yours`) {
		set[word] = true
	}
	return set
}()

// cutBytes cuts a text to at most n bytes, between two characters.
func cutBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
