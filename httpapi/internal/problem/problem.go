// Package problem defines the error responses of the HTTP API (RFC 9457), and maps errors to them.
package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
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
	FieldIdempotencyKey = apiwire.HeaderIdempotencyKey
)

// Problem is the body of the response to a failed call (RFC 9457).
type Problem = apiwire.Problem //nolint:errname // the name in RFC 9457

// Problems of requests that reach no operation.
var (
	ErrNoRoute = &Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeNoRoute,
		Detail: "unknown path; see GET /v1/openapi.json. An id with a slash is sent as ~ and its base64url without " +
			"padding",
	}
	ErrMediaType = &Problem{
		Status: http.StatusUnsupportedMediaType, Code: apiwire.CodeMediaType, Field: "Content-Type",
		Detail: "a request with a body requires the header Content-Type: application/json and UTF-8",
	}
	ErrMethod = &Problem{
		Status: http.StatusMethodNotAllowed, Code: apiwire.CodeMethod,
		Detail: "method not allowed for this path; see the Allow header and GET /v1/openapi.json",
	}
)

// Problems that handlers return.
var (
	// ErrExecutionNotFound also applies to an instance that is being purged, because a purge deletes the executions
	// before the instance.
	ErrExecutionNotFound = &Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeExecutionNotFound, Field: FieldExecution,
		Detail: "execution not found, or the instance is being deleted",
	}
	ErrJobNotFound = &Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeJobNotFound, Field: FieldJobID, Detail: "job not found",
	}
	ErrDeadLetterNotFound = &Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeDeadLetterNotFound, Field: FieldDeadLetterID, Retryable: true,
		Detail: "no dead letter with this id is visible; the sweeper or another call may hide it for a minute",
	}
)

// Internal is the problem of an error whose cause is only in the log.
var Internal = Problem{
	Status: http.StatusInternalServerError, Code: apiwire.CodeInternal,
	Detail: "internal error; see the log of the API",
}

// SlashedID returns the problem of a path without a route, possibly because a gateway decoded a slash in an ID. Its
// code differs from that of a missing instance.
func SlashedID(encoded string) error {
	return &Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeNoRoute, Field: FieldPath,
		Detail: ErrNoRoute.Detail + ": " + encoded,
	}
}

// BodyTooLarge returns the problem of a body that exceeds the limit.
func BodyTooLarge(limit int) error {
	return &Problem{
		Status: http.StatusRequestEntityTooLarge, Code: apiwire.CodePayloadTooLarge, Field: FieldBody,
		Detail: fmt.Sprintf("body exceeds %d bytes; an input may have %d bytes", limit, perdure.MaxPayloadBytes),
	}
}

// ResponseTooLarge returns the problem of a response that exceeds the limit, with another way to get its content.
func ResponseTooLarge(field, what string, size, limit int, instead string) error {
	return &Problem{
		Status: http.StatusUnprocessableEntity, Code: apiwire.CodeResponseTooLarge, Field: field,
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
			Status: http.StatusBadRequest, Code: apiwire.CodeInvalidRequest, Detail: field.Error(), Field: field.Field,
		}
	case errors.As(err, &tooLarge):
		return Problem{
			Status: http.StatusRequestEntityTooLarge, Code: apiwire.CodePayloadTooLarge, Detail: tooLarge.Error(),
			Field: tooLarge.Name, Size: &apiwire.Size{Bytes: tooLarge.Bytes, Limit: tooLarge.Limit},
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
		Status: http.StatusNotFound, Code: apiwire.CodeUnknownOrchestration, Field: FieldOrchestration,
		Detail: "no deployed build has this orchestration in this version; a new deployment takes a few seconds " +
			"to become visible",
	}},
	{client.ErrEnded, Problem{
		Status: http.StatusGone, Code: apiwire.CodeInstanceOver, Detail: "instance has ended", Field: FieldInstanceID,
	}},
	{client.ErrNotEnded, Problem{
		Status: http.StatusConflict, Code: apiwire.CodeInstanceNotOver, Field: FieldInstanceID,
		Detail: "instance has not ended; cancel or terminate it first, or purge it with force=true",
	}},
	{client.ErrNotCancellable, Problem{
		Status: http.StatusConflict, Code: apiwire.CodeNotCancellable, Field: FieldActivityID,
		Detail: "activity is neither pending nor running",
	}},
	{provider.UnsupportedError{Capability: provider.CapabilityAnnotations}, Problem{
		Status: http.StatusConflict, Code: apiwire.CodeNotesUnsupported, Detail: "the provider of the hub has no notes",
	}},
	{admin.ErrDeadLettersUnsupported, Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeNoDeadLetters,
		Detail: "this API has no access to dead letters; grant it with DeadLetters in the stack, or use the " +
			"command perdure dead-letters",
	}},
	{client.ErrActivityNotFound, Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeActivityNotFound, Field: FieldActivityID,
		Detail: "activity not found in the current execution of the instance",
	}},
	{client.ErrNotFound, Problem{
		Status: http.StatusNotFound, Code: apiwire.CodeInstanceNotFound, Field: FieldInstanceID,
		Detail: "instance not found",
	}},
}

// ofIDInUse returns the problem of a start whose ID is in use.
func ofIDInUse(err error) Problem {
	if errors.Is(err, client.ErrPurged) {
		return Problem{
			Status: http.StatusConflict, Code: apiwire.CodeInstanceIDInUse, Field: FieldIdempotencyKey,
			Detail: "the instance of an earlier start with this key was purged; nothing was changed; use another key " +
				"for a new start",
		}
	}
	p := Problem{
		Status: http.StatusConflict, Code: apiwire.CodeInstanceIDInUse, Field: FieldInstanceID,
		Detail: "instance id is in use",
	}
	if taken, ok := errors.AsType[*client.AlreadyExistsError](err); ok && taken.Holder() != "" {
		p.Detail += ": " + taken.Holder()
		p.Existing = &apiwire.Existing{
			InstanceID: taken.InstanceID, Orchestration: taken.Orchestration, Status: taken.Status,
			CreatedAt: taken.CreatedAt.UTC(),
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
			Status: http.StatusServiceUnavailable, Code: apiwire.CodeUnavailable, Retryable: true,
			Detail: "no response from the task hub in time; try again",
		}
	case errors.Is(err, provider.ErrCorrupt):
		return Problem{
			Status: http.StatusInternalServerError, Code: apiwire.CodeCorruptHistory,
			Detail: "history of this instance cannot be read; DELETE with force=true works without it",
		}
	default:
		return Internal
	}
}
