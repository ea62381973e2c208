package node

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// gossipKeyFile is the file that holds the key of nodes that were given none: in the
// user's configuration directory, so that all nodes a user runs on a machine have the
// same key, or in the data directory where the user has no such directory. Only that
// user can read it, and could read the nodes' data just as well.
const gossipKeyFile = "gossip-key"

// gossipKeys returns the keys that encrypt gossip and that nodes prove to each other.
// There is none for a node alone, and with --insecure-cluster where no key was given. The
// data directory must exist.
func (c Config) gossipKeys() ([][]byte, error) {
	switch {
	case c.GossipKey != "":
		return parseGossipKeys("--gossip-key", c.GossipKey)
	case c.GossipKeyFile != "":
		text, err := os.ReadFile(c.GossipKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--gossip-key-file: %w; `openssl rand -base64 32` makes a key", err)
		}
		return parseGossipKeys("--gossip-key-file "+c.GossipKeyFile, string(text))
	case !c.clustered() || c.InsecureCluster:
		return nil, nil
	}
	path, text, err := readOrMakeGossipKey(c.userDir())
	if err != nil {
		path, text, err = readOrMakeGossipKey(c.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("the key for other nodes: %w", err)
	}
	return parseGossipKeys(path, string(text))
}

// userDir returns the directory for files that a user's nodes share; empty if there is
// none.
func (c Config) userDir() string {
	if c.UserDir != "" {
		return c.UserDir
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "switchyard")
}

// readOrMakeGossipKey reads the key of a directory, which it makes if need be.
func readOrMakeGossipKey(dir string) (path string, text []byte, err error) {
	if dir == "" {
		return "", nil, errors.New("the user has no configuration directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, gossipKeyFile)
	text, err = os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text, err = makeGossipKey(path)
	}
	return path, text, err
}

// makeGossipKey writes a new key and returns the file's, which is another one if
// another node made it at the same time. The file appears when it is complete.
func makeGossipKey(path string) ([]byte, error) {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	text := append(base64.StdEncoding.AppendEncode(nil, key[:]), '\n')
	f, err := os.CreateTemp(filepath.Dir(path), gossipKeyFile+"-*") // with mode 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	// A link, unlike a rename, leaves a key that is there already.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}

// maxGossipKeys is the number of keys that a node may hold: the one that it uses, and the one
// before or the next one.
const maxGossipKeys = 2

// parseGossipKeys reads keys with commas or white space between.
func parseGossipKeys(setting, text string) (keys [][]byte, err error) {
	texts := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if len(texts) == 0 || len(texts) > maxGossipKeys {
		return nil, fmt.Errorf("%s: holds %d keys, and must hold 1, or %d while one is replaced by another", setting, len(texts), maxGossipKeys)
	}
	for _, text := range texts {
		key, err := parseGossipKey(setting, text)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 && bytes.Equal(keys[0], key) {
			return nil, fmt.Errorf("%s: holds the same key twice", setting)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseGossipKey reads a key. Its errors name the setting and don't show the key.
func parseGossipKey(setting, text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not base64; `openssl rand -base64 32` makes a key", setting)
	}
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return nil, fmt.Errorf("%s: holds %d bytes, and must hold 16, 24 or 32; `openssl rand -base64 32` makes a key", setting, n)
	}
	return key, nil
}
