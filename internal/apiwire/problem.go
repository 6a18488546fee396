package apiwire

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Problem is the body of the response to a failed call (RFC 9457).
type Problem struct { //nolint:errname // the name in RFC 9457
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Code      string `json:"code"`
	Retryable bool   `json:"retryable"` // the same call may succeed later
	Field     string `json:"field,omitempty"`
	// Details are the details of an error that the instance's code returned, and Failure is the whole error.
	Details json.RawMessage  `json:"details,omitempty"`
	Failure *history.Failure `json:"failure,omitempty"`
	// Known holds the queries that the code has handlers for, if it has none for the query of the call.
	Known []string `json:"known,omitempty"`
	// Existing is the instance that uses the ID of a start.
	Existing *Existing `json:"existing,omitempty"`
	// Attempt is the attempt of a token that is not accepted.
	Attempt *Attempt `json:"attempt,omitempty"`
	// Size is the size of a payload that is too large.
	Size *Size `json:"size,omitempty"`
}

// Existing describes the instance that has the ID of a start.
type Existing struct {
	Orchestration string                 `json:"orchestration"`
	Status        provider.RuntimeStatus `json:"status"`
	CreatedAt     time.Time              `json:"createdAt"`
}

// Attempt describes the attempt of a completion token. Its fields are those of client.TokenError.
type Attempt struct {
	Hub            string `json:"hub,omitempty"`
	InstanceID     string `json:"instanceId,omitempty"`
	ExecutionID    string `json:"executionId,omitempty"`
	ActivityID     int64  `json:"activityId,omitempty"`
	Attempt        int    `json:"attempt,omitempty"`
	CurrentAttempt int    `json:"currentAttempt,omitempty"`
}

// Size has the size of a payload and its limit in bytes.
type Size struct {
	Bytes int `json:"bytes"`
	Limit int `json:"limit"`
}

// Error implements error, so that a handler can return a problem.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }
