package tracker

import (
	"fmt"

	"switchyard/storage"
)

// Member is a person's membership in a workspace.
type Member struct {
	UserID         UserID      `json:"userId"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Name           *string     `json:"name"`
	Email          *string     `json:"email"`
	Role           Role        `json:"role"`
	CreatedAt      Timestamp   `json:"createdAt"`
	UpdatedAt      Timestamp   `json:"updatedAt"`
}

var members = storage.Table[Member]{
	Changed: audited(auditMember, func(m *Member) string { return string(m.UserID) }),
	ID:      memberTable,
	Name:    "member",
	Key:     func(k storage.Key, m *Member) storage.Key { return memberKey(k, m.UserID) },
	Indexes: []storage.Index[Member]{{
		ID:   memberByAge,
		Name: "age",
		Entries: func(e *storage.Entries, m *Member) {
			e.Add(e.Key().U64(^uint64(m.CreatedAt.Time().UnixMilli())))
		},
	}, {
		// Provisioning looks for existing members by address.
		ID:   memberByEmail,
		Name: "email",
		Entries: func(e *storage.Entries, m *Member) {
			if m.Email != nil {
				e.Add(e.Key().Str(foldName(*m.Email)))
			}
		},
	}},
	Dirty: DirtyAccess,
}

var _ = declareTable(&members, atMost(10_000, "members"))

func memberKey(k storage.Key, id UserID) storage.Key { return k.Str(string(id)) }

// member returns a member, or nil.
func (v *View) member(id UserID) (*storage.Row[Member], error) {
	if id == "" || !indexable(string(id)) {
		return nil, nil
	}
	row, err := members.Get(v, memberKey(nil, id))
	if err != nil {
		return nil, fmt.Errorf("read a member: %w", err)
	}
	return row, nil
}

// issued reports whether an admin of this workspace created the user, who did not exist
// before. This workspace may make credentials for such a user that are valid wherever
// the user is a member.
func (v *View) issued(id UserID) (bool, error) {
	stored, err := v.Value(issuedUserTable, memberKey(nil, id), nil)
	return stored != nil, err
}

// insertMember adds a member and sets its workspace and times.
func (tx *Tx) insertMember(m *Member, issued bool) ([]byte, error) {
	m.OrganizationID = WorkspaceID(tx.Workspace().String())
	m.CreatedAt, m.UpdatedAt = At(tx.order), At(tx.order)
	if err := tx.countRecord(memberTable, 1); err != nil {
		return nil, err
	}
	if issued {
		if err := tx.Writer().SetValue(issuedUserTable, memberKey(nil, m.UserID), []byte{1}); err != nil {
			return nil, err
		}
	}
	body, err := members.Insert(tx, m)
	if err != nil {
		return nil, fmt.Errorf("add a member: %w", err)
	}
	return body, nil
}
