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
)

// gossipKeyFile is the file in the data directory that holds the key of a node that
// was given none. Other nodes of the machine are told of it with --gossip-key-file.
const gossipKeyFile = "gossip-key"

// gossipKey returns the key that encrypts gossip and that nodes prove to each other.
// It is nil for a node alone, and with --insecure-cluster where no key was given. The
// data directory must exist.
func (c Config) gossipKey() ([]byte, error) {
	switch {
	case c.GossipKey != "":
		return parseGossipKey("--gossip-key", c.GossipKey)
	case c.GossipKeyFile != "":
		text, err := os.ReadFile(c.GossipKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--gossip-key-file: %w; `openssl rand -base64 32` makes a key", err)
		}
		return parseGossipKey("--gossip-key-file "+c.GossipKeyFile, string(text))
	case !c.clustered() || c.InsecureCluster:
		return nil, nil
	}
	path := filepath.Join(c.Data, gossipKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text, err = makeGossipKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the key for other nodes: %w", err)
	}
	return parseGossipKey(path, string(text))
}

// makeGossipKey writes a new key. The file appears under its name when it is complete.
func makeGossipKey(path string) ([]byte, error) {
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, err
	}
	text := append(base64.StdEncoding.AppendEncode(nil, key[:]), '\n')
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(text), os.Rename(path+".new", path)
}

// parseGossipKey reads a key. Its errors name the setting and don't show the key.
func parseGossipKey(setting, text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("%s: not base64; `openssl rand -base64 32` makes a key", setting)
	}
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return nil, fmt.Errorf("%s: holds %d bytes, and must hold 16, 24 or 32; `openssl rand -base64 32` makes a key", setting, n)
	}
	return key, nil
}
