package httpapi

import "switchyard/actors/tracker"

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
)

//go:generate go run switchyard/cmd/internal/apidoc ../docs/api.md

// Routes is the whole API, beside the server's own paths in builtin.go. The
// statuses are those of success, and those of failures that not every operation
// of its kind has; a static segment wins over a parameter.
func Routes() []Route {
	return []Route{
		{"POST", "/workspaces", tracker.CreateWorkspace, []int{201, 409}},
		{"GET", "/workspaces", tracker.ListWorkspaces, []int{200}},
		{"POST", "/workspaces/onboard", tracker.OnboardWorkspace, []int{201, 409}},
		{"GET", "/workspaces/slug/{slug}", tracker.WorkspaceBySlug, []int{200}},
		{"GET", workspacePath, tracker.WorkspaceByID, []int{200}},
		{"PATCH", workspacePath, tracker.PatchWorkspace, []int{200}},
		{"DELETE", workspacePath, tracker.DeleteWorkspace, []int{200, 403}},

		{"GET", tokensPath, tracker.ListTokens, []int{200}},
		{"POST", tokensPath, tracker.CreateToken, []int{201}},
		{"DELETE", tokensPath + "/{id}", tracker.DeleteToken, []int{204}},

		{"GET", membersPath, tracker.ListMembers, []int{200}},
		{"POST", membersPath, tracker.AddMember, []int{201, 409}},
		{"PATCH", membersPath + "/{userId}", tracker.PatchMember, []int{200, 409}},
		{"DELETE", membersPath + "/{userId}", tracker.RemoveMember, []int{204, 409}},

		{"GET", teamsPath, tracker.ListTeams, []int{200}},
		{"POST", teamsPath, tracker.CreateTeam, []int{201, 409}},
		{"GET", teamsPath + "/{id}", tracker.TeamByID, []int{200}},
		{"PATCH", teamsPath + "/{id}", tracker.PatchTeam, []int{200, 409}},
		{"DELETE", teamsPath + "/{id}", tracker.DeleteTeam, []int{204, 409}},
		{"GET", teamsPath + "/{id}/members", tracker.ListTeamMembers, []int{200}},
		{"PUT", teamsPath + "/{id}/members/{userId}", tracker.PutTeamMember, []int{200}},
		{"DELETE", teamsPath + "/{id}/members/{userId}", tracker.RemoveTeamMember, []int{204}},

		{"GET", issuesPath, tracker.ListIssues, []int{200}},
		{"GET", workspacePath + "/triage", tracker.ListTriage, []int{200}},
		{"POST", issuesPath, tracker.CreateIssue, []int{200, 201, 409}},
		{"POST", issuesPath + "/batch", tracker.BatchIssues, []int{200, 409, 413}},
		{"GET", issuesPath + "/{id}", tracker.IssueByID, []int{200, 304}},
		{"PATCH", issuesPath + "/{id}", tracker.PatchIssue, []int{200, 409}},
		{"DELETE", issuesPath + "/{id}", tracker.DeleteIssue, []int{204}},
		{"GET", issuesPath + "/{id}/children", tracker.ListIssueChildren, []int{200}},
		{"GET", issuesPath + "/{id}/history", tracker.IssueHistory, []int{200}},
		{"POST", issuesPath + "/{id}/assign", tracker.AssignIssue, []int{200, 409}},
		{"GET", issuesPath + "/{id}/branch-name", tracker.IssueBranchName, []int{200}},
		{"GET", issuesPath + "/{id}/similar", tracker.SimilarIssues, []int{200}},

		{"GET", issuesPath + "/{id}/comments", tracker.ListComments, []int{200}},
		{"POST", issuesPath + "/{id}/comments", tracker.CreateComment, []int{201}},
		{"GET", commentsPath + "/{id}", tracker.CommentByID, []int{200}},
		{"PATCH", commentsPath + "/{id}", tracker.PatchComment, []int{200}},
		{"DELETE", commentsPath + "/{id}", tracker.DeleteComment, []int{204}},

		{"GET", labelsPath, tracker.ListLabels, []int{200}},
		{"POST", labelsPath, tracker.CreateLabel, []int{201, 409}},
		{"GET", labelsPath + "/{id}", tracker.LabelByID, []int{200}},
		{"PATCH", labelsPath + "/{id}", tracker.PatchLabel, []int{200}},
		{"DELETE", labelsPath + "/{id}", tracker.DeleteLabel, []int{204}},

		{"GET", projectsPath, tracker.ListProjects, []int{200}},
		{"POST", projectsPath, tracker.CreateProject, []int{201, 409}},
		{"GET", projectsPath + "/{id}", tracker.ProjectByID, []int{200}},
		{"PATCH", projectsPath + "/{id}", tracker.PatchProject, []int{200}},
		{"DELETE", projectsPath + "/{id}", tracker.DeleteProject, []int{204}},

		{"GET", cyclesPath, tracker.ListCycles, []int{200}},
		{"POST", cyclesPath, tracker.CreateCycle, []int{201, 409}},
		{"GET", cyclesPath + "/{id}", tracker.CycleByID, []int{200}},
		{"PATCH", cyclesPath + "/{id}", tracker.PatchCycle, []int{200}},
		{"DELETE", cyclesPath + "/{id}", tracker.DeleteCycle, []int{204}},

		{"GET", templatesPath, tracker.ListTemplates, []int{200}},
		{"POST", templatesPath, tracker.CreateTemplate, []int{201, 409}},
		{"GET", templatesPath + "/{id}", tracker.TemplateByID, []int{200}},
		{"PATCH", templatesPath + "/{id}", tracker.PatchTemplate, []int{200}},
		{"DELETE", templatesPath + "/{id}", tracker.DeleteTemplate, []int{204}},
		{"GET", issuesPath + "/{id}/attachments", tracker.ListAttachments, []int{200}},
		{"GET", workspacePath + "/attachments/{id}", tracker.AttachmentByID, []int{200, 304}},
		{"POST", workspacePath + "/capture", tracker.CaptureIssue, []int{201, 409}},
		{"GET", analyticsPath, tracker.IssueAnalytics, []int{200}},
		{"GET", analyticsPath + "/burndown", tracker.Burndown, []int{200}},

		{"GET", issuesPath + "/{id}/permissions", tracker.ListAccessGrants, []int{200}},
		{"PUT", issuesPath + "/{id}/permissions", tracker.PutAccessGrant, []int{200, 409}},
		{"DELETE", issuesPath + "/{id}/permissions/{actorId}", tracker.RemoveAccessGrant, []int{204}},
		{"GET", issuesPath + "/{id}/share", tracker.ShareByIssue, []int{200}},
		{"POST", issuesPath + "/{id}/share", tracker.CreateShare, []int{201}},
		{"DELETE", issuesPath + "/{id}/share/{token}", tracker.RevokeShare, []int{204}},
		{"GET", "/shared-issues/{" + workspaceParam + "}/{token}", tracker.SharedIssue, []int{200}},

		{"GET", agentsPath, tracker.ListAgents, []int{200}},
		{"POST", agentsPath, tracker.CreateAgent, []int{201, 409}},
		{"GET", agentsPath + "/{id}", tracker.AgentByID, []int{200}},
		{"PATCH", agentsPath + "/{id}", tracker.PatchAgent, []int{200}},
		{"DELETE", agentsPath + "/{id}", tracker.DeleteAgent, []int{204}},

		{"POST", issuesPath + "/{id}/dispatch", tracker.DispatchIssue, []int{201, 409}},
		{"POST", workspacePath + "/agent/dispatch-batch", tracker.DispatchBatch, []int{200}},
		{"GET", sessionsPath, tracker.ListSessions, []int{200}},
		{"POST", sessionsPath + "/register", tracker.RegisterSession, []int{200, 201, 409}},
		{"POST", sessionsPath + "/claim", tracker.ClaimSessions, []int{200, 409}},
		{"GET", sessionPath, tracker.SessionByID, []int{200, 304}},
		{"POST", sessionPath + "/poll", tracker.PollSession, []int{200, 409}},
		{"GET", sessionPath + "/activities", tracker.ListActivities, []int{200, 409}},
		{"GET", sessionPath + "/children", tracker.ListSessionChildren, []int{200, 409}},
		{"POST", sessionPath + "/children", tracker.SpawnSession, []int{201, 409}},
		{"POST", sessionPath + "/cancel", tracker.CancelSession, []int{200, 409}},
		{"POST", sessionPath + "/reply", tracker.ReplyToSession, []int{200, 409}},
		{"POST", sessionPath + "/log", tracker.LogActivities, []int{201, 409}},
		{"POST", sessionPath + "/report", tracker.ReportSession, []int{200, 409}},
		{"POST", sessionPath + "/heartbeat", tracker.Heartbeat, []int{200, 409}},
		{"POST", sessionPath + "/mcp", opSessionTools, []int{200, 202, 409}},

		{"GET", draftsPath, tracker.ListDrafts, []int{200}},
		{"POST", draftsPath, tracker.CreateDraft, []int{201}},
		{"GET", draftsPath + "/{id}", tracker.DraftByID, []int{200}},
		{"POST", draftsPath + "/{id}/publish", tracker.PublishDraft, []int{200, 409}},
		{"POST", draftsPath + "/{id}/discard", tracker.DiscardDraft, []int{200, 409}},

		{"GET", channelsPath, tracker.ListChannels, []int{200}},
		{"POST", channelsPath, tracker.CreateChannel, []int{201, 409}},
		{"GET", channelsPath + "/{id}", tracker.ChannelByID, []int{200}},
		{"PATCH", channelsPath + "/{id}", tracker.PatchChannel, []int{200}},
		{"DELETE", channelsPath + "/{id}", tracker.DeleteChannel, []int{204}},

		{"GET", ticketsPath, tracker.ListTickets, []int{200}},
		{"GET", ticketsPath + "/{id}", tracker.TicketByID, []int{200}},
		{"PATCH", ticketsPath + "/{id}", tracker.PatchTicket, []int{200}},
		{"GET", ticketsPath + "/{id}/messages", tracker.ListTicketMessages, []int{200}},
		{"POST", ticketsPath + "/{id}/messages", tracker.CreateTicketMessage, []int{201, 409}},
		{"POST", ticketsPath + "/{id}/issue", tracker.CreateTicketIssue, []int{201, 409}},

		{"GET", dealsPath, tracker.ListDeals, []int{200}},
		{"POST", dealsPath, tracker.CreateDeal, []int{201, 409}},
		{"GET", dealsPath + "/{id}", tracker.DealByID, []int{200}},
		{"PATCH", dealsPath + "/{id}", tracker.PatchDeal, []int{200}},
		{"DELETE", dealsPath + "/{id}", tracker.DeleteDeal, []int{204}},

		{"GET", secretsPath, tracker.ListInboundSecrets, []int{200}},
		{"PUT", secretsPath + "/{source}", tracker.PutInboundSecret, []int{200, 409}},
		{"DELETE", secretsPath + "/{source}", tracker.DeleteInboundSecret, []int{204}},
		{"GET", "/inbound-routes", tracker.ReviewInboundRoutes, []int{200}},
		{"GET", inroutesPath, tracker.ListInboundRoutes, []int{200}},
		{"PUT", inroutesPath + "/{kind}/{key...}", tracker.PutInboundRoute, []int{200, 409}},
		{"DELETE", inroutesPath + "/{kind}/{key...}", tracker.DeleteInboundRoute, []int{204}},
		{"POST", "/webhooks/comms/{" + workspaceParam + "}/{source}", tracker.ReceiveComms, []int{200, 202, 401, 409}},
		{"POST", "/helpdesk1/{" + workspaceParam + "}", tracker.ReceiveHelpdesk1, []int{200, 202, 401, 409}},
		{"POST", "/support/sms/inbound", tracker.ReceiveSMS, []int{200, 202, 401, 409}},
		{"POST", "/vcs1", tracker.ReceiveVCS, []int{200, 202, 401}},

		{"GET", webhooksPath, tracker.ListWebhooks, []int{200}},
		{"POST", webhooksPath, tracker.CreateWebhook, []int{201, 409}},
		{"GET", webhooksPath + "/{id}", tracker.WebhookByID, []int{200}},
		{"PATCH", webhooksPath + "/{id}", tracker.PatchWebhook, []int{200}},
		{"DELETE", webhooksPath + "/{id}", tracker.DeleteWebhook, []int{204}},
		{"POST", webhooksPath + "/{id}/rotate-secret", tracker.RotateWebhookSecret, []int{200, 409}},
		{"POST", webhooksPath + "/{id}/test", tracker.TestWebhook, []int{202, 409}},
		{"GET", webhooksPath + "/{id}/deliveries", tracker.ListDeliveries, []int{200}},
		{"POST", webhooksPath + "/{id}/deliveries/{deliveryId}/redeliver", tracker.Redeliver, []int{202, 409}},
		{"GET", clientsPath, tracker.ListOAuthClients, []int{200}},
		{"POST", clientsPath, tracker.CreateOAuthClient, []int{201, 409}},
		{"GET", clientsPath + "/{id}", tracker.OAuthClientByID, []int{200}},
		{"PATCH", clientsPath + "/{id}", tracker.PatchOAuthClient, []int{200}},
		{"DELETE", clientsPath + "/{id}", tracker.DeleteOAuthClient, []int{204}},
		{"POST", "/oauth/token", tracker.IssueOAuthToken, []int{200, 401}},

		{"GET", connsPath, tracker.ListSCIMConnections, []int{200}},
		{"POST", connsPath, tracker.CreateSCIMConnection, []int{201, 409}},
		{"DELETE", connsPath + "/{id}", tracker.DeleteSCIMConnection, []int{204}},

		{"GET", scimPath + "/ServiceProviderConfig", tracker.SCIMServiceProvider, []int{200}},
		{"GET", scimPath + "/ResourceTypes", tracker.ListSCIMResourceTypes, []int{200}},
		{"GET", scimPath + "/ResourceTypes/{id}", tracker.SCIMResourceType, []int{200}},
		{"GET", scimPath + "/Schemas", tracker.ListSCIMSchemas, []int{200}},
		{"GET", scimPath + "/Schemas/{id}", tracker.SCIMSchema, []int{200}},
		{"GET", scimPath + "/Users", tracker.ListSCIMUsers, []int{200}},
		{"POST", scimPath + "/Users", tracker.CreateSCIMUser, []int{201, 409}},
		{"GET", scimPath + "/Users/{id}", tracker.SCIMUserByID, []int{200, 304}},
		{"PUT", scimPath + "/Users/{id}", tracker.PutSCIMUser, []int{200, 409}},
		{"PATCH", scimPath + "/Users/{id}", tracker.PatchSCIMUser, []int{200, 409}},
		{"DELETE", scimPath + "/Users/{id}", tracker.DeleteSCIMUser, []int{204, 409}},
		{"GET", scimPath + "/Groups", tracker.ListSCIMGroups, []int{200}},
		{"POST", scimPath + "/Groups", tracker.CreateSCIMGroup, []int{201, 409}},
		{"GET", scimPath + "/Groups/{id}", tracker.SCIMGroupByID, []int{200, 304}},
		{"PUT", scimPath + "/Groups/{id}", tracker.PutSCIMGroup, []int{200, 409}},
		{"PATCH", scimPath + "/Groups/{id}", tracker.PatchSCIMGroup, []int{204, 409}},
		{"DELETE", scimPath + "/Groups/{id}", tracker.DeleteSCIMGroup, []int{204}},

		{"GET", workspacePath + "/events", tracker.ListEvents, []int{200}},

		{"GET", "/cluster", opTopology, []int{200}},
		{"GET", "/cluster/workspaces/{" + workspaceParam + "}", opWorkspaceOwner, []int{200}},
		{"POST", "/cluster/nodes/{name}/drain", opDrainNode, []int{200, 409}},
		{"POST", "/cluster/nodes/{name}/undrain", opUndrainNode, []int{204}},
		{"DELETE", "/cluster/nodes/{name}", opRemoveNode, []int{204, 409}},
	}
}
