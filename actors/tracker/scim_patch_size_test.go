package tracker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// valuesOf returns an array of n objects with a value each.
func valuesOf(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`{"a":1},`, n), ",") + "]"
}

// Values are decoded into maps, which take many times the memory of their text.
func TestSCIMPatch_ManyValues(t *testing.T) {
	t.Parallel()
	many := valuesOf(maxSCIMValues / 2)
	for operations, reason := range map[string]string{
		`{"op":"replace","path":"emails","value":` + many + `}`:                                                                             scimInvalidValue,
		`{"op":"replace","value":{"name":` + many + `}}`:                                                                                    scimInvalidValue,
		`{"op":"replace","path":"nickName","value":` + many + `}`:                                                                           "", // which is dropped as it came
		`{"op":"replace","value":{` + names("urn:x:", maxSCIMEdits+1) + `}}`:                                                                scimInvalidValue,
		`{"op":"replace","value":{` + names("urn:x:", maxSCIMEdits) + `}}`:                                                                  "",
		strings.Repeat(`{"op":"replace","value":{"urn:x:a":1}},`, 9) + `{"op":"replace","value":{` + names("urn:x:", maxSCIMEdits-8) + `}}`: scimInvalidValue,
		`{"op":"replace","value":{` + names("urn:x:", maxSCIMEdits) + `}},{"op":"replace","path":"nickName","value":1}`:                     scimInvalidValue,
		`{"op":"replace","value":{` + names("urn:x:", maxSCIMEdits-1) + `}},{"op":"replace","path":"nickName","value":1}`:                   "",
	} {
		in := operationsOf(t, operations)
		var u SCIMUserAttributes
		var active Opt[bool]
		edits, err := in.edits()
		for i := range edits {
			if err == nil {
				err = edits[i].apply(&u, &active)
			}
			if edits[i].value != nil {
				t.Errorf("%.60s: the value of an edit that is not applied is decoded", operations)
			}
		}
		if reason == "" && err != nil {
			t.Errorf("%.60s: %v", operations, err)
		}
		if reason != "" {
			wantReason(t, err, CodeBadRequest, reason)
		}
	}
}

// names returns n attributes with a value each.
func names(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%s%d":1,`, prefix, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// A group may have thousands of members in a value, with several attributes each. The first that is
// not a member ends the search for others.
func TestSCIMPatch_ManyMembers(t *testing.T) {
	t.Parallel()
	var list []map[string]string
	for i := range 10_000 {
		list = append(list, map[string]string{"VALUE": fmt.Sprint("u", i), "display": "d", "type": "User", "$ref": "r"})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	who, err := (&scimEdit{raw: text}).memberIDs()
	if err != nil || len(who) != 10_000 || who[9_999] != "u9999" {
		t.Errorf("%d members, %v", len(who), err)
	}
	if who, err := (&scimEdit{raw: []byte(`{"value":"u"}`)}).memberIDs(); err != nil || len(who) != 1 || who[0] != "u" {
		t.Errorf("of an object: %v, %v", who, err)
	}
	for text, message := range map[string]string{
		`[{"value":"u"},` + valuesOf(2)[1:]: "A member's value must be the id of a user.",
		`[{"a":1},5]`:                       "A member's value must be the id of a user.",
		`[{"value":"u"},5]`:                 "members must be an array of objects.",
		`"u"`:                               "members must be an array of objects.",
	} {
		if _, err := (&scimEdit{raw: []byte(text)}).memberIDs(); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSCIMUser_ActiveOfManyValues(t *testing.T) {
	t.Parallel()
	for text, fits := range map[string]bool{`true`: true, `"False"`: true, `null`: true, ``: true, `[]`: false, `[true]`: false, `[1,`: false, `{"a":[true]}`: false, `5`: false} {
		in := SCIMUserIn{Active: []byte(text)}
		if _, err := in.active(); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}
