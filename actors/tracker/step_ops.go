package tracker

// StepOps are the operations, by name, that a workflow's step or the engine may run on
// a workspace of another node. The name and the input go there as JSON, so every field
// of an input must be exported.
var StepOps = stepOps(
	reserveSlugOp, activateSlugOp, releaseSlugOp, reservationOp, slugHolderOp, knownWorkspacesOp,
	putMembershipsOp, keptAnswerOp, decidedOp, markDeletingOp, forgetWorkspaceOp,
	foundOp, onboardOp, existsOp, openWorkspaceOp, mayDeleteOp, eraseWorkspaceOp,
	importFoundOp, importLookOp,
	addMemberOp, removeMemberOp, pendingMembersOp, clearPendingOp,
	putRouteOp, deleteRouteOp, listRoutesOp, routeOp, verifyInboundOp, receiveMessageOp, receiveHelpdeskOp, receiveEventOp, receiveVCSOp,
	serviceReadOnlyOp, putReadOnlyOp, deleteReadOnlyOp, copyReadOnlyOp, copiedReadOnlyOp, isWritableOp,
	listClusterAuditOp, ownRouteOp, unsentAuditOp, keepAuditOp, sentAuditOp, recordActOp,
	AuthenticateOp, AuthenticateMakerOp, NoteTokenUses, issueAccessTokenOp,
	openConsoleOp, consoleActorOp, consoleWorkspaceOp, endConsoleOp, endConsolesOp, signInUserOp, signInConsoleOp,
	createSCIMUserOp, putSCIMUserOp, patchSCIMUserOp, deleteSCIMUserOp,
)

func stepOps(ops ...*Op) map[string]*Op {
	byName := make(map[string]*Op, len(ops))
	for _, op := range ops {
		byName[op.Name] = op
	}
	return byName
}
