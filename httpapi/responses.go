package httpapi

import "github.com/perdure/perdure/internal/apiwire"

// Responses that clients of the API also decode. openapi.json describes their fields.
type (
	// AcceptedResponse is the response to a call that sends a message to an instance.
	AcceptedResponse = apiwire.AcceptedResponse
	// ReadError is the reason why a part of a response is unknown.
	ReadError = apiwire.ReadError

	// Job is the state and progress of a bulk job.
	Job = apiwire.Job
	// Jobs is the list of a hub's jobs, newest first. More reports that older jobs did not fit into the response.
	Jobs = apiwire.Jobs

	// DeadLetter is a record in a dead-letter queue. Its texts are truncated to 1 KiB.
	DeadLetter = apiwire.DeadLetter
	// DeadLetterResult is the result of a redrive or drop; see admin.DeadLetterResult.
	DeadLetterResult = apiwire.DeadLetterResult

	// HeartbeatResponse is the response to a heartbeat.
	HeartbeatResponse = apiwire.HeartbeatResponse
	// Renewals contains the results of a renewal, in the order of the leases.
	Renewals = apiwire.Renewals
	// Renewal is the result of renewing one lease. Either ExpiresAt or Error is set.
	Renewal = apiwire.Renewal
	// RenewalCancel is the reason and time of an activity's cancellation.
	RenewalCancel = apiwire.RenewalCancel
	// RenewalError is the reason why a lock was not extended. The lock expires at its previous time.
	RenewalError = apiwire.RenewalError
)
