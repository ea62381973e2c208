package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"switchyard/console/signin"
)

// yamlFlags reads a configuration file: a mapping from flag names, without the
// dashes in front, to values. A name no flag has is an error, so that a typo
// does not go unnoticed; a flag set in the environment wins over the file.
func yamlFlags(r io.Reader) (kong.Resolver, error) {
	values := map[string]any{}
	if err := yaml.NewDecoder(r).Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the configuration file: %w", err)
	}
	return fileResolver(values), nil
}

type fileResolver map[string]any

// Validate implements kong.Resolver.
func (f fileResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = true
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	for name := range f {
		if !known[name] {
			return fmt.Errorf("configuration file: no flag is called %q", name)
		}
	}
	return nil
}

// Resolve implements kong.Resolver.
func (f fileResolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	value := f[flag.Name]
	if value == nil { // the file does not name the flag, or gives it no value
		return nil, nil
	}
	if list, ok := value.([]any); ok {
		return commaSeparated(list), nil
	}
	return fmt.Sprint(value), nil
}

// commaSeparated is a list as a flag takes it.
func commaSeparated(list []any) string {
	texts := make([]string, 0, len(list))
	for _, v := range list {
		texts = append(texts, fmt.Sprint(v))
	}
	return strings.Join(texts, ",")
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
