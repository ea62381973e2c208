package main

import (
	"errors"
	"fmt"
	"log/slog"

	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/node"
	"switchyard/httpapi"
	"switchyard/storage"
)

// nodeConfig returns the configuration that the flags make.
func (s serveCmd) nodeConfig(logger *slog.Logger) (node.Config, error) {
	root, err := rootToken(s.RootTokenFile)
	if err != nil {
		return node.Config{}, err
	}
	provider, err := s.identityProvider()
	if err != nil {
		return node.Config{}, err
	}
	// The node can't check this: Backups.S3 has the AWS variables, too, which may be there for other programs.
	if !backup.IsS3(s.BackupTo) && (s.BackupS3Endpoint != "" || s.BackupS3Region != "") {
		return node.Config{}, errors.New("--backup-s3-endpoint and --backup-s3-region need a bucket in --backup-to, as in s3://bucket/prefix")
	}
	limit, err := httpapi.ParseRate(s.RateLimit)
	if err != nil {
		return node.Config{}, fmt.Errorf("--rate-limit: %w", err)
	}
	cfg := node.Config{
		Data: s.Data, HTTP: s.HTTP, Metrics: s.Metrics, Pprof: s.Pprof, Name: s.NodeName, Shards: s.Shards,
		TLSCert: s.TLSCert, TLSKey: s.TLSKey, PublicURL: s.PublicURL, ClientURL: s.ClientURL, CORSOrigins: s.CORSOrigins,
		RootToken: root, OpenOnboarding: s.Onboarding == "open", Rate: limit,
		NoConsole: !s.Console, ConsoleSession: s.ConsoleSession, OIDC: provider,
		SMSSecret: s.SMSSecret, VCSSecret: s.VCSSecret,
		OpenInboundRoutes: s.InboundRoutes == "open", InboundRoutes: s.InboundPerSpace, InboundClaims: s.InboundPerKey,

		Peer: s.Peer, Gossip: s.Gossip, Advertise: s.Advertise, Join: s.Join, BootstrapExpect: s.BootstrapExpect,
		Zone: s.Zone, ReplaceAfter: s.ReplaceAfter, CompareEvery: s.CompareEvery, MaxFormat: storage.Format(s.MaxFormat),
		ClusterCert: s.ClusterCert, ClusterKey: s.ClusterKey, ClusterCA: s.ClusterCA,
		GossipKey: s.GossipKey, GossipKeyFile: s.GossipKeyFile, InsecureCluster: s.InsecureCluster,

		WebhooksAllowHTTP: s.WebhooksAllowHTTP, WebhooksAllowPrivate: s.WebhooksAllowPrivate, WebhooksAllowCIDR: s.WebhooksAllowCIDR,
		WebhooksMaxData: int(s.WebhooksMaxData),
		WebhookRates: node.WebhookRates{
			WorkspaceRequests: int(s.WebhooksWorkspaceRequests), WorkspaceBytes: int(s.WebhooksWorkspaceBytes),
			HostRequests: int(s.WebhooksHostRequests), HostBytes: int(s.WebhooksHostBytes),
		},

		Shares: node.Shares{
			MaxConnections: s.MaxConnections, AddressConnections: s.AddressConnections,
			AddressWaiting: s.AddressWaiting, WorkspaceWaiting: s.WorkspaceWaiting, WorkspaceStreams: s.WorkspaceStreams, Exports: s.Exports,
			Bytes: uint64(s.MaxBytesInFlight), WorkspaceBytes: uint64(s.WorkspaceBytesInFlight), AnonymousBytes: uint64(s.AnonymousBytesInFlight),
			OnboardingRate: s.OnboardingRate, AnonymousRate: s.AnonymousRate, SignInRate: s.SignInRate, WorkspacesPerUser: s.WorkspacesPerUser,
			TrustedProxies: s.TrustedProxies, ForwardedHeader: s.ForwardedHeader,
		},
		LimitIssues: s.LimitIssues, LimitSessions: s.LimitSessions, LimitTokens: s.LimitTokens, LimitSubscriptions: s.LimitSubscriptions,
		LimitRequestsPerSecond: s.LimitRequestsPerSecond, LimitCreatesPerSecond: s.LimitCreatesPerSecond,
		LimitBytes: (*uint64)(s.LimitBytes), LimitAnswerBytes: (*uint64)(s.LimitAnswerBytes),
		Memory: uint64(s.Memory), DiskReserve: uint64(s.DiskReserve),

		Backups: node.Backups{
			To: s.BackupTo, Every: s.BackupEvery, LogEvery: s.BackupLogEvery, Keep: s.BackupKeep, KeyFile: s.BackupKeyFile,
			S3: backup.S3FromEnv(backup.S3{Endpoint: s.BackupS3Endpoint, Region: s.BackupS3Region}),
		},
		AuditRetention: s.AuditRetention, SweepInterval: s.SweepInterval,

		RequestTimeout: s.RequestTimeout, StallAfter: s.StallAfter, LaneLife: s.LaneLife, MaxActiveChildren: s.MaxActiveChildren,
		SlowOperations: s.SlowOperations, TraceEndpoint: s.TraceEndpoint, TraceRatio: s.TraceRatio,
		Version: version, Logger: logger,
	}
	if s.WebhooksPerHost != nil {
		cfg.WebhooksPerHost = *s.WebhooksPerHost
	}
	return cfg, nil
}
