package tracker

// TimerOps are the operations that timers run, by their kind. Each removes its
// timer, or sets it again, in its own batch; one that fails leaves it to be run
// again. Their input is a TimerIn.
var TimerOps = map[string]*Op{
	timerSweepAnswers:     sweepAnswersOp,
	timerSweepEvents:      sweepEventsOp,
	timerSweepMemberships: sweepMembershipsOp,
	timerSweepReceived:    sweepReceivedOp,
	timerIndexSearch:      indexSearchOp,
	timerMergeSegments:    mergeSegmentsOp,
	timerCountBytes:       countBytesOp,
	timerResolve:          resolveSlugOp,
	timerErase:            eraseOp,
	timerSweepAccess:      sweepAccessOp,
	timerSyncMembers:      syncMembersOp,
	timerCloseChildren:    closeChildrenOp,
	timerCloseParent:      closeParentOp,
	timerSessionLeases:    leasesOp,
	timerSessionBudget:    budgetOp,
	timerSessionLine:      lineOp,
}
