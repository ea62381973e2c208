package tracker

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"switchyard/internal/testkit"
)

// slowWords folds a text as a whole, and looks each character up in the tables of scripts.
func slowWords(text string) (words []string) {
	var word []byte
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = word[:0]
		}
	}
	for _, r := range cases.Fold().String(norm.NFKD.String(text)) {
		switch {
		case unicode.Is(unicode.Mn, r):
			continue
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.Mc, r):
			end()
			continue
		}
		if unicode.In(r, singly...) {
			end()
			word = utf8.AppendRune(word, r)
			end()
			continue
		}
		if len(word)+utf8.RuneLen(r) <= maxWord {
			word = utf8.AppendRune(word, r)
		}
	}
	end()
	return words
}

func foldedWordsOf(text string) (words []string) {
	foldWords(text, func(word []byte) { words = append(words, string(word)) })
	return words
}

func wantSlowWords(t *testing.T, text string) {
	t.Helper()
	if got, want := foldedWordsOf(text), slowWords(text); !slices.Equal(got, want) {
		t.Fatalf("the words of %+q are %+q, want %+q", text, got, want)
	}
}

// TestFoldWords_EveryCharacter has each character alone, between letters, and with marks behind it of which some are in words.
func TestFoldWords_EveryCharacter(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		alike := r > 0x3400 && r < 0x9f00 || r > 0xac00 && r < 0xd700 || r > 0x17000 && r < 0x18c00 || r > 0x20000 && r < 0xe0000 && r>>11 != 0x2f800>>11 || r > 0xe0200
		if !utf8.ValidRune(r) || alike && r%251 != 0 {
			continue
		}
		c := string(r)
		wantSlowWords(t, c)
		wantSlowWords(t, "a"+c+"b\u0345"+c+"\u302e\u0301\u0345"+c)
	}
}

// foldedRanges are where characters have unusual forms: accents, ligatures, marks that are in words, syllables that are composed,
// scripts without spaces, scripts with forms by place, width forms.
var foldedRanges = [][2]rune{
	{' ', '~'}, {'A', 'Z'}, {0xa0, 0x24f}, {0x300, 0x36f}, {0x340, 0x345}, {0x370, 0x3ff}, {0x591, 0x5f4}, {0x600, 0x6ff}, {0x900, 0x97f}, {0xd00, 0xd4d}, {0xe01, 0xe5b},
	{0xe80, 0xedf}, {0xf71, 0xf84}, {0x1000, 0x109f}, {0x1100, 0x11ff}, {0x1780, 0x17d3}, {0x1b00, 0x1b44}, {0x1bf2, 0x1bf3}, {0x1e00, 0x1fff}, {0x2000, 0x206f}, {0x20d0, 0x20f0}, {0x2100, 0x218f},
	{0x302a, 0x302f}, {0x3041, 0x30ff}, {0x3300, 0x33ff}, {0x4e00, 0x4fff}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfb00, 0xfb4f}, {0xfdf0, 0xfdfb}, {0xfe20, 0xfe2f}, {0xfe70, 0xfefc}, {0xff00, 0xffef},
	{0x1d165, 0x1d172}, {0x1d400, 0x1d7ff}, {0x1e900, 0x1e94a}, {0x1f300, 0x1f64f}, {0x20000, 0x20100}, {0x2f800, 0x2fa1d}, {0xe0100, 0xe01ef},
}

// randomText draws text from a few of the ranges, so that marks come in runs and words get long.
func randomText(random *rand.Rand, most int) string {
	ranges := make([][2]rune, 1+random.IntN(3))
	for i := range ranges {
		ranges[i] = foldedRanges[random.IntN(len(foldedRanges))]
	}
	var b strings.Builder
	for range random.IntN(most) {
		of := ranges[random.IntN(len(ranges))]
		b.WriteRune(of[0] + random.Int32N(of[1]-of[0]+1))
	}
	return b.String()
}

// BenchmarkEachWord has the longest descriptions that an issue can have.
func BenchmarkEachWord(b *testing.B) {
	for _, c := range []struct{ name, part string }{
		{"ASCII", "The printer crashes "}, {"one accent in 1000", strings.Repeat("The printer crashes ", 50) + "é"}, {"German", "Größe für die Tür "}, {"Hangul", "우편물류시스템오류 "}, {"Han", "邮件系统"}, {"ligatures", "ﷺ"},
	} {
		text := strings.Repeat(c.part, 262_144/utf8.RuneCountInString(c.part))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				eachWord(text, func([]byte) {})
			}
		})
	}
}

func TestFoldWords_RandomText(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for range 20_000 {
		wantSlowWords(t, randomText(random, 100))
	}
	for _, text := range []string{
		strings.Repeat("é", 70), strings.Repeat("ﬃ", 40), strings.Repeat("한", 30), "a" + strings.Repeat("\u0301", 29) + "\u0345\u302e\u0345" + strings.Repeat("\u0316", 40) + "\u302e",
		strings.Repeat("α\u0345", 50), strings.Repeat("α\u0345\u302e é", 50), "ﷺ", "½", "x\u0345", "\u0345", strings.Repeat("a", 63) + "é" + strings.Repeat("ß", 3), strings.Repeat("a", 63) + "語b",
	} {
		wantSlowWords(t, text)
	}
}
