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

// node is a JSON value. It knows where it stands, so that a fault can name its
// place without anything being kept on the way down.
type node struct {
	kind   jsontext.Kind // 'n', 'f', 't', '"', '0', '[', '{'
	text   string        // of a string, or a number as written
	items  []node        // of an array, or the values of an object
	byName map[string]*node

	parent *node
	name   string // in an object
	index  int    // in an array

	number *big.Rat // read when first asked for
}

const (
	// maxDepth bounds how deeply a value may be nested.
	maxDepth = 64
	// maxValues bounds the values in a result, counting arrays and objects, too.
	maxValues = 20_000
	// maxDigits bounds a number's text, and maxExponent what follows its e: exact
	// arithmetic with it costs as much as there are digits in it written out.
	maxDigits   = 64
	maxExponent = 400
	// manyNames is from how many properties on an object is looked up by a map.
	manyNames = 8
)

// errTooMuch says that a value is beyond what is looked at.
var errTooMuch = errors.New("too much")

// parse reads a value strictly: names once, valid UTF-8. At most limit values.
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
	// Only now do the items stay where they are.
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

// checkNumber refuses a number that would be costly to calculate with.
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

// get finds a property of an object; nil when it has none of that name.
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

// rat is the value of a number.
func (n *node) rat() *big.Rat {
	if n.number == nil {
		n.number, _ = new(big.Rat).SetString(n.text) // as checkNumber let it through
		if n.number == nil {
			n.number = new(big.Rat)
		}
	}
	return n.number
}

// whole tells whether the text of a number is an integer without further ado, short
// enough for 64 bits.
func (n *node) whole() bool { return len(n.text) < 18 && !strings.ContainsAny(n.text, ".eE") }

// arithmetic is how many steps calculating with a number takes.
func (n *node) arithmetic() int {
	if n.whole() {
		return wholeSteps
	}
	return fractionSteps
}

func (c *check) isInteger(n *node) bool {
	return n.kind == '0' && (n.whole() || c.spend(n.arithmetic()) && n.rat().IsInt())
}

// maxPlace bounds how much of a place is shown, in bytes.
const maxPlace = 200

// place names where a value stands, such as filesChanged[2]; "" for the whole.
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

// cut shortens a text that comes from outside, at a character's border.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most] + "..."
}
