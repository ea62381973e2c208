//go:build !unix

package processors

import "time"

// Used is not known on this platform, so the process never counts as idle.
func Used() (used time.Duration, ok bool) { return 0, false }
