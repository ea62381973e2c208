package httpapi

import (
	"slices"

	"switchyard/actors/tracker"
)

const (
	workspacePath = "/workspaces/{" + workspaceParam + "}"
	tokensPath    = workspacePath + "/tokens"
	membersPath   = workspacePath + "/members"
	teamsPath     = workspacePath + "/teams"
	issuesPath    = workspacePath + "/issues"
	commentsPath  = workspacePath + "/comments"
	labelsPath    = workspacePath + "/labels"
	projectsPath  = workspacePath + "/projects"
	cyclesPath    = workspacePath + "/cycles"
	templatesPath = workspacePath + "/templates"
	channelsPath  = workspacePath + "/support-channels"
	ticketsPath   = workspacePath + "/tickets"
	dealsPath     = workspacePath + "/deals"
	secretsPath   = workspacePath + "/inbound-secrets"
	inroutesPath  = workspacePath + "/inbound-routes"
	analyticsPath = workspacePath + "/issue-analytics"
	agentsPath    = workspacePath + "/agents"
	sessionsPath  = workspacePath + "/agent/sessions"
	sessionPath   = sessionsPath + "/{id}"
	draftsPath    = workspacePath + "/drafts"
	webhooksPath  = workspacePath + "/webhook-subscriptions"
	clientsPath   = workspacePath + "/oauth-clients"
	connsPath     = workspacePath + "/scim/connections"
	scimPath      = "/scim/v2/{" + workspaceParam + "}"

	clusterWorkspacePath = "/cluster/workspaces/{" + workspaceParam + "}"
)

//go:generate go run switchyard/cmd/internal/apidoc ../docs/api.md

// Routes is the whole API, beside the server's own paths in builtin.go. A static
// segment wins over a parameter.
func Routes() []Route {
	return slices.Concat([]Route{
		{"POST", "/workspaces", tracker.CreateWorkspace},
		{"GET", "/workspaces", tracker.ListWorkspaces},
		{"POST", "/workspaces/onboard", tracker.OnboardWorkspace},
		{"GET", "/workspaces/slug/{slug}", tracker.WorkspaceBySlug},
		{"GET", workspacePath, tracker.WorkspaceByID},
		{"PATCH", workspacePath, tracker.PatchWorkspace},
		{"DELETE", workspacePath, tracker.DeleteWorkspace},
		{"GET", workspacePath + "/export", tracker.ExportWorkspace},
		{"GET", workspacePath + "/import", tracker.ShowImport},
		{"POST", workspacePath + "/import", tracker.ImportLines},
		{"POST", "/cluster/import", tracker.BeginImport},

		{"POST", "/console/session", opOpenConsole},
		{"GET", "/console/session", opConsole},
		{"DELETE", "/console/session", opEndConsole},

		{"GET", tokensPath, tracker.ListTokens},
		{"POST", tokensPath, tracker.CreateToken},
		{"DELETE", tokensPath + "/{id}", tracker.DeleteToken},

		{"GET", membersPath, tracker.ListMembers},
		{"POST", membersPath, tracker.AddMember},
		{"PATCH", membersPath + "/{userId}", tracker.PatchMember},
		{"DELETE", membersPath + "/{userId}", tracker.RemoveMember},

		{"GET", teamsPath, tracker.ListTeams},
		{"POST", teamsPath, tracker.CreateTeam},
		{"GET", teamsPath + "/{id}", tracker.TeamByID},
		{"PATCH", teamsPath + "/{id}", tracker.PatchTeam},
		{"DELETE", teamsPath + "/{id}", tracker.DeleteTeam},
		{"GET", teamsPath + "/{id}/members", tracker.ListTeamMembers},
		{"PUT", teamsPath + "/{id}/members/{userId}", tracker.PutTeamMember},
		{"DELETE", teamsPath + "/{id}/members/{userId}", tracker.RemoveTeamMember},

		{"GET", issuesPath, tracker.ListIssues},
		{"GET", workspacePath + "/triage", tracker.ListTriage},
		{"POST", issuesPath, tracker.CreateIssue},
		{"POST", issuesPath + "/batch", tracker.BatchIssues},
		{"POST", issuesPath + "/bulk", tracker.CreateIssues},
		{"GET", issuesPath + "/{id}", tracker.IssueByID},
		{"PATCH", issuesPath + "/{id}", tracker.PatchIssue},
		{"DELETE", issuesPath + "/{id}", tracker.DeleteIssue},
		{"GET", issuesPath + "/{id}/children", tracker.ListIssueChildren},
		{"GET", issuesPath + "/{id}/history", tracker.IssueHistory},
		{"POST", issuesPath + "/{id}/assign", tracker.AssignIssue},
		{"POST", issuesPath + "/{id}/unarchive", tracker.UnarchiveIssue},
		{"GET", issuesPath + "/{id}/branch-name", tracker.IssueBranchName},
		{"GET", issuesPath + "/{id}/similar", tracker.SimilarIssues},
		{"GET", issuesPath + "/{id}/graph", tracker.GraphOfIssue},
		{"GET", issuesPath + "/{id}/relations", tracker.ListRelations},
		{"PUT", issuesPath + "/{id}/relations/{type}/{otherId}", tracker.PutRelation},
		{"DELETE", issuesPath + "/{id}/relations/{type}/{otherId}", tracker.DeleteRelation},

		{"GET", issuesPath + "/{id}/comments", tracker.ListComments},
		{"POST", issuesPath + "/{id}/comments", tracker.CreateComment},
		{"GET", commentsPath + "/{id}", tracker.CommentByID},
		{"PATCH", commentsPath + "/{id}", tracker.PatchComment},
		{"DELETE", commentsPath + "/{id}", tracker.DeleteComment},
	}, recordRoutes(labelsPath, tracker.Labels), recordRoutes(projectsPath, tracker.Projects), recordRoutes(cyclesPath, tracker.Cycles), recordRoutes(templatesPath, tracker.Templates), []Route{
		{"GET", issuesPath + "/{id}/attachments", tracker.ListAttachments},
		{"GET", workspacePath + "/attachments/{id}", tracker.AttachmentByID},
		{"POST", workspacePath + "/capture", tracker.CaptureIssue},
		{"GET", analyticsPath, tracker.IssueAnalytics},
		{"GET", analyticsPath + "/burndown", tracker.Burndown},

		{"GET", issuesPath + "/{id}/permissions", tracker.ListAccessGrants},
		{"PUT", issuesPath + "/{id}/permissions", tracker.PutAccessGrant},
		{"DELETE", issuesPath + "/{id}/permissions/{actorId}", tracker.RemoveAccessGrant},
		{"GET", issuesPath + "/{id}/share", tracker.ShareByIssue},
		{"POST", issuesPath + "/{id}/share", tracker.CreateShare},
		{"DELETE", issuesPath + "/{id}/share/{token}", tracker.RevokeShare},
		{"GET", "/shared-issues/{" + workspaceParam + "}/{token}", tracker.SharedIssue},

		{"GET", agentsPath, tracker.ListAgents},
		{"POST", agentsPath, tracker.CreateAgent},
		{"GET", agentsPath + "/{id}", tracker.AgentByID},
		{"PATCH", agentsPath + "/{id}", tracker.PatchAgent},
		{"DELETE", agentsPath + "/{id}", tracker.DeleteAgent},

		{"POST", issuesPath + "/{id}/dispatch", tracker.DispatchIssue},
		{"POST", workspacePath + "/agent/dispatch-batch", tracker.DispatchBatch},
		{"GET", sessionsPath, tracker.ListSessions},
		{"POST", sessionsPath + "/register", tracker.RegisterSession},
		{"POST", sessionsPath + "/claim", tracker.ClaimSessions},
		{"POST", sessionsPath + "/release", tracker.ReleaseSessions},
		{"POST", sessionsPath + "/redrive", tracker.RedriveSessions},
		{"GET", sessionPath, tracker.SessionByID},
		{"POST", sessionPath + "/poll", tracker.PollSession},
		{"GET", sessionPath + "/activities", tracker.ListActivities},
		{"GET", sessionPath + "/children", tracker.ListSessionChildren},
		{"POST", sessionPath + "/children", tracker.SpawnSession},
		{"GET", workspacePath + "/usage", tracker.ListUsage},
		{"GET", sessionPath + "/attempts", tracker.ListAttempts},
		{"POST", sessionPath + "/release", tracker.ReleaseSession},
		{"POST", sessionPath + "/retry", tracker.RetrySession},
		{"GET", sessionPath + "/checkpoint", tracker.SessionCheckpoint},
		{"PUT", sessionPath + "/checkpoint", tracker.PutCheckpoint},
		{"POST", sessionPath + "/cancel", tracker.CancelSession},
		{"POST", sessionPath + "/reply", tracker.ReplyToSession},
		{"POST", sessionPath + "/log", tracker.LogActivities},
		{"POST", sessionPath + "/report", tracker.ReportSession},
		{"POST", sessionPath + "/heartbeat", tracker.Heartbeat},
		{"POST", sessionPath + "/mcp", opSessionTools},

		{"GET", workspacePath + "/agent/queue", tracker.ReadQueue},
		{"GET", workspacePath + "/agent/limits", tracker.ListConcurrencyLimits},
		{"PUT", workspacePath + "/agent/limits/{key}", tracker.PutConcurrencyLimit},
		{"DELETE", workspacePath + "/agent/limits/{key}", tracker.DeleteConcurrencyLimit},
		{"GET", workspacePath + "/holds", tracker.ListHolds},
		{"PUT", workspacePath + "/holds/{scope}", tracker.PutHold},
		{"DELETE", workspacePath + "/holds/{scope}", tracker.DeleteHold},
		{"GET", workspacePath + "/retention", tracker.GetRetention},
		{"PUT", workspacePath + "/retention", tracker.PutRetention},
		{"GET", workspacePath + "/budgets", tracker.ListBudgets},
		{"PUT", workspacePath + "/budgets/{scope}", tracker.PutBudget},
		{"DELETE", workspacePath + "/budgets/{scope}", tracker.DeleteBudget},

		{"GET", draftsPath, tracker.ListDrafts},
		{"POST", draftsPath, tracker.CreateDraft},
		{"GET", draftsPath + "/{id}", tracker.DraftByID},
		{"POST", draftsPath + "/{id}/publish", tracker.PublishDraft},
		{"POST", draftsPath + "/{id}/discard", tracker.DiscardDraft},

		{"GET", channelsPath, tracker.ListChannels},
		{"POST", channelsPath, tracker.CreateChannel},
		{"GET", channelsPath + "/{id}", tracker.ChannelByID},
		{"PATCH", channelsPath + "/{id}", tracker.PatchChannel},
		{"DELETE", channelsPath + "/{id}", tracker.DeleteChannel},

		{"GET", ticketsPath, tracker.ListTickets},
		{"GET", ticketsPath + "/{id}", tracker.TicketByID},
		{"PATCH", ticketsPath + "/{id}", tracker.PatchTicket},
		{"GET", ticketsPath + "/{id}/messages", tracker.ListTicketMessages},
		{"POST", ticketsPath + "/{id}/messages", tracker.CreateTicketMessage},
		{"POST", ticketsPath + "/{id}/issue", tracker.CreateTicketIssue},
	}, recordRoutes(dealsPath, tracker.Deals), []Route{
		{"GET", secretsPath, tracker.ListInboundSecrets},
		{"PUT", secretsPath + "/{source}", tracker.PutInboundSecret},
		{"DELETE", secretsPath + "/{source}", tracker.DeleteInboundSecret},
		{"GET", "/inbound-routes", tracker.ReviewInboundRoutes},
		{"GET", inroutesPath, tracker.ListInboundRoutes},
		{"PUT", inroutesPath + "/{kind}/{key...}", tracker.PutInboundRoute},
		{"DELETE", inroutesPath + "/{kind}/{key...}", tracker.DeleteInboundRoute},
		{"POST", "/webhooks/comms/{" + workspaceParam + "}/{source}", tracker.ReceiveComms},
		{"POST", "/helpdesk1/{" + workspaceParam + "}", tracker.ReceiveHelpdesk1},
		{"POST", "/support/sms/inbound", tracker.ReceiveSMS},
		{"POST", "/vcs1", tracker.ReceiveVCS},

		{"GET", webhooksPath, tracker.ListWebhooks},
		{"POST", webhooksPath, tracker.CreateWebhook},
		{"GET", webhooksPath + "/{id}", tracker.WebhookByID},
		{"PATCH", webhooksPath + "/{id}", tracker.PatchWebhook},
		{"DELETE", webhooksPath + "/{id}", tracker.DeleteWebhook},
		{"POST", webhooksPath + "/{id}/rotate-secret", tracker.RotateWebhookSecret},
		{"POST", webhooksPath + "/{id}/test", tracker.PingWebhook},
		{"GET", webhooksPath + "/{id}/deliveries", tracker.ListDeliveries},
		{"POST", webhooksPath + "/{id}/deliveries/{deliveryId}/redeliver", tracker.Redeliver},
		{"GET", clientsPath, tracker.ListOAuthClients},
		{"POST", clientsPath, tracker.CreateOAuthClient},
		{"GET", clientsPath + "/{id}", tracker.OAuthClientByID},
		{"PATCH", clientsPath + "/{id}", tracker.PatchOAuthClient},
		{"DELETE", clientsPath + "/{id}", tracker.DeleteOAuthClient},
		{"POST", "/oauth/token", tracker.GrantOAuthToken},

		{"GET", connsPath, tracker.ListSCIMConnections},
		{"POST", connsPath, tracker.CreateSCIMConnection},
		{"DELETE", connsPath + "/{id}", tracker.DeleteSCIMConnection},

		{"GET", scimPath + "/ServiceProviderConfig", tracker.SCIMServiceProvider},
		{"GET", scimPath + "/ResourceTypes", tracker.ListSCIMResourceTypes},
		{"GET", scimPath + "/ResourceTypes/{id}", tracker.SCIMResourceType},
		{"GET", scimPath + "/Schemas", tracker.ListSCIMSchemas},
		{"GET", scimPath + "/Schemas/{id}", tracker.SCIMSchema},
		{"GET", scimPath + "/Users", tracker.ListSCIMUsers},
		{"POST", scimPath + "/Users", tracker.CreateSCIMUser},
		{"GET", scimPath + "/Users/{id}", tracker.SCIMUserByID},
		{"PUT", scimPath + "/Users/{id}", tracker.PutSCIMUser},
		{"PATCH", scimPath + "/Users/{id}", tracker.PatchSCIMUser},
		{"DELETE", scimPath + "/Users/{id}", tracker.DeleteSCIMUser},
		{"GET", scimPath + "/Groups", tracker.ListSCIMGroups},
		{"POST", scimPath + "/Groups", tracker.CreateSCIMGroup},
		{"GET", scimPath + "/Groups/{id}", tracker.SCIMGroupByID},
		{"PUT", scimPath + "/Groups/{id}", tracker.PutSCIMGroup},
		{"PATCH", scimPath + "/Groups/{id}", tracker.PatchSCIMGroup},
		{"DELETE", scimPath + "/Groups/{id}", tracker.DeleteSCIMGroup},

		{"GET", workspacePath + "/events", tracker.ListEvents},

		{"GET", "/cluster", opTopology},
		{"GET", "/cluster/backup/shards/{shard}", opBackupShard},
		{"GET", clusterWorkspacePath, opWorkspaceOwner},
		{"GET", clusterWorkspacePath + "/rows", opWorkspaceRows},
		{"GET", clusterWorkspacePath + "/arrival", tracker.ShowArrival},
		{"POST", clusterWorkspacePath + "/arrival", tracker.BeginArrival},
		{"DELETE", clusterWorkspacePath + "/arrival", tracker.AbandonArrival},
		{"DELETE", clusterWorkspacePath + "/arrival/{id}", tracker.AbandonArrivalByID},
		{"POST", clusterWorkspacePath + "/arrival/{id}/rows", tracker.TakeRows},
		{"POST", clusterWorkspacePath + "/arrival/{id}/end", tracker.EndArrival},
		{"GET", clusterWorkspacePath + "/limits", tracker.GetLimits},
		{"PUT", clusterWorkspacePath + "/limits", tracker.PutLimits},
		{"GET", clusterWorkspacePath + "/read-only", tracker.GetWorkspaceReadOnly},
		{"PUT", clusterWorkspacePath + "/read-only", tracker.PutWorkspaceReadOnly},
		{"DELETE", clusterWorkspacePath + "/read-only", tracker.DeleteWorkspaceReadOnly},
		{"GET", "/cluster/audit", tracker.ListClusterAudit},
		{"GET", workspacePath + "/audit", tracker.ListAudit},
		{"GET", "/cluster/read-only", tracker.GetReadOnly},
		{"PUT", "/cluster/read-only", tracker.PutReadOnly},
		{"DELETE", "/cluster/read-only", tracker.DeleteReadOnly},
		{"GET", "/cluster/nodes/{name}/load", opNodeLoad},
		{"POST", "/cluster/nodes/{name}/drain", opDrainNode},
		{"POST", "/cluster/nodes/{name}/undrain", opUndrainNode},
		{"DELETE", "/cluster/nodes/{name}", opRemoveNode},
	})
}

// recordRoutes are the routes of an entity of plain records.
func recordRoutes(path string, ops tracker.RecordOps) []Route {
	return []Route{
		{"GET", path, ops.List},
		{"POST", path, ops.Create},
		{"GET", path + "/{id}", ops.Get},
		{"PATCH", path + "/{id}", ops.Patch},
		{"DELETE", path + "/{id}", ops.Delete},
	}
}
