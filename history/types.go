package history

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Range is a range of event IDs from First to Last, inclusive. In JSON it is the pair [first,last].
type Range struct{ First, Last int64 }

// AppendID appends an ID to rs. It extends the last range if the ID follows it.
func AppendID(rs []Range, id int64) []Range {
	if n := len(rs); n > 0 && rs[n-1].Last+1 == id {
		rs[n-1].Last = id
		return rs
	}
	return append(rs, Range{First: id, Last: id})
}

// MarshalJSON encodes the range as a pair.
func (r Range) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "[%d,%d]", r.First, r.Last), nil
}

// UnmarshalJSON decodes a pair.
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

// Failure is an error in the form that histories store, messages carry and clients receive.
type Failure struct {
	// Type is the type name of the error. It is one of the Type constants or a type of your code.
	// RetryPolicy.NonRetryableErrorTypes compares it.
	Type    string `json:"type"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
	// CancelOutcome is the outcome of cancelled work with WaitForCancellation. It is one of the Outcome constants.
	// Otherwise it is empty.
	CancelOutcome string   `json:"ended,omitempty"`
	NonRetryable  bool     `json:"nonRetryable,omitempty"`
	Cause         *Failure `json:"cause,omitempty"`
	// Joined are the types of joined errors other than Type and the types of the causes, for
	// RetryPolicy.NonRetryableErrorTypes. It has at most MaxJoined entries.
	Joined []string `json:"joined,omitempty"`
	// Details are the details of perdure.WithErrorDetails, as JSON of at most MaxFailureDetailsBytes before encoding.
	// If the error had details that were dropped, DetailsOmitted is the reason.
	Details        Payload `json:"details,omitempty"`
	DetailsOmitted string  `json:"detailsOmitted,omitempty"`
	// Expected, Got and EventID describe a nondeterminism. They are the decision in the history, the decision of the
	// code, and the event.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	EventID  int64  `json:"eventId,omitempty"`
}

// Types yields the types of the failure, of its causes, and of the errors joined to them. A type can occur twice.
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

// MaxJoined is the maximum number of names in Failure.Joined.
const MaxJoined = 32

// RetryPolicy is the retry policy of an activity or sub-orchestration. Durations are in milliseconds.
type RetryPolicy struct {
	MaxAttempts        int      `json:"maxAttempts,omitempty"`
	InitialIntervalMs  int64    `json:"initialIntervalMs,omitempty"`
	MaxIntervalMs      int64    `json:"maxIntervalMs,omitempty"`
	BackoffCoefficient float64  `json:"backoffCoefficient,omitempty"`
	NonRetryable       []string `json:"nonRetryable,omitempty"`
	// Jitter is the random part of each interval, up to 1. 0 means no jitter.
	Jitter float64 `json:"jitter,omitempty"`
}

// Parent identifies the instance that waits for a sub-orchestration, and the event that scheduled it.
type Parent struct {
	InstanceID  string `json:"instanceId"`
	ExecutionID string `json:"executionId"`
	EventID     int64  `json:"eventId"`
}

// CarriedEvent is an unconsumed external event that a continue-as-new passes to the next execution.
type CarriedEvent struct {
	Name    string  `json:"name"`
	EventID string  `json:"eventId"`
	Data    Payload `json:"data,omitempty"`
}
