package provider

import "time"

// Attention says how many instances may need a person. Each number stops at MaxAttention: that there are some is what
// counts.
type Attention struct {
	// Blocked is the number of instances that are blocked, in whichever build.
	Blocked int
	// Deleting is the number of instances whose deletion has made no progress for two minutes.
	Deleting int
	// OldestPending is when the oldest instance that the watch found pending was to begin: it was started then, or its
	// delay ended. Zero where none is pending. Where more than 64 are pending it is the oldest of 64 of them.
	OldestPending time.Time
}

// MaxAttention is where the numbers of an Attention stop.
const MaxAttention = 1000
