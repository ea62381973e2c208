package tracker

import (
	"strings"

	"switchyard/storage"
)

// SCIMUserList is the answer to ListSCIMUsers.
type SCIMUserList struct {
	Schemas      []string   `json:"schemas"`
	TotalResults int        `json:"totalResults"`
	StartIndex   int        `json:"startIndex"`
	ItemsPerPage int        `json:"itemsPerPage"`
	Resources    []SCIMUser `json:"Resources"`
}

// ListSCIMUsers lists the provisioned users that satisfy a filter, in the order of
// their ids.
var ListSCIMUsers = NewQuery[SCIMListIn, SCIMUserList]("ListScimUsers", "List provisioned users", Needs{Level: Read}, listSCIMUsers, FromSnapshot, SCIMScope(SCIMUsersRead))

func listSCIMUsers(v *View, in *SCIMListIn) (Reply, error) {
	terms, err := scimFilter(in.Filter, "id", "username", "externalid", "displayname", "active", "emails", "emails.value")
	if err != nil {
		return Reply{}, err
	}
	byID := func(id string) (*storage.Row[scimUser], error) { return v.scimUserRow(UserID(id)) }
	rows, narrowed, err := narrowSCIM(terms, "username", byID, v.scimUsersBy)
	if err != nil {
		return Reply{}, err
	}
	p := newSCIMPage(in)
	holds := func(u *scimUser, t *scimTerm) (bool, error) { return v.scimUserIs(u, t) }
	return listSCIM(v, p, &scimUsers, terms, rows, narrowed, holds, func(u *scimUser) error {
		shown, err := v.scimUserShown(u, &in.SCIMBase)
		if err != nil {
			return err
		}
		return p.add(shown)
	})
}

// scimUserIs reports whether a user satisfies a condition. Only id and externalId are
// compared case-sensitively.
func (v *View) scimUserIs(u *scimUser, t *scimTerm) (bool, error) {
	switch t.attribute {
	case "id":
		return string(u.ID) == t.value, nil
	case "username":
		return foldName(u.UserName) == foldName(t.value), nil
	case "externalid":
		return u.ExternalID != nil && *u.ExternalID == t.value, nil
	case "displayname":
		return u.DisplayName != nil && strings.EqualFold(*u.DisplayName, t.value), nil
	case "active":
		active, err := v.Has(memberTable, memberKey(nil, u.ID))
		return active == strings.EqualFold(t.value, "true"), err
	}
	for i := range u.Emails {
		if t.element != nil && u.Emails[i].satisfies(t.element) {
			return true, nil
		}
		if t.element == nil && strings.EqualFold(u.Emails[i].Value, t.value) {
			return true, nil
		}
	}
	return false, nil
}
