//go:build !unix

package measure

import "time"

// OwnCPU returns 0: it is not known here.
func OwnCPU() time.Duration { return 0 }
