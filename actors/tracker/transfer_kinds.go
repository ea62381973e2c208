package tracker

import "switchyard/storage"

// transferKinds lists the kinds of records that an export has, with the functions that
// take them in. Where the places of two records are the same, the kind that is listed
// first comes first. The first line of an export, the workspace's own row, is not among
// them.
var transferKinds = []transferKind{
	transferSettings.with(takeSettings),
	transferRetiredKeys.with(takeRetiredKey),
	transferTeamNumbers.with(takeTeamNumber),
	recordKind("team", &teams, newestLast).with(takeRecord(&teams, lookAtTeam)),
	recordKind("member", &members, byCreatedAt).with(takeMember),
	recordKind("team_member", &teamMembers, byCreatedAt).with(takeRecord(&teamMembers, lookAtTeamMember)),
	recordKind("scim_user", &scimUsers, byCreatedAt).with(takeRecord(&scimUsers, lookAtSCIMUser)),
	recordKind("scim_group", &scimGroups, byCreatedAt).with(takeRecord(&scimGroups, lookAtSCIMGroup)),
	transferSCIMConnections.with(takeSCIMConnection),
	transferTokens.with(takeToken),
	recordKind("oauth_client", &oauthClients, newestLast).with(takeOAuthClient),
	recordKind("label", &labels, newestLast).with(takeRecord(&labels, nil)),
	recordKind("project", &projects, newestLast).with(takeRecord(&projects, nil)),
	recordKind("cycle", &cycles, newestLast).with(takeRecord(&cycles, nil)),
	recordKind("template", &templates, newestLast).with(takeRecord(&templates, nil)),
	recordKind("agent", &agents, byCreatedAt).with(takeAgent),
	recordKind("hold", &holds, byCreatedAt).with(takeHold),
	recordKind("concurrency_limit", &concurrencyLimits, atLast).with(takeConcurrencyLimit),
	transferBudgets.with(takeBudget),
	recordKind("issue", &issues, newestLast).with(takeIssue),
	transferFormerIdentifiers.with(takeFormerIdentifier),
	transferBurndowns.with(takeBurndown),
	transferHistory.with(takeHistory),
	recordKind("relation", &relations, byCreatedAt).with(takeRelation),
	recordKind("comment", &comments, newestLast).with(takeRecord(&comments, lookAtComment)),
	transferAttachments.with(takeAttachment),
	recordKind("access_grant", &accessGrants, byStoredID).with(takeAccessGrant),
	recordKind("share", &shares, byCreatedAt).with(takeRecord(&shares, lookAtShare)),
	transferSessions.with(takeSession),
	transferSessionStates.with(takeSessionState),
	transferSessionBriefs.with(takeSessionBrief),
	rowKind("activity", activityTable, byStoredID, appendValue).with(takeActivity),
	transferAttempts.with(takeAttempt),
	transferCheckpoints.with(takeCheckpoint),
	transferUsage.with(takeUsage),
	transferDrafts.with(takeDraft),
	transferDraftStates.with(takeDraftState),
	recordKind("support_channel", &channels, newestLast).with(takeChannel),
	transferInboundSecrets.with(takeInboundSecret),
	recordKind("ticket", &tickets, newestLast).with(takeRecord(&tickets, lookAtTicket)),
	recordKind("ticket_message", &ticketMessages, newestLast).with(takeTicketMessage),
	recordKind("deal", &deals, newestLast).with(takeRecord(&deals, nil)),
	recordKind("webhook_subscription", &webhooks, newestLast).with(takeWebhook),
	recordKind("webhook_delivery", &deliveries, newestLast).with(takeDelivery),
	transferIssuedUsers.with(takeIssuedUser),
	transferTimers.with(takeTimer),
}

// appendValue appends a plain row that holds the JSON which clients get.
func appendValue(b, _, value []byte) ([]byte, error) { return append(b, value...), nil }

// notTransferred lists the tables and plain rows that no export has, with the reason.
var notTransferred = map[storage.TableID]string{
	workspaceTable: "the first line has it",
	limitsTable:    "the operator of a service sets it",
	auditTable:     "the audit says what was done in this service",
	auditUnsent:    "belongs to the audit",
	readOnlyTable:  "the operator of a service sets it",
	importTable:    "is about one copy",

	clockTable:       "follows from the ids",
	memberChange:     "counts what the directory of one cluster was told",
	pendingTable:     "is what the directory of one cluster has to be told",
	bytesTable:       "follows from the rows",
	recordCountTable: "follows from the records",
	eventTable:       "the event log is not part of an export",
	eventSequence:    "the event log is not part of an export",
	tombstoneTable:   "belongs to the event log",
	idempotencyTable: "a kept answer is good for a day, at the service that gave it",
	idempotencyByAge: "a kept answer is good for a day, at the service that gave it",

	blockedTable:        "follows from the relations",
	releaseTable:        "is the work of a moment, by the service that has the issue",
	identifierTable:     "follows from the issues and their former identifiers",
	restrictedTable:     "follows from the access grants",
	issueAggregateTable: "follows from the issues",
	burndownByIssue:     "follows from the burndowns",
	searchChanged:       "the search index follows from the issues",
	searchReplaced:      "the search index follows from the issues",
	searchManifest:      "the search index follows from the issues",
	searchSegments:      "the search index follows from the issues",
	engagedTable:        "follows from the sessions",
	queueCountTable:     "follows from the sessions",
	suspensionTable:     "follows from the holds, and from the budgets and their usage",
	usageDayTable:       "follows from the reported usage",
	usageSumTable:       "follows from the reported usage",
	waitCountTable:      "follows from the sessions",

	accessTokenTable:   "an access token is a secret of an hour",
	oauthSecretTable:   "a secret, and rights that follow from the client",
	channelSecretTable: "a secret",
	webhookSecrets:     "a secret",
	outboxTable:        "a delivery to be made is made by the service that has the event",
	retryTable:         "a delivery to be made is made by the service that has the event",
	pendingCount:       "counts deliveries to be made",
	deliveryCount:      "follows from the deliveries",
	webhookFailures:    "is about deliveries to be made",
	receivedTable:      "a repeated call is known for a while, by the service that took it",
	receivedByAge:      "a repeated call is known for a while, by the service that took it",
	inboundRouteTable:  "belongs to the directory: the operator of a cluster confirms its routes",
	inboundClaimTable:  "belongs to the directory: the operator of a cluster confirms its routes",
	directoryTable:     "belongs to the directory",
	membershipTable:    "belongs to the directory",
}

// transferredTimers are the kinds of timers that an export has: work that was begun and
// goes on in later batches.
var transferredTimers = map[string]bool{
	timerCloseChildren:    true,
	timerCloseParent:      true,
	timerSessionFollowers: true,
	timerWhenReady:        true,
	timerScope:            true,
	timerBudgetEnd:        true,
	timerConcurrency:      true,
	timerSessionWake:      true,
}

// remadeTimers lists the other kinds of timers, with the reason why an export needs none
// of them.
var remadeTimers = map[string]string{
	timerSweepAnswers:     "kept answers stay behind",
	timerSweepEvents:      "the event log stays behind",
	timerSweepMemberships: "belongs to the directory",
	timerSweepReceived:    "notes of calls stay behind",
	timerSweepAccess:      "access tokens stay behind",
	timerIndexSearch:      "an import sets it, with the issues",
	timerMergeSegments:    "an import sets it, with the issues",
	timerCountBytes:       "an import counts what it writes",
	timerCopyReadOnly:     "belongs to the directory",
	timerSweepAudit:       "belongs to the audit",
	timerSendAudit:        "belongs to the audit",
	timerRelease:          "is the work of a moment, by the service that has the issue",
	timerResolve:          "belongs to the directory",
	timerErase:            "belongs to the directory",
	timerSyncMembers:      "an import sets it, with the members",
	timerSessionBudget:    "an import sets it, with the session",
	timerSessionWait:      "an import sets it, with the session",
	timerCountSessions:    "an import counts the sessions",
	timerNotBefore:        "an import sets it, with the session",
	timerBudgetMonth:      "an import sets it, with the budget",
	timerHold:             "an import sets it, with the hold",
	timerSessionLeases:    "an import sets it, with the session",
}
