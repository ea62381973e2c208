package tracker

// TimerOps are the operations that timers run, by kind. Each removes its timer, or sets
// it again, in its own batch; if it fails, the timer stays and runs again. The input is
// a TimerIn.
var TimerOps = map[string]*Op{
	timerSweepAnswers:     sweepAnswersOp,
	timerSweepEvents:      sweepEventsOp,
	timerSweepMemberships: sweepMembershipsOp,
	timerSweepReceived:    sweepReceivedOp,
	timerIndexSearch:      indexSearchOp,
	timerMergeSegments:    mergeSegmentsOp,
	timerSweepAudit:       sweepAuditOp,
	timerSweepRetention:   sweepRetentionOp,
	timerSendAudit:        SendAudit,
	timerCopyReadOnly:     recopyReadOnlyOp,
	timerCountBytes:       countBytesOp,
	timerCountSessions:    countSessionsOp,
	timerResolve:          resolveSlugOp,
	timerErase:            eraseOp,
	timerSweepAccess:      sweepAccessOp,
	timerSyncMembers:      syncMembersOp,
	timerCloseChildren:    closeChildrenOp,
	timerRelease:          releaseOp,
	timerCloseParent:      closeParentOp,
	timerSessionLeases:    leasesOp,
	timerSessionBudget:    budgetOp,
	timerSessionWait:      sessionWaitOp,
	timerSessionWake:      sessionWakeOp,
	timerNotBefore:        notBeforeOp,
	timerScope:            settleScopeOp,
	timerConcurrency:      settleKeyOp,
	timerWhenReady:        settleWhenReadyOp,
	timerHold:             endHoldOp,
	timerBudgetEnd:        endBudgetOp,
	timerBudgetMonth:      budgetMonthOp,
	timerSessionFollowers: moveFollowersOp,
	timerConsole:          consoleEndOp,
}
