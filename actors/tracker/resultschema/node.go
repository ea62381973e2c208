package resultschema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value. It has its place in the parent, so that a fault's place can be
// computed when it is needed.
type node struct {
	kind   jsontext.Kind // 'n', 'f', 't', '"', '0', '[', '{'
	text   string        // of a string, or a number as written
	items  []node        // of an array, or the values of an object
	byName map[string]*node

	parent *node
	name   string // the name in an object
	index  int    // the index in an array

	number *big.Rat // parsed at the first use
}

const (
	// maxDepth limits the nesting of a value.
	maxDepth = 64
	// maxValues limits the values in a result, including arrays and objects.
	maxValues = 20_000
	// maxDigits limits the text of a number, and maxExponent its exponent: the cost of
	// exact arithmetic grows with the number of digits.
	maxDigits   = 64
	maxExponent = 400
	// manyNames is the number of properties above which an object has a map.
	manyNames = 8
)

// errTooMuch reports that a value exceeds the limits of a check.
var errTooMuch = errors.New("too much")

// parse parses a value strictly: no duplicate names, valid UTF-8, and at most limit
// values.
func parse(raw []byte, limit int) (*node, error) {
	p := parser{dec: jsontext.NewDecoder(bytes.NewBuffer(raw)), left: limit}
	root := &node{}
	if err := p.value(root, 1); err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the value")
	}
	return root, nil
}

type parser struct {
	dec  *jsontext.Decoder
	left int
}

func (p *parser) value(n *node, depth int) error {
	if p.left--; p.left < 0 {
		return fmt.Errorf("%w: more values than can be checked", errTooMuch)
	}
	if depth > maxDepth {
		return fmt.Errorf("%w: nested more than %d levels deep", errTooMuch, maxDepth)
	}
	token, err := p.dec.ReadToken()
	if err != nil {
		return err
	}
	n.kind = token.Kind()
	switch n.kind {
	case '"':
		n.text = token.String()
	case '0':
		n.text = token.String()
		return checkNumber(n.text)
	case '[', '{':
		return p.items(n, depth)
	}
	return nil
}

func (p *parser) items(n *node, depth int) error {
	end := jsontext.Kind(']')
	if n.kind == '{' {
		end = '}'
	}
	for p.dec.PeekKind() != end {
		if p.left == 0 {
			return fmt.Errorf("%w: more values than can be checked", errTooMuch)
		}
		n.items = append(n.items, node{})
		child := &n.items[len(n.items)-1]
		if n.kind == '{' {
			name, err := p.dec.ReadToken()
			if err != nil {
				return err
			}
			child.name = name.String()
		}
		child.index = len(n.items) - 1
		if err := p.value(child, depth+1); err != nil {
			return err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return err
	}
	// The items don't move any more, so pointers to them stay valid.
	for i := range n.items {
		child := &n.items[i]
		child.parent = n
		for j := range child.items {
			child.items[j].parent = child
		}
	}
	if n.kind == '{' && len(n.items) > manyNames {
		n.byName = make(map[string]*node, len(n.items))
		for i := range n.items {
			n.byName[n.items[i].name] = &n.items[i]
		}
	}
	return nil
}

// checkNumber refuses a number that is costly to compute with.
func checkNumber(text string) error {
	at := strings.IndexAny(text, "eE")
	if at >= 0 {
		if e, err := strconv.Atoi(text[at+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return fmt.Errorf("%w: a number with an exponent beyond %d", errTooMuch, maxExponent)
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%w: a number out of the range of a double-precision number", errTooMuch)
		}
	}
	if len(text) > maxDigits {
		return fmt.Errorf("%w: a number of more than %d characters", errTooMuch, maxDigits)
	}
	return nil
}

// get returns a property of an object, or nil.
func (n *node) get(name string) *node {
	if n.byName != nil {
		return n.byName[name]
	}
	for i := range n.items {
		if n.items[i].name == name {
			return &n.items[i]
		}
	}
	return nil
}

// rat returns the value of a number.
func (n *node) rat() *big.Rat {
	if n.number == nil {
		n.number, _ = new(big.Rat).SetString(n.text) // checkNumber has accepted it
		if n.number == nil {
			n.number = new(big.Rat)
		}
	}
	return n.number
}

// whole reports whether the text of a number is a plain integer that fits into 64 bits.
func (n *node) whole() bool { return len(n.text) < 18 && !strings.ContainsAny(n.text, ".eE") }

// arithmetic returns the number of steps of an operation with a number.
func (n *node) arithmetic() int {
	if n.whole() {
		return wholeSteps
	}
	return fractionSteps
}

func (c *check) isInteger(n *node) bool {
	return n.kind == '0' && (n.whole() || c.spend(n.arithmetic()) && n.rat().IsInt())
}

// maxPlace limits the text of a place, in bytes.
const maxPlace = 200

// place returns the place of a value, such as filesChanged[2]; "" for the whole value.
func (n *node) place() string {
	var steps []string
	for ; n.parent != nil; n = n.parent {
		switch {
		case n.parent.kind == '[':
			steps = append(steps, "["+strconv.Itoa(n.index)+"]")
		case n.parent.parent == nil:
			steps = append(steps, cut(n.name, maxPlace))
		default:
			steps = append(steps, "."+cut(n.name, maxPlace))
		}
	}
	var b strings.Builder
	for i := len(steps) - 1; i >= 0; i-- {
		b.WriteString(steps[i])
	}
	return cut(b.String(), maxPlace)
}

// cut shortens an external text, between two characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most] + "..."
}
