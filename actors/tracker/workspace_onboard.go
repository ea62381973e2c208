package tracker

// Onboarded is the answer to OnboardWorkspace.
type Onboarded struct {
	Workspace *Workspace    `json:"workspace"`
	Team      *Team         `json:"team"`
	Token     *CreatedToken `json:"token"`
}

// OnboardWorkspace makes a user, a workspace they own, its default team, and an
// admin token for them. Whether anyone may ask for it is the operator's setting.
var OnboardWorkspace = NewWorkflow[NewWorkspaceIn, Onboarded]("OnboardWorkspace", "Make a workspace ready for use", Needs{Level: Public}, func(f Flow, in *NewWorkspaceIn) (Reply, error) {
	rights, err := mayFound(f)
	if err != nil {
		return Reply{}, err
	}
	return newWorkspace(f, in, onboardOp, rights)
}, WithSecret, Onboards)
