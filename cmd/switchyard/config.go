package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"switchyard/console/signin"
)

// yamlFlags reads a configuration file: a mapping from flag names, without the
// dashes in front, to values. A name no flag has is an error, so that a typo
// does not go unnoticed; a flag set in the environment wins over the file. Flags
// with the tag env:"-" are set by neither.
func yamlFlags(r io.Reader) (kong.Resolver, error) {
	values := fileResolver{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	return values, nil
}

// fileResolver has the values of flags as they are written in the file. A secret or a name of digits
// would be another text as a number.
type fileResolver map[string]yaml.Node

// commandLineOnly reports whether a flag has its value from the command line alone, by the tag env:"-".
func commandLineOnly(flag *kong.Flag) bool { return flag.Tag.Get("env") == "-" }

// Validate implements kong.Resolver.
func (f fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{} // false: only on the command line
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = known[flag.Name] || !commandLineOnly(flag)
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	for name := range f {
		switch set, there := known[name]; {
		case there && !set:
			return fmt.Errorf("configuration file: %q is set on the command line only", name)
		case !there:
			return fmt.Errorf("configuration file: no flag is called %q", name)
		}
	}
	return nil
}

// Resolve implements kong.Resolver.
func (f fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if commandLineOnly(flag) {
		return nil, nil
	}
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	value, named := f[flag.Name]
	if !named {
		return nil, nil
	}
	if texts, ok := listed(&value); ok {
		return strings.Join(texts, ","), nil
	}
	text, ok := scalar(&value)
	switch {
	case !ok:
		return nil, errors.New("the configuration file must have one value, or a list of values")
	case text == nil: // the key has no value
		return nil, nil
	}
	return *text, nil
}

// listed returns the texts of a list of values.
func listed(n *yaml.Node) (texts []string, ok bool) {
	if n.Alias != nil {
		n = n.Alias
	}
	if n.Kind != yaml.SequenceNode {
		return nil, false
	}
	for _, item := range n.Content {
		text, ok := scalar(item)
		if !ok || text == nil {
			return nil, false
		}
		texts = append(texts, *text)
	}
	return texts, true
}

// scalar returns the text of a single value; nil if it is null.
func scalar(n *yaml.Node) (text *string, ok bool) {
	if n.Alias != nil {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
		return nil, false
	}
	if n.ShortTag() == "!!null" {
		return nil, true
	}
	return &n.Value, true
}

// ignoreEmptyVariables takes an environment variable that is set to nothing for one that is not set. Service
// managers and containers pass on variables without a value, which would otherwise win over the file and the
// defaults.
func ignoreEmptyVariables(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			flag.Envs = slices.DeleteFunc(flag.Envs, func(env string) bool {
				value, set := os.LookupEnv(env)
				return set && value == ""
			})
			flag.Tag.Envs = flag.Envs
		}
		return next(nil)
	})
}

// refuseZeros refuses 0 for flags that always have a value, and where 0 means nothing else. To the node 0 is the
// default.
func (s serveCmd) refuseZeros() error {
	for _, f := range [...]struct {
		flag string
		zero bool
	}{
		{"--audit-retention", s.AuditRetention == 0}, {"--sweep-interval", s.SweepInterval == 0}, {"--stall-after", s.StallAfter == 0},
		{"--lane-life", s.LaneLife == 0}, {"--replace-after", s.ReplaceAfter == 0}, {"--console-session", s.ConsoleSession == 0},
		{"--max-active-children", s.MaxActiveChildren == 0}, {"--inbound-routes-per-workspace", s.InboundPerSpace == 0},
		{"--inbound-claims-per-key", s.InboundPerKey == 0}, {"--webhooks-per-host", s.WebhooksPerHost != nil && *s.WebhooksPerHost == 0}, {"--webhooks-max-data", s.WebhooksMaxData == 0},
	} {
		if f.zero {
			return fmt.Errorf("%s 0: must be more; without the flag it has its default", f.flag)
		}
	}
	return nil
}

// rootToken reads the operator's token: from the file, when one is named, else from
// the environment; empty when there is none.
func rootToken(file string) (string, error) {
	if file == "" {
		// A variable that is filled from a file has its line end, too.
		return strings.TrimSpace(os.Getenv("SWITCHYARD_ROOT_TOKEN")), nil
	}
	return secretOf(file, "the root token")
}

// secretOf reads a file with one secret.
func secretOf(file, what string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	secret := strings.TrimSpace(string(b))
	if secret == "" {
		return "", fmt.Errorf("read %s: %s is empty", what, file)
	}
	return secret, nil
}

// identityProvider reads the settings of the identity provider. They are empty if there is none.
func (s serveCmd) identityProvider() (signin.Config, error) {
	cfg := signin.Config{Issuer: s.OIDCIssuer, ClientID: s.OIDCClientID}
	if s.OIDCClientSecretFile == "" {
		return cfg, nil
	}
	var err error
	cfg.ClientSecret, err = secretOf(s.OIDCClientSecretFile, "the client secret of --oidc-client-secret-file")
	return cfg, err
}
