package membership

import "fmt"

// maxNodeName is the longest node name, in bytes: a DNS label, as pods have.
const maxNodeName = 63

// CheckNodeName refuses names that do not fit into logs, addresses and gossip.
func CheckNodeName(name string) error {
	ok := name != "" && len(name) <= maxNodeName
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}
	if !ok {
		return fmt.Errorf("cluster: %q is not a valid node name; use 1 to %d letters, digits, '-', '_' or '.'", name, maxNodeName)
	}
	return nil
}
