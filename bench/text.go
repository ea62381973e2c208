package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
)

// The words of the issues that the scenarios write. A search index costs what its
// text makes it cost, so all scenarios use this one generator, and its statistics are
// printed with the figures.

const (
	// vocabularySize is the number of different words.
	vocabularySize = 25_000
	// differentNumbers is the number of different numbers among the words.
	differentNumbers = 10_000
	// textSeed makes every run write the same issues.
	textSeed = 20_260_101
	// zipfExponent and zipfShift say how frequent the word of a rank is:
	// 1/(rank+shift)^exponent, as in English (Zipf, Mandelbrot).
	zipfExponent, zipfShift = 1.05, 2.7
)

// functionWords are the most frequent words of English, in that order.
const functionWords = "the of and to a in is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could these two may first then do any like my now over such our man me even most made after also well did many before must years back through much where your way down should because long each just those people too mr how little state good make world still see own work men day get here between both life being under never same another know while last might us great year"

// distribution draws from weighted choices in constant time (Walker's alias method).
type distribution struct {
	stay  []float64
	other []int32
}

func newDistribution(weights []float64) *distribution {
	n := len(weights)
	total := 0.0
	for _, w := range weights {
		total += w
	}
	d := &distribution{stay: make([]float64, n), other: make([]int32, n)}
	scaled := make([]float64, n)
	var small, large []int32
	for i, w := range weights {
		scaled[i] = w * float64(n) / total
		if scaled[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		d.stay[s], d.other[s] = scaled[s], l
		if scaled[l] -= 1 - scaled[s]; scaled[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, rest := range [][]int32{small, large} {
		for _, i := range rest {
			d.stay[i], d.other[i] = 1, i
		}
	}
	return d
}

func (d *distribution) draw(r *rand.Rand) int {
	i := r.IntN(len(d.stay))
	if r.Float64() < d.stay[i] {
		return i
	}
	return int(d.other[i])
}

// zipf is the distribution of n choices by Zipf's law.
func zipf(n int) *distribution {
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = math.Pow(float64(i)+zipfShift, -zipfExponent)
	}
	return newDistribution(weights)
}

// vocabulary is the words by rank, the most frequent first.
var vocabulary = sync.OnceValue(func() *wordList {
	v := &wordList{frequency: zipf(vocabularySize)}
	known := map[string]bool{}
	for _, w := range strings.Fields(functionWords) {
		known[w] = true
		v.words = append(v.words, w)
	}
	r := rand.New(rand.NewPCG(textSeed, 0))
	onsets := strings.Fields("b c d f g h j k l m n p r s t v w st tr pr cl br gr pl sh ch th")
	vowels := strings.Fields("a e i o u a e i o ea ou io ai")
	codas := strings.Fields("n r s t l m d ck nt rd st ng ct x")
	ends := []string{"", "", "", "", "", "s", "ed", "ing", "er", "tion", "ly"}
	for len(v.words) < vocabularySize {
		var b strings.Builder
		// Rare words are longer.
		for range 1 + r.IntN(2) + r.IntN(2+len(v.words)/4000) {
			b.WriteString(onsets[r.IntN(len(onsets))])
			b.WriteString(vowels[r.IntN(len(vowels))])
			if r.IntN(3) == 0 {
				b.WriteString(codas[r.IntN(len(codas))])
			}
		}
		b.WriteString(ends[r.IntN(len(ends))])
		if w := b.String(); !known[w] && len(w) > 2 && len(w) < 24 {
			known[w] = true
			v.words = append(v.words, w)
		}
	}
	return v
})

type wordList struct {
	words     []string
	frequency *distribution
}

// prose writes texts of one connection.
type prose struct {
	random *rand.Rand
	words  *wordList
}

// newProse makes the stream of texts with a number of its own.
func newProse(stream uint64) *prose {
	return &prose{random: rand.New(rand.NewPCG(textSeed, stream+1)), words: vocabulary()}
}

// appendWords appends n words in sentences. Every fiftieth or so is a number, as
// versions and codes are.
func (p *prose) appendWords(b []byte, n int) []byte {
	sentence := true
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		if p.random.IntN(50) == 0 {
			b = fmt.Appendf(b, "%d", p.random.IntN(differentNumbers))
			sentence = false
			continue
		}
		w := p.words.words[p.words.frequency.draw(p.random)]
		if sentence {
			b = append(append(b, w[0]-'a'+'A'), w[1:]...)
		} else {
			b = append(b, w...)
		}
		if sentence = p.random.IntN(12) == 0; sentence {
			b = append(b, '.')
		}
	}
	return b
}

// titleWords draws the length of a title: 4 to 12 words, 7 on average.
func (p *prose) titleWords() int {
	return 4 + p.random.IntN(4) + p.random.IntN(4) + p.random.IntN(2)*p.random.IntN(3)
}

// descriptionWords draws the length of a description: one in twelve issues has none,
// one in 500 has 2,000 words (a pasted log), the others 20 to 200.
func (p *prose) descriptionWords() int {
	switch n := p.random.IntN(500); {
	case n == 0:
		return 2000
	case n <= 41:
		return 0
	}
	return 20 + int(180*math.Pow(p.random.Float64(), 1.4))
}
