//go:build !unix

package processors

import "time"

// usedTime is not known here, so the process never counts as idle.
func usedTime() (used time.Duration, ok bool) { return 0, false }
