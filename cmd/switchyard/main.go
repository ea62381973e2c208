// Command switchyard is the issue tracker for people and fleets of agents: the
// service and the tools of those who run it, in one binary. It only reads flags
// and prints; what it does lives in the packages it calls. Its one goroutine is
// main's.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"switchyard/bench"
	"switchyard/cluster"
	"switchyard/storage"
)

// version is set at build time.
var version = "dev"

type cli struct {
	Config kong.ConfigFlag `help:"YAML file with flags as keys; flags and environment win over it." placeholder:"FILE"`

	Serve     serveCmd     `cmd:"" help:"Run a node."`
	Bench     benchCmd     `cmd:"" help:"Measure a node, beside the limits of the machine it runs on."`
	Cluster   clusterCmd   `cmd:"" help:"See and change the cluster, as its operator."`
	Workspace workspaceCmd `cmd:"" help:"Move a workspace to another cluster, or copy it to a file and back."`
	Backup    backupCmd    `cmd:"" help:"Copy a running cluster into a directory or a bucket, and try out what is there."`
	Restore   restoreCmd   `cmd:"" help:"Make the data of a new cluster from a backup."`
	Recover   recoverCmd   `cmd:"" help:"Make the data of a new cluster from what is left of one that has lost a majority."`
	Verify    verifyCmd    `cmd:"" help:"Prove every index, counter and reference of a stopped node's data."`
	Inspect   inspectCmd   `cmd:"" help:"Show what a stopped node's data holds, shard by shard."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
	Baseline  baselineCmd  `cmd:"" hidden:"" help:"Serve an empty handler, for bench."`

	LocalCluster localClusterCmd `cmd:"" hidden:"" help:"Run several nodes on this machine, for make cluster."`
}

type versionCmd struct{}

func (versionCmd) Run() error {
	_, err := fmt.Printf("switchyard %s, formats %d to %d\n", version, storage.FormatOldest, storage.FormatNewest)
	return err
}

func main() {
	privateFiles()
	var c cli
	parser, err := kong.New(&c, options()...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "switchyard:", err)
		os.Exit(2)
	}
	ctx, err := parser.Parse(os.Args[1:])
	endIfWrong(parser, err)
	if givesWay(ctx.Command()) {
		lowerPriority()
	}
	if err := ctx.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "switchyard:", err)
		os.Exit(exitCode(err))
	}
}

// givesWay reports whether a command works with a low priority. It computes for long, often beside a node.
func givesWay(command string) bool {
	return command == "backup take" || command == "backup drill <dir>"
}

// endIfWrong ends the process if the command line is wrong. The usage goes to stderr: kong prints it where help
// goes, and the reader of stdout waits for something else.
func endIfWrong(parser *kong.Kong, err error) {
	if err != nil {
		parser.Stdout = parser.Stderr
		parser.FatalIfErrorf(err)
	}
}

// options say where the command line's values may come from: flags win over the
// environment, which wins over the configuration file.
func options() []kong.Option {
	return []kong.Option{
		kong.Name("switchyard"),
		kong.Description("Issue tracker for people and fleets of AI agents."),
		kong.UsageOnError(),
		kong.ExplicitGroups([]kong.Group{{
			Key: "Shares", Title: "Shares",
			Description: "Bounds on one caller. Their defaults depend on --memory and on who can reach the API: see docs/harden.md.",
		}}),
		kong.DefaultEnvars("SWITCHYARD"),
		kong.PostBuild(ignoreEmptyVariables), // behind the option that names them
		kong.Configuration(yamlFlags),
		kong.Vars{"default_node": cluster.DefaultNodeName, "default_shards": strconv.Itoa(cluster.DefaultShards), "scenarios": strings.Join(bench.Scenarios(), ", ")},
	}
}
