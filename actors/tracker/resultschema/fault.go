package resultschema

import (
	"strconv"
	"strings"
)

// fault is one thing that is wrong with a value. Its text is computed only when it is
// needed: most faults are those of alternatives that did not apply.
type fault struct {
	at   *node
	text func() string
	// alternatives is set if none of several schemas fits.
	alternatives bool
}

// faults collects faults, up to a number. A nil *faults collects nothing and is always
// full, so that the first fault ends the search.
type faults struct {
	list []fault
	most int
}

// add adds a fault. It returns false, the result of a check with a fault.
func (f *faults) add(at *node, text func() string) bool {
	if f != nil && len(f.list) < f.most {
		f.list = append(f.list, fault{at: at, text: text})
	}
	return false
}

// addAll adds the fault that none of several schemas fits.
func (f *faults) addAll(at *node, text func() string) bool {
	if f != nil && len(f.list) < f.most {
		f.list = append(f.list, fault{at, text, true})
	}
	return false
}

func (f *faults) full() bool { return f == nil || len(f.list) >= f.most }

// branch returns the collector for one of several schemas, which takes the first fault.
func (f *faults) branch() *faults {
	if f == nil {
		return nil
	}
	return &faults{most: 1}
}

// texts returns the faults as text, each with its place in front.
func (f *faults) texts() []string {
	texts := make([]string, 0, len(f.list)+1)
	for _, one := range f.list {
		text := one.text()
		if at := one.at.place(); at != "" {
			text = at + ": " + text
		} else {
			text = sentence(text)
		}
		texts = append(texts, cut(text, 2*maxFaultText)+".")
	}
	if len(f.list) == f.most {
		texts = append(texts, "There may be more.")
	}
	return texts
}

// maxBranches limits the alternatives that a fault lists.
const maxBranches = 3

// branches describes why none of several schemas fits.
func branches(how string, n *node, each []*faults) string {
	text := "must fit " + how + " of " + count(len(each), "schema")
	sep := ": "
	for _, one := range each[:min(len(each), maxBranches)] {
		if one == nil || len(one.list) == 0 {
			continue
		}
		why := one.list[0]
		text += sep
		if why.at != n {
			text += why.at.place() + " "
		}
		if why.alternatives { // nested alternatives would multiply the text
			text += "must fit one of several schemas"
		} else {
			text += cut(why.text(), maxFaultText/2)
		}
		sep = "; or "
	}
	if len(each) > maxBranches {
		text += "; or one of " + strconv.Itoa(len(each)-maxBranches) + " more"
	}
	return text
}

func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// nouns returns the names of the types for a message.
func (t types) nouns() string {
	var list []string
	for _, known := range typeNames {
		if t&known.types != 0 {
			list = append(list, known.noun)
		}
	}
	switch n := len(list); n {
	case 0, 1:
		return strings.Join(list, "")
	default:
		return strings.Join(list[:n-1], ", ") + " or " + list[n-1]
	}
}

// maxShown limits the length of a schema's value in a message, and mostShown the number
// of values.
const (
	maxShown  = 60
	mostShown = 10
)

// show returns a value as JSON, shortened.
func (n *node) show() string {
	var b strings.Builder
	n.write(&b)
	return cut(b.String(), maxShown)
}

// write writes a value as JSON; it stops soon after maxShown bytes.
func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case 'n':
		b.WriteString("null")
	case 't':
		b.WriteString("true")
	case 'f':
		b.WriteString("false")
	case '"':
		b.WriteString(strconv.Quote(cut(n.text, maxShown)))
	case '0':
		b.WriteString(n.text)
	default:
		b.WriteByte(byte(n.kind))
		for i := range n.items {
			if b.Len() > maxShown {
				return
			}
			if i > 0 {
				b.WriteString(", ")
			}
			if n.kind == '{' {
				b.WriteString(strconv.Quote(cut(n.items[i].name, maxShown)) + ": ")
			}
			n.items[i].write(b)
		}
		b.WriteByte(byte(n.kind) + 2) // ']' and '}' are two code points behind their opening brackets
	}
}

func (s *valueSet) show() string {
	var list []string
	for i := range s.list[:min(len(s.list), mostShown)] {
		list = append(list, s.list[i].show())
	}
	if more := len(s.list) - mostShown; more > 0 {
		list = append(list, "or "+strconv.Itoa(more)+" more")
	}
	return strings.Join(list, ", ")
}
