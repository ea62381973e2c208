package tracker

// Onboarded is the answer to OnboardWorkspace.
type Onboarded struct {
	Workspace Workspace    `json:"workspace"`
	Team      Team         `json:"team"`
	Token     CreatedToken `json:"token"`
}

// OnboardWorkspace makes a user, a workspace that the user owns, its default team, and
// an admin token for the user. The operator's setting decides who may call it.
var OnboardWorkspace = NewWorkflow[NewWorkspaceIn, Onboarded]("OnboardWorkspace", "Onboard a workspace", Needs{Level: Public}, func(f Flow, in *NewWorkspaceIn) (Reply, error) {
	rights, err := checkCreation(f)
	if err != nil {
		return Reply{}, err
	}
	return newWorkspace(f, in, onboardOp, rights)
}, WithSecret, ForOnboarding, Answers(Created), Audits(auditWorkspace))
