package history

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Range is a run of event ids, both ends included. On the wire it is the pair [first,last].
type Range struct{ First, Last int64 }

// AppendID adds an id: one that follows the last extends its range.
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
	r.First = pair[0]
	r.Last = pair[1]
	return nil
}

// Failure is an error as it is passed between functions, in history, and to a client.
type Failure struct {
	// Type names the error for RetryPolicy.NonRetryable and for programs; TypeXxx are the engine's own.
	Type    string `json:"type"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
	// Ended is how something really ended whose cancel was waited for: one of the EndXxx. Empty where it was not waited
	// for.
	Ended        string   `json:"ended,omitempty"`
	NonRetryable bool     `json:"nonRetryable,omitempty"`
	Cause        *Failure `json:"cause,omitempty"`
	// Joined names the types of the other errors in it, those that are neither Type nor that of a cause. They serve
	// RetryPolicy.NonRetryable, for which the order of joined errors does not matter. At most MaxJoined.
	Joined []string `json:"joined,omitempty"`
	// Details is the value that the program gave the error with perdure.WithDetails, as JSON: at most MaxFailureDetails, before a codec. DetailsOmitted says
	// why there is none where one was given; it is empty otherwise.
	Details        Payload `json:"details,omitempty"`
	DetailsOmitted string  `json:"detailsOmitted,omitempty"`
	// Expected, Got and EventID describe a nondeterminism: what history holds, what the code asked for, and where.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	EventID  int64  `json:"eventId,omitempty"`
}

// Types yields the types of the errors in a failure: its own, those of its causes, and those that were joined to them.
// A type may occur twice.
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
	// Jitter is the random part of each interval, up to 1. 0 is none, as in histories from before there was jitter.
	Jitter float64 `json:"jitter,omitempty"`
}

// Parent is the instance that waits for a sub-orchestration, and the event that scheduled it.
type Parent struct {
	InstanceID  string `json:"instanceId"`
	ExecutionID string `json:"executionId"`
	EventID     int64  `json:"eventId"`
}

// CarriedEvent is an external event that no execution has received yet, passed on by continue-as-new.
type CarriedEvent struct {
	Name    string  `json:"name"`
	EventID string  `json:"eventId"`
	Data    Payload `json:"data,omitempty"`
}
