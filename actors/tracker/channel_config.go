package tracker

import (
	stdjson "encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// channelKeys are the keys that the config of each type of channel may have.
var channelKeys = map[ChannelType][]string{
	ChannelEmail:     {"emailAddress", "color"},
	ChannelChatapp1:  {"channelId", "webhookUrl", "color", "botToken", "ingestionMode"},
	ChannelChatapp2:  {"channelId", "webhookUrl", "color"},
	ChannelChatapp3:  {"channelId", "webhookUrl", "color"},
	ChannelChat:      {"widgetId", "color"},
	ChannelCapture:   {"formId", "color"},
	ChannelAPI:       {"endpoint"},
	ChannelHelpdesk1: {"appId", "accessToken", "adminId"},
	ChannelHelpdesk2: {"subdomain", "accessToken", "email"},
	ChannelHelpdesk3: {"workspaceId", "accessToken"},
}

// channelSecretKeys are the keys of secrets in any config. They are shown in the answer
// to the creation only.
var channelSecretKeys = []string{"botToken", "accessToken", "webhookUrl"}

// ingestionModes are the rules by which a chat's messages become tickets.
var ingestionModes = []string{"manual", "one_to_one", "time_based", "ai"}

// maxConfigText is the longest value in a config, in characters.
const maxConfigText = 2048

// mask returns the shown form of a secret: its last four characters, unless that is all of
// it.
func mask(secret string) string {
	const shown, least = 4, 5
	switch n := utf8.RuneCountInString(secret); {
	case n == 0:
		return ""
	case n < least:
		return "***"
	}
	end := len(secret)
	for range shown {
		_, size := utf8.DecodeLastRuneInString(secret[:end])
		end -= size
	}
	return "***" + secret[end:]
}

// ignoresKey reports whether a key is not one of a type's config. It is ignored in requests, as
// other unknown properties are (Decision 3).
func ignoresKey(t ChannelType, key string) bool { return !slices.Contains(channelKeys[t], key) }

// isChannelKey reports whether a key is one of some type's config.
func isChannelKey(key string) bool {
	for _, keys := range channelKeys {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// configFaults adds the faults of a config for a type of channel, from which the ignored
// keys were removed.
func configFaults(t ChannelType, config map[string]string, faults *Faults) {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		path := "config." + key
		switch value := config[key]; {
		case faults.Has(path):
		case ignoresKey(t, key):
			faults.Add(path, "Is not part of the config of the type "+string(t)+".")
		case utf8.RuneCountInString(value) > maxConfigText:
			faults.Add(path, fmt.Sprintf("Must be at most %d characters long.", maxConfigText))
		case key == "ingestionMode" && !slices.Contains(ingestionModes, value):
			faults.Add(path, "Must be one of "+strings.Join(ingestionModes, ", ")+".")
		}
	}
}

// splitConfig separates the secrets of a config from the rest, in which it leaves their
// masks.
func splitConfig(config map[string]string) (shown, secrets map[string]string) {
	shown, secrets = map[string]string{}, map[string]string{}
	for key, value := range config {
		if slices.Contains(channelSecretKeys, key) {
			secrets[key] = value
			value = mask(value)
		}
		shown[key] = value
	}
	return shown, secrets
}

// joinConfig returns a config with its secrets in full.
func joinConfig(shown, secrets map[string]string) map[string]string {
	whole := maps.Clone(shown)
	if whole == nil {
		whole = map[string]string{}
	}
	maps.Copy(whole, secrets)
	return whole
}

// configPatch is a change of a config: a value replaces, null removes.
type configPatch map[string]*string

// readConfigPatch decodes the object of a PATCH.
func readConfigPatch(raw []byte, faults *Faults) configPatch {
	patch := configPatch{}
	err := eachProperty(raw, func(key string, raw []byte) error {
		var value *string
		if err := stdjson.Unmarshal(raw, &value); err != nil {
			faults.Add("config."+key, "Must be a string, or null to take it away.")
		} else if isChannelKey(key) {
			patch[key] = value
		}
		return nil
	})
	if err != nil {
		faults.Add("config", "Must be an object.")
		return nil
	}
	return patch
}

// apply changes a config that has its secrets in full. A secret that equals its own
// mask stays, so that a client can send back what it has read.
func (p configPatch) apply(t ChannelType, config map[string]string) {
	for key, value := range p {
		switch {
		case ignoresKey(t, key):
		case value == nil:
			delete(config, key)
		case slices.Contains(channelSecretKeys, key) && config[key] != "" && *value == mask(config[key]):
		default:
			config[key] = *value
		}
	}
}
