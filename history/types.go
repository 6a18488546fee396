package history

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Range is a run of event ids, both ends included. On the wire it is the pair [first,last].
type Range struct{ First, Last int64 }

// AppendID packs one more id: one that follows the last makes its run longer.
func AppendID(rs []Range, id int64) []Range {
	if n := len(rs); n > 0 && rs[n-1].Last+1 == id {
		rs[n-1].Last = id
		return rs
	}
	return append(rs, Range{First: id, Last: id})
}

// MarshalJSON writes the pair.
func (r Range) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d]", r.First, r.Last), nil
}

// UnmarshalJSON reads the pair.
func (r *Range) UnmarshalJSON(b []byte) error {
	var pair []int64
	if err := json.Unmarshal(b, &pair); err != nil {
		return fmt.Errorf("history: range: %w", err)
	}
	if len(pair) != 2 {
		return fmt.Errorf("history: range: %d numbers instead of 2", len(pair))
	}
	r.First, r.Last = pair[0], pair[1]
	return nil
}

// Failure is an error as it travels: between functions, in history, to a client.
type Failure struct {
	// Type names the error for RetryPolicy.NonRetryable and for programs; see TypeXxx for the engine's own.
	Type    string `json:"type"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
	// Ended is how something really ended whose cancel was waited for: one of the EndXxx. Empty where nobody waited.
	Ended        string   `json:"ended,omitempty"`
	NonRetryable bool     `json:"nonRetryable,omitempty"`
	Cause        *Failure `json:"cause,omitempty"`
	// Joined names the types of the other errors in it, those that are neither Type nor that of a cause: for RetryPolicy.NonRetryable, for
	// which the order of errors that are joined does not count. At most MaxJoined.
	Joined []string `json:"joined,omitempty"`
	// Expected, Got and EventID tell both sides of a nondeterminism: what history holds, what the code asked for, and where.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	EventID  int64  `json:"eventId,omitempty"`
}

// Types are the types of the errors in a failure: its own, those of its causes, and those that were joined to them. Some may come twice.
func (f *Failure) Types() iter.Seq[string] {
	return func(yield func(string) bool) {
		for ; f != nil; f = f.Cause {
			if !yield(f.Type) {
				return
			}
			for _, name := range f.Joined {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// MaxJoined bounds the names in Failure.Joined.
const MaxJoined = 32

// RetryPolicy is how an activity or child is tried again. Durations are in milliseconds.
type RetryPolicy struct {
	MaxAttempts        int      `json:"maxAttempts,omitempty"`
	InitialIntervalMs  int64    `json:"initialIntervalMs,omitempty"`
	MaxIntervalMs      int64    `json:"maxIntervalMs,omitempty"`
	BackoffCoefficient float64  `json:"backoffCoefficient,omitempty"`
	NonRetryable       []string `json:"nonRetryable,omitempty"`
	// Jitter is the part of each interval that is left to chance, up to 1. 0 is none: so it is in histories from before there was any.
	Jitter float64 `json:"jitter,omitempty"`
}

// Parent is who waits for a sub-orchestration, and for which of its events.
type Parent struct {
	InstanceID  string `json:"instanceId"`
	ExecutionID string `json:"executionId"`
	EventID     int64  `json:"eventId"`
}

// CarriedEvent is an external event that no execution has observed yet, handed on by continue-as-new.
type CarriedEvent struct {
	Name    string  `json:"name"`
	EventID string  `json:"eventId"`
	Data    Payload `json:"data,omitempty"`
}
