package resultschema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPattern limits a regular expression in bytes. A named class of characters
	// counts as classBytes: compiling it reads its tables.
	maxPattern   = 512
	classBytes   = 64
	allPatterns  = 8 << 10 // bytes of all patterns of a schema
	maxProgram   = 1_000   // compiled size: repetitions are expanded
	allPrograms  = 5_000   // compiled size of all patterns of a schema
	rangesInStep = 4       // ranges of a class that count as one instruction
)

// pattern is a regular expression in Go's syntax. Matching takes at most time in
// proportion to size times the length of the text.
type pattern struct {
	*regexp.Regexp
	size int
}

// patterns compiles the regular expressions of one schema, each once, though the
// library compiles them several times. It belongs to one compilation.
type patterns struct {
	known       map[string]*pattern
	bytes, size int
}

func (p *patterns) engine(text string) (jsonschema.Regexp, error) {
	if re := p.known[text]; re != nil {
		return re, nil
	}
	if p.bytes += patternBytes(text); p.bytes > allPatterns || p.size > allPrograms {
		return nil, errPatterns
	}
	size, err := measure(text)
	if err != nil {
		return nil, err
	}
	if p.size += size; p.size > allPrograms {
		return nil, errPatterns
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	re := &pattern{compiled, size}
	if p.known == nil {
		p.known = map[string]*pattern{}
	}
	p.known[text] = re
	return re, nil
}

var errPatterns = errors.New("the schema's patterns are too many, or too large, taken together")

func patternBytes(text string) int {
	return len(text) + classBytes*(strings.Count(text, `\p`)+strings.Count(text, `\P`))
}

// regexFormat is the format of texts that are regular expressions.
var regexFormat = jsonschema.Format{Name: "regex", Validate: func(v any) error {
	text, ok := v.(string)
	if !ok {
		return nil
	}
	_, err := measure(text)
	return err
}}

// measure returns the size of a pattern, or an error if it is not valid or too large.
func measure(text string) (int, error) {
	if patternBytes(text) > maxPattern {
		return 0, fmt.Errorf("a pattern has at most %d bytes, a class such as \\pL counting as %d", maxPattern, classBytes)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("not in the syntax of RE2: %w", err)
	}
	size := programSize(tree)
	if size > maxProgram {
		return 0, fmt.Errorf("the pattern is too large with its repetitions written out: %d parts, at most %d", size, maxProgram)
	}
	return size, nil
}

// programSize estimates the number of instructions of a compiled expression.
func programSize(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size = len(re.Rune)
	case syntax.OpCharClass:
		size = 1 + len(re.Rune)/(2*rangesInStep)
	case syntax.OpCapture:
		size = 2
	case syntax.OpConcat, syntax.OpRepeat:
		size = 0
	}
	for _, sub := range re.Sub {
		if size += programSize(sub); size > maxProgram {
			return size // return early, so that size can't overflow
		}
	}
	switch {
	case re.Op == syntax.OpRepeat && re.Max < 0:
		size *= re.Min + 1
	case re.Op == syntax.OpRepeat && re.Max > re.Min: // each optional repetition has a branch around it
		size = (size + 1) * re.Max
	case re.Op == syntax.OpRepeat:
		size *= max(1, re.Max)
	}
	return size
}
