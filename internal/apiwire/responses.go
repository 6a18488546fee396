package apiwire

import (
	"time"

	"github.com/perdure/perdure/provider"
)

// AcceptedResponse is the response to a call that sends a message to an instance.
type AcceptedResponse struct {
	InstanceID string `json:"instanceId"`
	// NotPaused reports that the status of a resumed instance was not Paused. The call also ends a pause that has not
	// arrived yet.
	NotPaused bool `json:"notPaused,omitempty"`
}

// ReadError is the reason why a part of a response is unknown.
type ReadError struct {
	// Code is the code of a problem.
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Retryable reports whether the same call can succeed later.
	Retryable bool `json:"retryable"`
}

// Job is the state and progress of a bulk job.
type Job struct {
	JobID     string             `json:"jobId"`
	Operation provider.Operation `json:"operation"`
	Filter    provider.Filter    `json:"filter"`
	Force     bool               `json:"force"`
	Message   string             `json:"message,omitempty"`
	// RequestedBy is the caller that created the job. It is empty if unknown.
	RequestedBy string            `json:"requestedBy,omitempty"`
	State       provider.JobState `json:"state"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
	Matched     int64             `json:"matched"`
	Done        int64             `json:"done"`
	Skipped     int64             `json:"skipped"`
	Failed      int64             `json:"failed"`
	Errors      []string          `json:"errors"`
}

// Jobs is the list of a hub's jobs, newest first. More reports that older jobs did not fit into the response.
type Jobs struct {
	Items []Job `json:"items"`
	More  bool  `json:"more,omitempty"`
}

// DeadLetter is a record in a dead-letter queue. Its texts are truncated to 1 KiB.
type DeadLetter struct {
	Queue      string    `json:"queue"`
	ID         string    `json:"id"`
	Reason     string    `json:"reason,omitempty"`
	SentAt     time.Time `json:"sentAt,omitzero"`
	Deliveries int       `json:"deliveries"`
	provider.Subject
	// Body is the record's body as JSON, or as text if it is not JSON. Lists do not include it.
	Body any `json:"body,omitempty"`
}

// DeadLetterResult is the result of a redrive or drop; see admin.DeadLetterResult. Errors are the errors of the dead
// letters that failed.
type DeadLetterResult struct {
	Done           int64    `json:"done"`
	Skipped        int64    `json:"kept"`
	TooRecent      int64    `json:"later"`
	Failed         int64    `json:"failed"`
	SentNotDeleted []string `json:"sent"`
	Complete       bool     `json:"complete"`
	Errors         []string `json:"errors"`
}

// HeartbeatResponse is the response to a heartbeat.
type HeartbeatResponse struct {
	// Cancel is set if the activity is cancelled. The caller should stop, and complete or fail the attempt.
	Cancel *RenewalCancel `json:"cancel,omitempty"`
}

// Renewals contains the results of a renewal, in the order of the leases.
type Renewals struct {
	Leases []Renewal `json:"leases"`
}

// Renewal is the result of renewing one lease. Either ExpiresAt or Error is set.
type Renewal struct {
	// ExpiresAt is the earliest time at which the message becomes visible again.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Cancel is set if the activity is cancelled. Its worker should stop and delete the message.
	Cancel *RenewalCancel `json:"cancel,omitempty"`
	// CancelUnknown reports that the cancellation could not be read this time.
	CancelUnknown bool          `json:"cancelUnknown,omitempty"`
	Error         *RenewalError `json:"error,omitempty"`
}

// RenewalCancel is the reason and time of an activity's cancellation.
type RenewalCancel struct {
	Reason      string    `json:"reason"`
	Message     string    `json:"message,omitempty"`
	RequestedAt time.Time `json:"requestedAt"`
}

// RenewalError is the reason why a lock was not extended. The lock expires at its previous time.
type RenewalError ReadError
