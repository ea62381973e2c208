package tracker

// AddMemberIn is a new member: a known user by id, or a new user.
type AddMemberIn struct {
	UserID Opt[UserID] `json:"userId" rules:"min=1,max=255"`
	Name   Opt[string] `json:"name" rules:"nullable,min=1,max=200"`
	Email  Opt[string] `json:"email" rules:"nullable,min=3,max=254" form:"email"`
	// Role defaults to member. It can't be owner.
	Role Role `json:"role" enum:"admin,member,guest" absent:"\"member\""`
}

// Validate checks what the tags can't express.
func (in *AddMemberIn) Validate(faults *Faults) {
	if !in.UserID.Set && in.Name.Ptr() == nil && in.Email.Ptr() == nil && faults.Empty() {
		faults.Add("", "At least one of userId, name and email is needed.")
	}
}

// AddMember adds a member to the workspace.
var AddMember = NewWorkflow[AddMemberIn, Member]("AddMember", "Add a member", Needs{Level: Admin}, func(f Flow, in *AddMemberIn) (Reply, error) {
	return memberFlow(f, addMemberOp, in)
}, Answers(Created), Audits(auditMember))

var addMemberOp = NewCommand[AddMemberIn, Member]("AddMemberHere", "Add a member", Needs{Level: Admin}, addMember, Audits(auditMember))

func addMember(tx *Tx, in *AddMemberIn) (Reply, error) {
	id, issued := in.UserID.Value, false
	if id == "" {
		made, err := tx.NewID()
		if err != nil {
			return Reply{}, err
		}
		id, issued = UserID(made.String()), true
	}
	there, err := tx.member(id)
	if err != nil {
		return Reply{}, err
	}
	if there != nil {
		return Reply{}, Conflict("This user is a member already.", "Change the member's role with PATCH.")
	}
	m := Member{UserID: id, Name: in.Name.Ptr(), Email: in.Email.Ptr(), Role: in.Role}
	if m.Role == "" {
		m.Role = RoleMember
	}
	body, err := tx.insertMember(&m, issued)
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: Created, Body: body}, tx.noteMember(id, true)
}
