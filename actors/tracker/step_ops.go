package tracker

// StepOps are the operations that a workflow's steps, or the engine for itself, run
// on a workspace that another node may serve; by name, since that is how they get
// there. Their inputs go as JSON, with every exported field.
var StepOps = stepOps(
	reserveSlugOp, activateSlugOp, releaseSlugOp, heldOp, slugHolderOp, knownWorkspacesOp,
	putMembershipsOp, keptAnswerOp, decidedOp, markDeletingOp, forgetWorkspaceOp,
	foundOp, onboardOp, existsOp, openWorkspaceOp, mayDeleteOp, eraseWorkspaceOp,
	addMemberOp, removeMemberOp, pendingMembersOp, clearPendingOp,
	putRouteOp, deleteRouteOp, listRoutesOp, routeOp, verifyInboundOp, receiveMessageOp, receiveHelpdeskOp, receiveEventOp, receiveVCSOp,
	AuthenticateOp, AuthenticateMakerOp, NoteTokenUses, issueAccessTokenOp,
	createSCIMUserOp, putSCIMUserOp, patchSCIMUserOp, deleteSCIMUserOp,
)

func stepOps(ops ...*Op) map[string]*Op {
	byName := make(map[string]*Op, len(ops))
	for _, op := range ops {
		byName[op.Name] = op
	}
	return byName
}
