package tracker

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

// attributeName matches the attributes that a filter can be written anew with.
var attributeName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// writeSCIMFilter writes conditions as a filter; false if an attribute is not a plain name.
func writeSCIMFilter(terms []scimTerm) (string, bool) {
	var parts []string
	for _, term := range terms {
		if !attributeName.MatchString(term.attribute) {
			return "", false
		}
		if term.element != nil {
			inner, ok := writeSCIMFilter(term.element)
			if !ok {
				return "", false
			}
			parts = append(parts, term.attribute+"["+inner+"]")
			continue
		}
		value, err := json.Marshal(term.value)
		if err != nil {
			return "", false
		}
		parts = append(parts, term.attribute+" eq "+string(value))
	}
	return strings.Join(parts, " and "), true
}

// FuzzSCIMFilter parses filters and paths. A filter means the same when its conditions are written anew.
func FuzzSCIMFilter(f *testing.F) {
	testkit.Corpus(f)
	for _, seed := range []string{
		`userName eq "a@b.c"`, `active eq true and externalId eq 7`, `emails[type eq "work"].value eq "x]\"y"`,
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "a"`, `emails[type eq "work" and value eq "v"]`, `name.givenName`, `a[`, `.a eq 1`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parseSCIMPath(text); err == nil && p.attribute == "" {
			t.Fatalf("the path %q leads to %+v", text, p)
		}
		terms, err := parseSCIMFilter(text)
		if err != nil {
			return
		}
		if len(terms) == 0 || len(terms) > maxSCIMTerms {
			t.Fatalf("%q has %d conditions", text, len(terms))
		}
		written, ok := writeSCIMFilter(terms)
		if !ok {
			return
		}
		if again, err := parseSCIMFilter(written); err != nil || !reflect.DeepEqual(again, terms) {
			// A sub-attribute behind brackets counts beyond the conditions within.
			if len(terms) == 1 && len(terms[0].element) > maxSCIMTerms {
				return
			}
			t.Fatalf("%q is %+v, and %q is %+v, %v", text, terms, written, again, err)
		}
	})
}
