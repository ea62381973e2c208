package tracker

import "switchyard/storage"

// Table and index ids. They are part of the format on disk: never change or reuse an
// id. testdata/keys.golden pins them.
const (
	// The service's own rows of a workspace.
	clockTable       storage.TableID = 1 // counter: last id tick, milliseconds<<12 | count
	eventTable       storage.TableID = 2 // sequence -> event
	eventSequence    storage.TableID = 3 // counter: last event sequence
	idempotencyTable storage.TableID = 4 // hash of caller and key -> first answer
	idempotencyByAge storage.TableID = 5 // time, hash
	timerTable       storage.TableID = 6 // kind, subject -> due
	timerByDue       storage.TableID = 7 // shard-wide: due, workspace, kind, subject
	tombstoneTable   storage.TableID = 8 // deleted issue -> the callers that could see it last
	bytesTable       storage.TableID = 9 // counters: bytes stored; also the position of a count in progress

	// Workspace, members, credentials.
	workspaceTable   storage.TableID = 10
	settingsTable    storage.TableID = 11
	memberTable      storage.TableID = 12
	tokenTable       storage.TableID = 13
	teamTable        storage.TableID = 14
	teamKeyIndex     storage.TableID = 15 // unique: key -> team
	teamMemberTable  storage.TableID = 16
	teamMemberByWho  storage.TableID = 17
	retiredKeyTable  storage.TableID = 18 // team key -> highest number given under it
	teamNumber       storage.TableID = 19 // counter: last issue number of a team
	memberByAge      storage.TableID = 20 // newest first
	issuedUserTable  storage.TableID = 21 // ids of users that this workspace created
	grantTable       storage.TableID = 22 // token -> its rights
	grantByActor     storage.TableID = 23
	recordCountTable storage.TableID = 24 // counters: number of teams, members, tokens
	memberChange     storage.TableID = 25 // counter: last change of the members
	pendingTable     storage.TableID = 26 // user -> change that the directory must learn of
	tokenUseTable    storage.TableID = 29 // token -> time of the last recorded use

	// Issues.
	issueTable        storage.TableID = 30
	issueByRef        storage.TableID = 31
	issueByStatus     storage.TableID = 32
	issueByPriority   storage.TableID = 33
	issueByTeam       storage.TableID = 34
	issueByParent     storage.TableID = 35
	issueByAssignee   storage.TableID = 36
	issueByProject    storage.TableID = 37
	issueByCycle      storage.TableID = 38
	issueByLabel      storage.TableID = 39
	issueByDraft      storage.TableID = 40
	identifierTable   storage.TableID = 41 // identifier, present or former -> issue
	identifierByIssue storage.TableID = 42 // issue, former identifier
	issueByHasParent  storage.TableID = 43

	restrictedTable     storage.TableID = 44 // issues with at least one access grant
	accessTable         storage.TableID = 45 // issue, actor -> access grant
	shareTable          storage.TableID = 47 // issue -> its active share
	shareByToken        storage.TableID = 48 // share token -> issue
	commentTable        storage.TableID = 50 // issue, comment
	commentByID         storage.TableID = 51 // unique: comment -> issue, comment
	historyTable        storage.TableID = 52 // issue, change -> who changed what, when
	burndownTable       storage.TableID = 53 // cycle, issue -> when it was in the cycle and closed
	burndownByIssue     storage.TableID = 54 // issue, cycle
	issueAggregateTable storage.TableID = 55 // number of issues of each kind
	attachmentTable     storage.TableID = 56 // attachment
	attachmentByIssue   storage.TableID = 57 // issue, attachment
	attachmentChunk     storage.TableID = 58 // attachment, number -> bytes
	issueByOpenChild    storage.TableID = 59 // parent, child that is not closed

	// Records that issues refer to.
	labelTable    storage.TableID = 60
	projectTable  storage.TableID = 61
	cycleTable    storage.TableID = 62
	templateTable storage.TableID = 63

	commentByParent storage.TableID = 64 // replies of a comment

	// Search.
	earlierSearchFirst storage.TableID = 70 // not in use: ids of an earlier index
	earlierSearchLast  storage.TableID = 74
	searchChanged      storage.TableID = 75 // issue whose entry in the index is outdated -> its change
	searchReplaced     storage.TableID = 76 // issue in several segments -> the segment that counts
	searchManifest     storage.TableID = 77 // list of the segments that count
	searchSegments     storage.TableID = 78 // segment, part -> postings, columns

	// Agents, sessions and drafts; ids up to 109 are kept for them.
	agentTable           storage.TableID = 80
	agentByDefault       storage.TableID = 81
	sessionTable         storage.TableID = 82
	sessionByIssue       storage.TableID = 83
	sessionByStatus      storage.TableID = 84
	sessionByAgent       storage.TableID = 85
	sessionQueue         storage.TableID = 86 // priority, session, issue, agent, provider
	sessionQueueByAgent  storage.TableID = 87 // agent, priority, session, issue, provider
	sessionByProvider    storage.TableID = 88 // the provider's own id of a session
	sessionByParent      storage.TableID = 89 // parent session, whether it has ended
	sessionActive        storage.TableID = 90 // issue, agent: sessions that have not ended
	sessionEngaged       storage.TableID = 91 // agent, issue: sessions that the agent is working on
	sessionByPredecessor storage.TableID = 92 // session that others wait for
	activityTable        storage.TableID = 93 // session, sequence -> activity
	sessionBriefTable    storage.TableID = 94 // session -> instructions
	sessionLeases        storage.TableID = 95 // time of the next check of the lease, session
	engagedTable         storage.TableID = 96 // counter: sessions that an agent is working on
	sessionByEnd         storage.TableID = 97 // when a session ended

	agentByAge storage.TableID = 101 // newest first

	// Parked sessions, and what they wait for.
	sessionParked         storage.TableID = 156 // reason, and what the session waits for, in the order of claims
	sessionUnqueued       storage.TableID = 157 // agent: created sessions that are not in the claim queue
	suspensionTable       storage.TableID = 158 // reason, scope: suspended scopes
	holdTable             storage.TableID = 159 // scope -> hold
	sessionByKey          storage.TableID = 160 // concurrency key, whether it is held
	sessionWhenReady      storage.TableID = 163 // issue, whether it waits for that alone: sessions that wait until it is not blocked
	queueCountTable       storage.TableID = 161 // counts of sessions
	concurrencyLimitTable storage.TableID = 162 // concurrency key -> limit

	draftTable    storage.TableID = 102
	draftByAbout  storage.TableID = 103 // subject: kind (issue or session) and id
	draftByStatus storage.TableID = 104

	// Webhooks.
	webhookTable    storage.TableID = 110
	webhookByShard  storage.TableID = 111 // shard-wide: workspaces that have webhooks
	webhookSecrets  storage.TableID = 112 // webhook -> the secrets that sign its deliveries
	outboxTable     storage.TableID = 113 // webhook, delivery -> event: first attempts, in the order of commits
	retryTable      storage.TableID = 114 // webhook, delivery that is retried
	retryByDue      storage.TableID = 115 // webhook, due, delivery
	deliveryTable   storage.TableID = 116 // webhook, finished delivery
	pendingCount    storage.TableID = 117 // counter: a webhook's rows in the outbox and among the retries
	deliveryCount   storage.TableID = 118 // counter: a webhook's finished deliveries
	webhookFailures storage.TableID = 119 // counter: time in Unix milliseconds since which every attempt of a webhook failed

	// Support channels, tickets, deals, and what providers send.
	channelTable       storage.TableID = 120
	channelSecretTable storage.TableID = 121 // channel -> the secrets of its config
	ticketTable        storage.TableID = 122
	ticketByStatus     storage.TableID = 123
	ticketByChannel    storage.TableID = 124
	ticketByThread     storage.TableID = 125 // source, thread
	ticketByIssue      storage.TableID = 126
	ticketMessageTable storage.TableID = 127 // ticket, message
	dealTable          storage.TableID = 128
	inboundSecretTable storage.TableID = 129 // source -> the secret that signs its calls
	receivedTable      storage.TableID = 130 // hash of source and delivery -> time
	receivedByAge      storage.TableID = 131 // time, hash
	issueByBranch      storage.TableID = 132
	issueByPR          storage.TableID = 133 // by the URL of the pull request

	// Clients of the API, and provisioning.
	oauthClientTable    storage.TableID = 140
	oauthSecretTable    storage.TableID = 141 // client -> the hash of its secret, and its permissions
	accessTokenTable    storage.TableID = 142
	accessTokenByExpiry storage.TableID = 143
	scimConnectionTable storage.TableID = 144
	scimUserTable       storage.TableID = 145
	scimUserBy          storage.TableID = 146 // userName, externalId, and the teams of deactivated users
	scimGroupTable      storage.TableID = 147
	scimGroupBy         storage.TableID = 148 // displayName, externalId
	memberByEmail       storage.TableID = 149 // in lower case

	// Settings of a workspace that the operator makes.
	limitsTable     storage.TableID = 180
	readOnlyTable   storage.TableID = 181
	readOnlyByShard storage.TableID = 182 // shard-wide: key ranges in read-only mode
	auditTable      storage.TableID = 183
	auditUnsent     storage.TableID = 184 // the operator's entries that the cluster's list lacks

	// Retention.
	retentionTable  storage.TableID = 185
	closingTable    storage.TableID = 186 // closed issue -> when it was closed
	closingByTime   storage.TableID = 187 // whether the issue is archived, when it was closed
	issueByArchived storage.TableID = 188
	deliveryByEnd   storage.TableID = 189 // when a delivery was over

	// Relations of issues.
	relationTable storage.TableID = 150 // issue, kind, issue
	relationByTo  storage.TableID = 151 // issue, kind: the same from the other end
	blockedTable  storage.TableID = 152 // issue -> the number of open issues that block it
	releaseTable  storage.TableID = 153 // issue that is not blocked any more, until what follows from that is done
	importTable   storage.TableID = 190 // the workspace's import
	arrivalTable  storage.TableID = 191 // the workspace's move to here

	// Attempts at sessions, and what agents keep there.
	attemptTable        storage.TableID = 169 // session, number -> an attempt before the last one
	sessionByDeadLetter storage.TableID = 170 // 0, or 1 and the failure's reason: sessions that are dead letters
	checkpointTable     storage.TableID = 171 // session -> the JSON that its agents have stored
	planTable           storage.TableID = 172 // session -> its agent's plan
	usageEntryTable     storage.TableID = 173 // time, id -> usage as it was reported
	usageDayTable       storage.TableID = 174 // day, issue, session, project, model -> sum
	usageSumTable       storage.TableID = 175 // kind, group, month or 0 -> sum
	sessionWaits        storage.TableID = 176 // kind and subject of a condition: sessions that wait for it
	budgetTable         storage.TableID = 178 // scope -> budget
	waitCountTable      storage.TableID = 177 // counter: sessions that wait for conditions

	// The directory (its own key range in shard 0).
	directoryTable        storage.TableID = 201 // workspace -> directory entry
	directoryBySlug       storage.TableID = 202
	membershipTable       storage.TableID = 203 // user, workspace
	membershipByWorkspace storage.TableID = 205
	membershipByRemoval   storage.TableID = 206
	directoryByOwner      storage.TableID = 209
	inboundRouteTable     storage.TableID = 134 // kind, key -> the workspace that takes the calls
	inboundRouteByHolder  storage.TableID = 135 // workspace, kind, key
	inboundClaimTable     storage.TableID = 136 // kind, key, workspace -> a route that is not confirmed
	inboundClaimByHolder  storage.TableID = 137 // workspace, kind, key
)

// Dirty flags of the tables.
const (
	// DirtyAccess marks the rows that a Caller is derived from: tokens, members,
	// teams and their members. A batch with this bit invalidates the cached callers of
	// its workspace.
	DirtyAccess storage.DirtyFlags = 1 << iota
	// DirtyTimers marks timers. The shard's scheduler looks for due timers after such
	// a batch.
	DirtyTimers
	// DirtyWebhooks marks webhooks: their addresses, secrets and subscriptions, and
	// deliveries whose time was changed.
	DirtyWebhooks
	// DirtyOutbox marks pending deliveries. The shard's dispatcher looks into the
	// workspace after such a batch.
	DirtyOutbox
	// DirtySets marks rows that the sets of issues are made from: the batch moves the
	// workspace's clock.
	DirtySets
	// DirtyReadOnly marks the read-only mode of a workspace or of the service.
	DirtyReadOnly
)
