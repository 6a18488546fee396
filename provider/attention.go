package provider

import "time"

// AttentionCounts counts the instances that may need an operator. Each count is at most MaxAttention.
type AttentionCounts struct {
	// Blocked is the number of blocked instances, in any build.
	Blocked int
	// Deleting is the number of instances whose deletion has made no progress for two minutes.
	Deleting int
	// OldestPending is the due time of the oldest instance that the sweeper found pending: its start, or the end of its
	// delay. It is zero if no instance is pending. If more than 64 are pending, it is the oldest of 64 of them.
	OldestPending time.Time
}

// MaxAttention is the maximum of the counts of an AttentionCounts.
const MaxAttention = 1000
