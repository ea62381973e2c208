package tracker

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseSCIMFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]scimTerm{
		`userName eq "bjensen"`:  {{attribute: "username", value: "bjensen"}},
		`  USERNAME  EQ  "b j" `: {{attribute: "username", value: "b j"}},
		`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "x"`:    {{attribute: "username", value: "x"}},
		`displayName eq "a \"quoted\" \\ \u00e4"`:                       {{attribute: "displayname", value: `a "quoted" \ ä`}},
		`displayName eq "x and y eq z"`:                                 {{attribute: "displayname", value: "x and y eq z"}},
		`id eq "a" and active eq true AND emails.value eq "b"`:          {{attribute: "id", value: "a"}, {attribute: "active", value: "true"}, {attribute: "emails.value", value: "b"}},
		`urn:other:User:x eq 5`:                                         {{attribute: "urn:other:user:x", value: "5"}},
		`emails[type eq "work"].value eq "x"`:                           {{attribute: "emails", element: []scimTerm{{attribute: "type", value: "work"}, {attribute: "value", value: "x"}}}},
		`Emails[ type EQ "w ]\" o" and primary eq true ] and id eq "a"`: {{attribute: "emails", element: []scimTerm{{attribute: "type", value: `w ]" o`}, {attribute: "primary", value: "true"}}}, {attribute: "id", value: "a"}},
		`userName`: nil, `userName eq`: nil, `userName eq x`: nil, `userName eq "x`: nil, `userName eq null`: nil, `userName eq {}`: nil,
		`userName pr`: nil, `userName sw "x"`: nil, `not (userName eq "x")`: nil, `userName eq "x" or id eq "y"`: nil, `userName eq "x" and`: nil,
		`emails[type eq "work"] eq "x"`: nil, `emails[type eq "work"`: nil, `emails[]`: nil, `emails[type eq "work"]value eq "x"`: nil, `emails[type eq "work"].value`: nil, `emails[type eq "work"].value sw "x"`: nil,
		`emails[a[b eq 1] eq 2]`: nil, `[type eq "work"].value eq "x"`: nil, `emails[type pr].value eq "x"`: nil, `emails[type eq "work"] id eq "x"`: nil, `userName eq "\u0000"`: nil, `userName eq "\x"`: nil, `"x" eq "x"x`: nil, ``: nil,
		strings.Repeat(`id eq "x" and `, 10) + `id eq "x"`: nil,
	} {
		got, err := parseSCIMFilter(text)
		if want == nil {
			wantReason(t, err, CodeBadRequest, scimInvalidFilter)
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// Any text is either parsed or refused.
func TestParseSCIM_Anything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z]{0,4}(\[[a-z ]{0,6}("[a-z\\]{0,3}")?\]?)?(\.[a-z]{0,3})?( eq "?[a-z\\]{0,4}"?)?( and )?`)).Draw(t, "text")
		_, _ = parseSCIMFilter(text)
		_, _ = parseSCIMPath(text)
		rest := text
		for _, ok := "", true; ok && rest != ""; {
			_, after, good := cutSCIMValue(rest)
			if len(after) >= len(rest) && good {
				t.Fatalf("%q is cut to %q", rest, after)
			}
			rest, ok = after, good
		}
	})
}

func TestParseSCIMPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]scimPath{
		"active":                       {attribute: "active"},
		"name.familyName":              {attribute: "name", sub: "familyname"},
		`emails[type eq "work"].value`: {attribute: "emails", selects: true, terms: []scimTerm{{attribute: "type", value: "work"}}, sub: "value"},
		`members[value eq "2819c223"]`: {attribute: "members", selects: true, terms: []scimTerm{{attribute: "value", value: "2819c223"}}},
		"urn:ietf:params:scim:schemas:core:2.0:User:name.givenName":                  {attribute: "name", sub: "givenname"},
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department":      {attribute: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:department", foreign: true},
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager[x eq 1]": {attribute: "urn:ietf:params:scim:schemas:extension:enterprise:2.0:user:manager[x eq 1]", foreign: true},
	} {
		got, err := parseSCIMPath(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "name.", "a b", "emails[", "emails]", `[type eq "x"]`, `emails[type eq "x"]value`, `emails[type eq "x"].`, "urn:ietf:params:scim:schemas:core:2.0:User"} {
		_, err := parseSCIMPath(text)
		wantReason(t, err, CodeBadRequest, scimInvalidPath)
	}
}

// These are the effects of PATCH operations on a user.
func TestSCIMPatch_User(t *testing.T) {
	t.Parallel()
	start := `{"userName":"ann","displayName":"Ann","name":{"givenName":"Ann","familyName":"Archer"},"emails":[{"value":"a@x","type":"work","primary":true},{"value":"b@x","type":"home"}]}`
	for _, row := range []struct{ operations, want, reason string }{
		{`{"op":"replace","path":"displayName","value":"Anna"}`, `{"displayName":"Anna"}`, ""},
		{`{"op":"REPLACE","value":{"DisplayName":"Anna","externalId":"7"}}`, `{"displayName":"Anna","externalId":"7"}`, ""},
		{`{"op":"remove","path":"displayName"}`, `{"displayName":null}`, ""},
		{`{"op":"replace","path":"displayName","value":null}`, `{"displayName":null}`, ""},
		{`{"op":"replace","path":"displayName","value":""}`, `{"displayName":null}`, ""},
		{`{"op":"add","path":"name","value":{"givenName":"Anna"}}`, `{"name":{"givenName":"Anna","familyName":"Archer"}}`, ""},
		{`{"op":"replace","path":"name","value":{"formatted":"A A","middleName":"M"}}`, `{"name":{"formatted":"A A","givenName":"Ann","familyName":"Archer"}}`, ""},
		{`{"op":"remove","path":"name.givenName"},{"op":"remove","path":"name.familyName"}`, `{"name":null}`, ""},
		{`{"op":"remove","path":"name"}`, `{"name":null}`, ""},
		{`{"op":"add","path":"emails","value":[{"value":"c@x"}]}`, `{"emails":[{"value":"a@x","type":"work","primary":true},{"value":"b@x","type":"home"},{"value":"c@x"}]}`, ""},
		{`{"op":"add","path":"emails","value":{"value":"A@x","type":"work"}}`, `{}`, ""},
		{`{"op":"add","path":"emails","value":{"value":"c@x","primary":true}}`, `{"emails":[{"value":"a@x","type":"work"},{"value":"b@x","type":"home"},{"value":"c@x","primary":true}]}`, ""},
		{`{"op":"replace","path":"emails","value":[{"value":"c@x","primary":"True"}]}`, `{"emails":[{"value":"c@x","primary":true}]}`, ""},
		{`{"op":"replace","path":"emails[type eq \"HOME\"].value","value":"c@x"}`, `{"emails":[{"value":"a@x","type":"work","primary":true},{"value":"c@x","type":"home"}]}`, ""},
		{`{"op":"replace","path":"emails[primary eq true].value","value":"c@x"}`, `{"emails":[{"value":"c@x","type":"work","primary":true},{"value":"b@x","type":"home"}]}`, ""},
		{`{"op":"replace","path":"emails[type eq \"home\"].primary","value":true}`, `{"emails":[{"value":"a@x","type":"work"},{"value":"b@x","type":"home","primary":true}]}`, ""},
		{`{"op":"add","path":"emails[type eq \"other\"].value","value":"c@x"}`, `{"emails":[{"value":"a@x","type":"work","primary":true},{"value":"b@x","type":"home"},{"value":"c@x","type":"other"}]}`, ""},
		{`{"op":"replace","path":"emails[type eq \"work\"]","value":{"value":"c@x"}}`, `{"emails":[{"value":"c@x","type":"work","primary":true},{"value":"b@x","type":"home"}]}`, ""},
		{`{"op":"remove","path":"emails[type eq \"work\"]"}`, `{"emails":[{"value":"b@x","type":"home"}]}`, ""},
		{`{"op":"remove","path":"emails[type eq \"work\"].value"}`, `{"emails":[{"value":"b@x","type":"home"}]}`, ""},
		{`{"op":"remove","path":"emails[type eq \"none\"]"}`, `{}`, ""},
		{`{"op":"remove","path":"emails"}`, `{"emails":null}`, ""},
		{`{"op":"add","value":{"nickName":"A","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"x"},"emails":[{"value":"c@x"}]}}`,
			`{"emails":[{"value":"a@x","type":"work","primary":true},{"value":"b@x","type":"home"},{"value":"c@x"}]}`, ""},
		{`{"op":"replace","path":"emails[type eq \"other\"].type","value":"x"}`, "", scimNoTarget},
		{`{"op":"replace","path":"displayName[x eq 1]","value":"x"}`, "", scimInvalidPath},
		{`{"op":"replace","path":"displayName.x","value":"x"}`, "", scimInvalidPath},
		{`{"op":"replace","path":"emails.nothing","value":"x"}`, "", scimInvalidPath},
		{`{"op":"replace","path":"name","value":"x"}`, "", scimInvalidValue},
		{`{"op":"replace","path":"emails[type sw \"w\"].value","value":"x"}`, "", scimInvalidFilter},
		{`{"op":"replace","path":"displayName","value":"` + strings.Repeat("x", 201) + `"}`, "", scimInvalidValue},
		{`{"op":"replace","path":"displayName","value":"\u0000"}`, "", scimInvalidValue},
		// Too many addresses are refused before they are compared, even if they are all the same.
		{`{"op":"replace","path":"emails","value":[` + strings.Repeat(`{"value":"c@x"},`, maxSCIMEmails) + `{"value":"c@x"}]}`, "", scimInvalidValue},
	} {
		in := operationsOf(t, row.operations)
		u, want := SCIMUserAttributes{}, SCIMUserAttributes{}
		for _, into := range []*SCIMUserAttributes{&u, &want} {
			if err := json.Unmarshal([]byte(start), into); err != nil {
				t.Fatal(err)
			}
		}
		var active Opt[bool]
		edits, err := in.edits()
		for i := range edits {
			if err == nil {
				err = edits[i].apply(&u, &active)
			}
		}
		if row.reason != "" {
			wantReason(t, err, CodeBadRequest, row.reason)
			continue
		}
		change := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(row.want), &change); err != nil {
			t.Fatal(err)
		}
		// A value replaces the old one as a whole.
		if _, set := change["name"]; set {
			want.Name = nil
		}
		if _, set := change["emails"]; set {
			want.Emails = nil
		}
		if err := json.Unmarshal([]byte(row.want), &want); err != nil {
			t.Fatal(err)
		}
		if err != nil || !reflect.DeepEqual(u, want) {
			got, _ := json.Marshal(u)
			t.Errorf("%s: %s, %v", row.operations, got, err)
		}
	}
}

// operationsOf decodes operations as the binder does.
func operationsOf(t *testing.T, list string) (in SCIMOperations) {
	t.Helper()
	var sent []struct {
		Op    string
		Path  *string
		Value json.RawMessage
	}
	if err := json.Unmarshal([]byte("["+list+"]"), &sent); err != nil {
		t.Fatal(err)
	}
	for _, op := range sent {
		one := SCIMOperation{Op: op.Op, Value: op.Value}
		if op.Path != nil {
			one.Path = Some(*op.Path)
		}
		in.Operations = append(in.Operations, one)
	}
	return in
}
