package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/provider"
)

const fieldError = "error"

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
	failed, err := readError(doc, 0)
	if err != nil {
		return err
	}
	if err := t.client.FailActivity(c.ctx(), token, failed); err != nil {
		return err
	}
	return c.reply(http.StatusAccepted, struct{}{})
}

// maxCauses is the maximum number of causes below an error. A history stores as many.
const maxCauses = 8

// readError reads an error with its causes. depth is the number of errors above it.
func readError(doc json.RawMessage, depth int) (*ExternalError, error) {
	if depth > maxCauses {
		return nil, &provider.FieldError{
			Field: "cause", Problem: fmt.Sprintf("must not be nested more than %d times", maxCauses),
		}
	}
	var e ExternalError
	var cause json.RawMessage
	err := request.Object(doc, map[string]any{
		"type": &e.Type, fieldMessage: &e.Message, "nonRetryable": &e.Permanent, "details": &e.Details,
		"cause": &cause, "joined": &e.Joined,
	})
	if err == nil && cause != nil {
		e.Cause, err = readError(cause, depth+1)
	}
	return &e, err
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
	// Cause is the error that this error wraps, or nil. Joined are the types of further errors, which retry policies
	// match too.
	Cause  *ExternalError
	Joined []string
}

// Unwrap returns the cause and the joined errors.
func (f *ExternalError) Unwrap() (errs []error) {
	if f.Cause != nil {
		errs = append(errs, f.Cause)
	}
	for _, name := range f.Joined {
		errs = append(errs, &ExternalError{Type: name, Message: name})
	}
	return errs
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
