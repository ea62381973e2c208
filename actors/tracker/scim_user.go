package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// SCIMName is a person's name.
type SCIMName struct {
	Formatted  string `json:"formatted,omitempty"`
	FamilyName string `json:"familyName,omitempty"`
	GivenName  string `json:"givenName,omitempty"`
}

// SCIMEmail is one of a person's addresses.
type SCIMEmail struct {
	Value   string `json:"value"`
	Type    string `json:"type,omitempty"`
	Primary bool   `json:"primary,omitempty"`
}

// SCIMUserAttributes are a person's attributes from an identity provider.
type SCIMUserAttributes struct {
	UserName    string      `json:"userName"`
	ExternalID  *string     `json:"externalId,omitempty"`
	DisplayName *string     `json:"displayName,omitempty"`
	Name        *SCIMName   `json:"name,omitempty"`
	Emails      []SCIMEmail `json:"emails,omitempty"`
}

// scimUser is a person provisioned by an identity provider. An active user has a member
// with the same id, and an inactive one has none; so a member who is removed in another
// way becomes inactive. The role and teams of an inactive user are stored for the
// return.
type scimUser struct {
	ID UserID `json:"id"`
	SCIMUserAttributes
	Role      Role      `json:"role,omitempty"`
	Teams     []TeamID  `json:"teams,omitempty"`
	CreatedAt Timestamp `json:"createdAt"`
	UpdatedAt Timestamp `json:"updatedAt"`
}

// The kinds of entries of scimUserBy and scimGroupBy.
const (
	scimByName     = "name"
	scimByExternal = "external"
	scimByTeam     = "team"
)

var scimUsers = storage.Table[scimUser]{
	ID:   scimUserTable,
	Name: "scimUser",
	Key:  func(k storage.Key, u *scimUser) storage.Key { return memberKey(k, u.ID) },
	Indexes: []storage.Index[scimUser]{{
		ID:   scimUserBy,
		Name: "by",
		Entries: func(e *storage.Entries, u *scimUser) {
			e.Add(e.Key().Str(scimByName).Str(foldName(u.UserName)))
			if u.ExternalID != nil {
				e.Add(e.Key().Str(scimByExternal).Str(*u.ExternalID))
			}
			for _, team := range u.Teams {
				e.Add(e.Key().Str(scimByTeam).Str(string(team)))
			}
		},
	}},
}

// Deactivated users stay known, beside the members.
var _ = declareTable(&scimUsers, atMost(20_000, "provisioned users"))

// scimUserRow returns a provisioned user, or nil.
func (v *View) scimUserRow(id UserID) (*storage.Row[scimUser], error) {
	if id == "" || !indexable(string(id)) {
		return nil, nil
	}
	row, err := scimUsers.Get(v, memberKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read a provisioned user: %w", err)
	}
	return row, nil
}

// scimUsersBy returns the provisioned users with an entry in the index, in the order of
// their ids.
func (v *View) scimUsersBy(kind, value string) ([]*storage.Row[scimUser], error) {
	return scimRowsBy(v, &scimUsers, scimUserBy, "user", kind, value)
}

// freeUserName returns CONFLICT if another user has the userName, case-insensitively.
func (v *View) freeUserName(name string, self UserID) error {
	rows, err := v.scimUsersBy(scimByName, foldName(name))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Value.ID != self {
			return Conflict("Another user has this userName.", "Look the user up by userName, and change that one.").withReason(scimUniqueness)
		}
	}
	return nil
}

// email returns the address of the user's member: the primary one, or the first, or the
// userName if it is an address.
func (u *SCIMUserAttributes) email() *string {
	for i := range u.Emails {
		if u.Emails[i].Primary {
			return &u.Emails[i].Value
		}
	}
	if len(u.Emails) > 0 {
		return &u.Emails[0].Value
	}
	return u.address()
}

// address returns the userName if it looks like an e-mail address, or nil.
func (u *SCIMUserAttributes) address() *string {
	if at := strings.IndexByte(u.UserName, '@'); at < 1 || at == len(u.UserName)-1 || len(u.UserName) > 254 {
		return nil
	}
	return &u.UserName
}

// memberName returns the name of the user's member.
func (u *SCIMUserAttributes) memberName() *string {
	name := u.UserName
	switch {
	case u.DisplayName != nil:
		name = *u.DisplayName
	case u.Name != nil && u.Name.Formatted != "":
		name = u.Name.Formatted
	case u.Name != nil:
		if parts := strings.TrimSpace(u.Name.GivenName + " " + u.Name.FamilyName); parts != "" {
			name = parts
		}
	}
	if runes := []rune(name); len(runes) > 200 {
		name = string(runes[:200])
	}
	return &name
}

// SCIMUser is a provisioned user in the form that answers show.
type SCIMUser struct {
	Schemas     []string        `json:"schemas"`
	ID          UserID          `json:"id"`
	ExternalID  *string         `json:"externalId,omitempty"`
	UserName    string          `json:"userName,omitempty"`
	Name        *SCIMName       `json:"name,omitempty"`
	DisplayName *string         `json:"displayName,omitempty"`
	Active      *bool           `json:"active,omitempty"`
	Emails      []SCIMEmail     `json:"emails,omitempty"`
	Groups      []SCIMReference `json:"groups,omitempty"`
	Meta        *SCIMMeta       `json:"meta,omitempty"`
}

// scimUserShown returns a user in the form that answers show.
func (v *View) scimUserShown(u *scimUser, base *SCIMBase) (*SCIMUser, error) {
	active, err := v.Has(memberTable, memberKey(nil, u.ID))
	if err != nil {
		return nil, fmt.Errorf("look for a member: %w", err)
	}
	teams := u.Teams
	if active {
		teams = nil
		if err := eachTeamOf(v.Reader(), u.ID, func(team storage.ID) { teams = append(teams, TeamID(team.String())) }); err != nil {
			return nil, err
		}
	}
	shown := &SCIMUser{
		Schemas: []string{scimUserURN}, ID: u.ID, ExternalID: u.ExternalID, UserName: u.UserName, Name: u.Name,
		DisplayName: u.DisplayName, Active: &active, Emails: u.Emails,
	}
	url := base.url(v)
	for _, team := range teams {
		group, err := v.scimGroupRow(team)
		if err != nil {
			return nil, err
		}
		if group != nil {
			shown.Groups = append(shown.Groups, SCIMReference{Value: string(team), Ref: url + "/Groups/" + string(team), Display: group.Value.DisplayName, Type: "direct"})
		}
	}
	tag, err := scimTag(shown)
	if err != nil {
		return nil, err
	}
	shown.Meta = &SCIMMeta{ResourceType: "User", Created: u.CreatedAt, LastModified: u.UpdatedAt, Location: url + "/Users/" + scimEscape(string(u.ID)), Version: tag}
	return shown, nil
}

// scimEscape escapes an id for a path. Only ids that admins have chosen need it.
func scimEscape(id string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(id) {
		if c == '-' || c == '_' || c == '.' || c == '~' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}
