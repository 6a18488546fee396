// Package problem defines the error responses of the HTTP API (RFC 9457), and maps errors to them.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// Codes of problems, for programs. Codes are never changed or removed.
const (
	codeInvalidRequest       = "invalid_request"
	codeNoRoute              = "no_such_route"
	codeMethod               = "method_not_allowed"
	codeUnknownOrchestration = "unknown_orchestration"
	codeInstanceNotFound     = "instance_not_found"
	codeExecutionNotFound    = "execution_not_found"
	codeActivityNotFound     = "activity_not_found"
	codeJobNotFound          = "job_not_found"
	codeNoDeadLetters        = "no_dead_letters"
	codeDeadLetterNotFound   = "dead_letter_not_found"
	codeInstanceIDInUse      = "instance_id_in_use"
	codeInstanceOver         = "instance_over"
	codeInstanceNotOver      = "instance_not_over"
	codeNotesUnsupported     = "notes_unsupported"
	codeNotCancellable       = "not_cancellable"
	codePayloadTooLarge      = "payload_too_large"
	codeAnswerTooLarge       = "answer_too_large"
	codeMediaType            = "unsupported_media_type"
	codeCorruptHistory       = "corrupt_history"
	codeUnavailable          = "unavailable"
	codeInternal             = "internal"
)

// Names of fields in problems that handlers also use.
const (
	FieldInstanceID     = "instanceId"
	FieldScheduleID     = "scheduleId"
	FieldActivityID     = "activityId"
	FieldJobID          = "jobId"
	FieldDeadLetterID   = "deadLetterId"
	FieldOrchestration  = "orchestration"
	FieldEntity         = "entity"
	FieldKey            = "key"
	FieldExecution      = "execution"
	FieldQuery          = "query"
	FieldUpdate         = "update"
	FieldInput          = "input"
	FieldData           = "data"
	FieldToken          = "token"
	FieldPath           = "path"
	FieldBody           = "body"
	FieldIdempotencyKey = "Idempotency-Key"
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
	// Details are the details of an error that the instance's code returned.
	Details json.RawMessage `json:"details,omitempty"`
	// Existing is the instance that uses the ID of a start.
	Existing *existing `json:"existing,omitempty"`
}

// existing describes the instance that uses the ID of a start.
type existing struct {
	Orchestration string               `json:"orchestration"`
	Status        client.RuntimeStatus `json:"status"`
	CreatedAt     time.Time            `json:"createdAt"`
}

// Error implements error, so that a handler can return a problem.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

// Problems of requests that reach no operation.
var (
	ErrNoRoute = &Problem{
		Status: http.StatusNotFound, Code: codeNoRoute,
		Detail: "unknown path; see GET /v1/openapi.json. An id with a slash is sent as ~ and its base64url without " +
			"padding",
	}
	ErrMediaType = &Problem{
		Status: http.StatusUnsupportedMediaType, Code: codeMediaType, Field: "Content-Type",
		Detail: "a request with a body requires the header Content-Type: application/json and UTF-8",
	}
	ErrMethod = &Problem{
		Status: http.StatusMethodNotAllowed, Code: codeMethod,
		Detail: "method not allowed for this path; see the Allow header and GET /v1/openapi.json",
	}
)

// Problems that handlers return.
var (
	// ErrExecutionNotFound also applies to an instance that is being purged, because a purge deletes the executions
	// before the instance.
	ErrExecutionNotFound = &Problem{
		Status: http.StatusNotFound, Code: codeExecutionNotFound, Field: FieldExecution,
		Detail: "execution not found, or the instance is being deleted",
	}
	ErrJobNotFound = &Problem{
		Status: http.StatusNotFound, Code: codeJobNotFound, Field: FieldJobID, Detail: "job not found",
	}
	ErrDeadLetterNotFound = &Problem{
		Status: http.StatusNotFound, Code: codeDeadLetterNotFound, Field: FieldDeadLetterID, Retryable: true,
		Detail: "no dead letter with this id is visible; the sweeper or another call may hide it for a minute",
	}
)

// Internal is the problem of an error whose cause is only in the log.
var Internal = Problem{
	Status: http.StatusInternalServerError, Code: codeInternal, Detail: "internal error; see the log of the API",
}

// SlashedID returns the problem of a path without a route because a gateway decoded a slash in an ID. The status is not
// 404, because a program would interpret 404 as a missing instance.
func SlashedID(encoded string) error {
	return &Problem{
		Status: http.StatusBadRequest, Code: codeNoRoute, Field: FieldPath, Detail: ErrNoRoute.Detail + ": " + encoded,
	}
}

// BodyTooLarge returns the problem of a body that exceeds the limit.
func BodyTooLarge(limit int) error {
	return &Problem{
		Status: http.StatusRequestEntityTooLarge, Code: codePayloadTooLarge, Field: FieldBody,
		Detail: fmt.Sprintf("body exceeds %d bytes; an input may have %d bytes", limit, perdure.MaxPayloadBytes),
	}
}

// AnswerTooLarge returns the problem of a response that exceeds the limit, with another way to get its content.
func AnswerTooLarge(field, what string, size, limit int, instead string) error {
	return &Problem{
		Status: http.StatusUnprocessableEntity, Code: codeAnswerTooLarge, Field: field,
		Detail: fmt.Sprintf("%s has %d bytes, more than the response limit of %d; %s", what, size, limit, instead),
	}
}

// Of returns the problem for an error. The problem contains the text of the error only if the text is about the
// caller's input.
func Of(err error) Problem {
	var (
		known    *Problem
		field    *provider.FieldError
		tooLarge *perdure.PayloadTooLargeError
		token    *client.TokenError
	)
	if p, ok := ofQuery(err); ok {
		return p
	}
	if p, ok := ofUpdate(err); ok {
		return p
	}
	switch {
	case errors.As(err, &known):
		return *known
	case errors.As(err, &token):
		return ofToken(token)
	case errors.As(err, &field):
		return Problem{
			Status: http.StatusBadRequest, Code: codeInvalidRequest, Detail: field.Error(), Field: field.Field,
		}
	case errors.As(err, &tooLarge):
		return Problem{
			Status: http.StatusRequestEntityTooLarge, Code: codePayloadTooLarge, Detail: tooLarge.Error(),
			Field: tooLarge.Name,
		}
	case errors.Is(err, client.ErrAlreadyExists):
		return ofIDInUse(err)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.problem
		}
	}
	return OfServer(err)
}

// sentinels maps errors without further data to problems. The first match applies.
var sentinels = []struct {
	err     error
	problem Problem
}{
	{client.ErrUnknownOrchestration, Problem{
		Status: http.StatusNotFound, Code: codeUnknownOrchestration, Field: FieldOrchestration,
		Detail: "no deployed build has this orchestration in this version; a new deployment takes a few seconds " +
			"to become visible",
	}},
	{client.ErrEnded, Problem{
		Status: http.StatusGone, Code: codeInstanceOver, Detail: "instance has ended", Field: FieldInstanceID,
	}},
	{client.ErrNotEnded, Problem{
		Status: http.StatusConflict, Code: codeInstanceNotOver, Field: FieldInstanceID,
		Detail: "instance has not ended; cancel or terminate it first, or purge it with force=true",
	}},
	{client.ErrNotCancellable, Problem{
		Status: http.StatusConflict, Code: codeNotCancellable, Field: FieldActivityID,
		Detail: "activity is neither pending nor running",
	}},
	{provider.UnsupportedError{Capability: provider.CapabilityAnnotations}, Problem{
		Status: http.StatusConflict, Code: codeNotesUnsupported, Detail: "the provider of the hub has no notes",
	}},
	{admin.ErrDeadLettersUnsupported, Problem{
		Status: http.StatusNotFound, Code: codeNoDeadLetters,
		Detail: "this API has no access to dead letters; grant it with DeadLetters in the stack, or use the " +
			"command perdure dead-letters",
	}},
	{client.ErrActivityNotFound, Problem{
		Status: http.StatusNotFound, Code: codeActivityNotFound, Field: FieldActivityID,
		Detail: "activity not found in the current execution of the instance",
	}},
	{client.ErrNotFound, Problem{
		Status: http.StatusNotFound, Code: codeInstanceNotFound, Detail: "instance not found", Field: FieldInstanceID,
	}},
}

// ofIDInUse returns the problem of a start whose ID is in use.
func ofIDInUse(err error) Problem {
	if errors.Is(err, client.ErrPurged) {
		return Problem{
			Status: http.StatusConflict, Code: codeInstanceIDInUse, Field: FieldIdempotencyKey,
			Detail: "the instance of an earlier start with this key was purged; nothing was changed; use another key " +
				"for a new start",
		}
	}
	p := Problem{
		Status: http.StatusConflict, Code: codeInstanceIDInUse, Detail: "instance id is in use", Field: FieldInstanceID,
	}
	if taken, ok := errors.AsType[*client.AlreadyExistsError](err); ok && taken.Holder() != "" {
		p.Detail += ": " + taken.Holder()
		p.Existing = &existing{
			Orchestration: taken.Orchestration, Status: taken.Status, CreatedAt: taken.CreatedAt.UTC(),
		}
	}
	return p
}

// OfServer returns the problem for an error that the caller did not cause.
func OfServer(err error) Problem {
	var failed *provider.Error
	switch {
	case errors.As(err, &failed) && failed.Retryable, errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled):
		return Problem{
			Status: http.StatusServiceUnavailable, Code: codeUnavailable, Retryable: true,
			Detail: "no response from the task hub in time; try again",
		}
	case errors.Is(err, provider.ErrCorrupt):
		return Problem{
			Status: http.StatusInternalServerError, Code: codeCorruptHistory,
			Detail: "history of this instance cannot be read; DELETE with force=true works without it",
		}
	default:
		return Internal
	}
}
