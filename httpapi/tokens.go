package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/provider"
)

const fieldError = "error"

// HeartbeatResponse is the response to a heartbeat.
type HeartbeatResponse struct {
	// Cancel is set if the activity is cancelled. The caller should stop, and complete or fail the attempt.
	Cancel *RenewalCancel `json:"cancel,omitempty"`
}

// Requests contain tokens in their bodies, because gateways log paths.

func (t tokens) complete(c *call) error {
	var token string
	result := json.RawMessage("null")
	if err := c.body(map[string]any{problem.FieldToken: &token, "result": &result}); err != nil {
		return err
	}
	if err := t.client.CompleteActivity(c.ctx(), token, result); err != nil {
		return err
	}
	return c.reply(http.StatusAccepted, struct{}{})
}

func (t tokens) fail(c *call) error {
	var token string
	var doc json.RawMessage
	if err := c.body(map[string]any{problem.FieldToken: &token, fieldError: &doc}); err != nil {
		return err
	}
	if doc == nil {
		return &provider.FieldError{Field: fieldError, Problem: "is required"}
	}
	var failed ExternalError
	if err := request.Object(doc,
		map[string]any{
			"type": &failed.Type, fieldMessage: &failed.Message, "nonRetryable": &failed.Permanent,
			"details": &failed.Details,
		}); err != nil {
		return err
	}
	if err := t.client.FailActivity(c.ctx(), token, &failed); err != nil {
		return err
	}
	return c.reply(http.StatusAccepted, struct{}{})
}

func (t tokens) heartbeat(c *call) error {
	var token string
	var details json.RawMessage
	if err := c.body(map[string]any{problem.FieldToken: &token, "details": &details}); err != nil {
		return err
	}
	var given any
	if details != nil {
		given = details
	}
	cancel, err := t.client.HeartbeatActivity(c.ctx(), token, given)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, NewHeartbeatResponse(cancel))
}

// NewHeartbeatResponse returns the response to a heartbeat.
func NewHeartbeatResponse(cancel provider.CancelInfo) (b HeartbeatResponse) {
	if cancel.Requested {
		b.Cancel = &RenewalCancel{
			Reason: cancel.Reason, Message: cancel.Message,
			RequestedAt: cancel.RequestedAt.UTC().Truncate(time.Millisecond),
		}
	}
	return b
}

// ExternalError is an error that a program in another language reports for an attempt. Pass it to
// client.Client.FailActivity.
type ExternalError struct {
	// Type is the type that orchestrations and retry policies match. If it is empty, the type is "error".
	Type, Message string
	// Permanent reports that retry policies must not retry.
	Permanent bool
	// Details are JSON details of the error (perdure.WithErrorDetails). nil and null mean none.
	Details json.RawMessage
}

// As makes the details available to perdure.ErrorDetails.
func (f *ExternalError) As(target any) bool {
	if len(f.Details) == 0 || string(f.Details) == "null" {
		return false
	}
	return errdetails.As(target, errdetails.Encode(f.Details), nil)
}

// Error returns the message.
func (f *ExternalError) Error() string { return f.Message }

// ErrorType returns the type that histories record.
func (f *ExternalError) ErrorType() string {
	if f.Type == "" {
		return "error"
	}
	return f.Type
}

// NonRetryable returns Permanent.
func (f *ExternalError) NonRetryable() bool { return f.Permanent }
