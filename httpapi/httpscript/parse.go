package httpscript

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Script is a parsed script.
type Script struct {
	Name    string
	Stanzas []Stanza
}

// Stanza is one request with the expected response.
type Stanza struct {
	Line    int // of its request in the script
	Method  string
	Target  string
	Headers []Header
	Body    string
	// HasBody tells an empty body apart from none.
	HasBody bool

	Status      int
	WantHeaders []Header
	Want        string // the expected body; empty for any

	// As takes each of Values in turn.
	As     string
	Values []string
}

// Header is a header line.
type Header struct{ Name, Value string }

// Load parses the script of a file.
func Load(path string) (*Script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	return Parse(filepath.Base(path), string(text))
}

// Parse reads the text of a script.
func Parse(name, text string) (*Script, error) {
	p := &parser{script: &Script{Name: name}}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(i+1, strings.TrimRight(line, " \t\r")); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, i+1, err)
		}
	}
	if err := p.end(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p.script, nil
}

type section uint8

const (
	between section = iota // stanzas
	inHeaders
	inBody
	inWant     // status and headers
	inWantBody // the rest of the expectation
)

type parser struct {
	script *Script
	at     section
	s      Stanza
}

func (p *parser) line(number int, line string) error {
	if strings.HasPrefix(line, "#") {
		return nil
	}
	if want, ok := strings.CutPrefix(line, ">"); ok && p.at != between {
		return p.want(strings.TrimPrefix(want, " "))
	}
	switch p.at {
	case inWant, inWantBody:
		if err := p.end(); err != nil {
			return err
		}
		return p.line(number, line)
	case between:
		return p.request(number, line)
	case inHeaders:
		if line == "" {
			p.at = inBody
			return nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("no header: %q", line)
		}
		p.s.Headers = append(p.s.Headers, Header{name, strings.TrimSpace(value)})
	case inBody:
		if line != "" || p.s.HasBody {
			p.s.HasBody = true
			p.s.Body += line + "\n"
		}
	}
	return nil
}

func (p *parser) request(number int, line string) error {
	if line == "" {
		return nil
	}
	if loop, ok := strings.CutPrefix(line, "for "); ok {
		values, name, ok := strings.Cut(loop, " as ")
		if !ok {
			return fmt.Errorf("want \"for a | b as name\": %q", line)
		}
		p.s.As = name
		for value := range strings.SplitSeq(values, " | ") {
			p.s.Values = append(p.s.Values, strings.TrimSpace(value))
		}
		return nil
	}
	method, target, ok := strings.Cut(line, " ")
	if !ok || strings.ToUpper(method) != method && !strings.HasPrefix(method, "{{") {
		return fmt.Errorf("no request line: %q", line)
	}
	p.s.Line, p.s.Method, p.s.Target = number, method, target
	p.at = inHeaders
	return nil
}

func (p *parser) want(line string) error {
	switch {
	case p.at < inWant:
		status, err := strconv.Atoi(line)
		if err != nil {
			return fmt.Errorf("no status: %q", line)
		}
		p.s.Status = status
		p.at = inWant
		return nil
	case p.at == inWant:
		name, value, ok := strings.Cut(line, ":")
		if ok && isName(name) {
			p.s.WantHeaders = append(p.s.WantHeaders, Header{name, strings.TrimSpace(value)})
			return nil
		}
	}
	p.at = inWantBody
	p.s.Want += line + "\n"
	return nil
}

func isName(name string) bool {
	for _, c := range name {
		if c != '-' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return name != ""
}

// end finishes the stanza being read.
func (p *parser) end() error {
	if p.at == between {
		return nil
	}
	if p.s.Status == 0 {
		return fmt.Errorf("line %d: %s %s expects nothing", p.s.Line, p.s.Method, p.s.Target)
	}
	p.s.Body = strings.TrimRight(p.s.Body, "\n")
	if p.s.Body == "(empty)" {
		p.s.Body = ""
	}
	p.s.Want = strings.TrimSpace(p.s.Want)
	p.script.Stanzas = append(p.script.Stanzas, p.s)
	p.s, p.at = Stanza{}, between
	return nil
}
