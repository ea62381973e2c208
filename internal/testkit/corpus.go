package testkit

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// corpusHeader begins each input of a corpus, as in the files that Go's fuzzing keeps.
const corpusHeader = "go test fuzz v1\n"

// Corpus adds the inputs to a fuzz target that earlier runs found to reach new code. They are in
// testdata/corpora, in one file for each target with the inputs one after another. make corpora adds
// those of this machine.
func Corpus(f *testing.F) {
	f.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "corpora", f.Name()+".txt"))
	if err != nil {
		f.Fatal(err)
	}
	for i, input := range strings.Split(string(text), corpusHeader)[1:] {
		values, err := ParseInput(input)
		if err != nil {
			f.Fatalf("input %d of the corpus: %v", i, err)
		}
		f.Add(values...)
	}
}

// ParseInput returns the values of an input of a fuzz target from their text, a line for each.
func ParseInput(text string) (values []any, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		v, err := parseValue(line)
		if err != nil {
			return nil, fmt.Errorf("%.100s: %w", line, err)
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, errors.New("an input without values")
	}
	return values, nil
}

// parseValue returns a value of one of the types that our fuzz targets take, from a conversion in Go's
// syntax.
func parseValue(text string) (any, error) {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	call, ok := expr.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return nil, errors.New("not a conversion of one value")
	}
	if _, bytes := call.Fun.(*ast.ArrayType); bytes {
		s, err := parseText(call.Args[0])
		return []byte(s), err
	}
	typ, ok := call.Fun.(*ast.Ident)
	if !ok {
		return nil, errors.New("not a conversion to a known type")
	}
	arg := call.Args[0]
	switch typ.Name {
	case "string":
		return parseText(arg)
	case "bool":
		if name, ok := arg.(*ast.Ident); ok {
			return strconv.ParseBool(name.Name)
		}
		return nil, errors.New("neither true nor false")
	case "byte":
		return parseByte(arg)
	case "int":
		n, err := strconv.ParseInt(number(arg), 10, 0)
		return int(n), err
	case "uint64":
		return strconv.ParseUint(number(arg), 10, 64)
	}
	return nil, fmt.Errorf("values of type %s are not known", typ.Name)
}

// number returns the text of a whole number.
func number(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.UnaryExpr:
		return e.Op.String() + number(e.X)
	}
	return ""
}

func parseText(expr ast.Expr) (string, error) {
	if lit, ok := expr.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		return strconv.Unquote(lit.Value)
	}
	return "", errors.New("not a text")
}

func parseByte(expr ast.Expr) (byte, error) {
	lit, ok := expr.(*ast.BasicLit)
	if !ok || lit.Kind != token.CHAR {
		return 0, errors.New("not a character")
	}
	r, _, _, err := strconv.UnquoteChar(lit.Value[1:len(lit.Value)-1], '\'')
	if err != nil || r > 255 {
		return 0, errors.New("not a byte")
	}
	return byte(r), nil
}
