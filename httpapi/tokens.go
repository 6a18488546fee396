package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/provider"
)

// The calls of whoever holds the token of an activity's attempt. It travels in the body: what is in a path is in logs.

const (
	fieldToken   = "token"
	fieldDetails = "details"
)

// HeartbeatResponse is the response to a heartbeat.
type HeartbeatResponse struct {
	// Cancel is set if the activity is cancelled. The caller should stop, and complete or fail the attempt.
	Cancel *RenewalCancel `json:"cancel,omitempty"`
}

// ended is the answer to a call that ends an attempt: there is nothing to say.
type ended struct{}

func tokenRoutes() []route {
	return []route{
		{http.MethodPost, "/v1/activities/complete", nil, completeActivity},
		{http.MethodPost, "/v1/activities/fail", nil, failActivity},
		{http.MethodPost, "/v1/activities/heartbeat", nil, beatActivity},
	}
}

func completeActivity(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	var token string
	result := json.RawMessage("null")
	if err := readBody(w, r, map[string]any{fieldToken: &token, "result": &result}); err != nil {
		return err
	}
	if err := h.client.CompleteActivity(r.Context(), token, result); err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, ended{})
}

func failActivity(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	var token string
	var doc json.RawMessage
	if err := readBody(w, r, map[string]any{fieldToken: &token, fieldError: &doc}); err != nil {
		return err
	}
	if doc == nil {
		return &provider.FieldError{Field: fieldError, Problem: "is required"}
	}
	var failed ExternalError
	if err := readObject(doc,
		map[string]any{
			"type": &failed.Type, fieldMessage: &failed.Message, "nonRetryable": &failed.Permanent,
			fieldDetails: &failed.Details,
		}); err != nil {
		return err
	}
	if err := h.client.FailActivity(r.Context(), token, &failed); err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, ended{})
}

func beatActivity(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	var token string
	var details json.RawMessage
	if err := readBody(w, r, map[string]any{fieldToken: &token, fieldDetails: &details}); err != nil {
		return err
	}
	var given any
	if details != nil {
		given = details
	}
	cancel, err := h.client.HeartbeatActivity(r.Context(), token, given)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, NewHeartbeatResponse(cancel))
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

// As finds the details. Use perdure.ErrorDetails to read them.
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

// tokenProblem is what the holder of a token that does nothing is sent.
func tokenProblem(e *client.TokenError) problem {
	status := http.StatusConflict
	switch e.Reason {
	case client.TokenInvalid, client.TokenWrongHub:
		status = http.StatusBadRequest
	case client.TokenExecutionEnded:
		status = http.StatusGone
	case client.TokenSuperseded, client.TokenActivityEnded:
	}
	return problem{Status: status, Code: string(e.Reason), Detail: e.Error(), Field: fieldToken}
}
