package httpapi

import (
	"maps"
	"testing"

	"switchyard/actors/tracker"
)

// Attributes of SCIM count in any case, also those of objects in a body.
func TestBind_SCIMNamesInAnyCase(t *testing.T) {
	t.Parallel()
	in, faults := bindFaults(t, tracker.CreateSCIMUser, `{"USERNAME":"ann@x.io","Active":false,"name":{"familyname":"Lee"},"Emails":[{"Value":"ann@x.io","PRIMARY":true}]}`)
	u := in.(*tracker.CreateSCIMUserIn)
	if len(faults) > 0 || u.UserName != "ann@x.io" || string(u.Active) != "false" || u.Name.Value.FamilyName.Or("") != "Lee" {
		t.Errorf("%+v %v", u, faults)
	}
	if e := u.Emails.Or(nil); len(e) != 1 || e[0].Value.Or("") != "ann@x.io" || !e[0].Primary.Or(false) {
		t.Errorf("the addresses are %+v", e)
	}
	for body, want := range map[string]map[string]string{
		`{"username":""}`: {"userName": "Must be at least 1 character long."},
		`{"userName":"a","active":true,"ACTIVE":false}`:       {"active": again},
		`{"userName":"a","emails":[{"type":"a","Type":"b"}]}`: {"emails[0].type": again},
		`{"userName":"a","active":true,"active":false}`:       {"active": again},
		`{"userName":"a","userName":"b","UserName":"c"}`:      {"userName": again},
	} {
		_, faults := bindFaults(t, tracker.CreateSCIMUser, body)
		if !maps.Equal(faults, want) {
			t.Errorf("%s: %v, want %v", body, faults, want)
		}
	}
	// Elsewhere the case of a name counts.
	if _, faults := bindFaults(t, opMake, `{"Title":"x"}`); faults["title"] != "Is required." {
		t.Errorf("a name in another case: %v", faults)
	}
}
