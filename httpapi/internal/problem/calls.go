package problem

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/apiwire"
)

// ofQuery returns the problem of a failed query. ok is false for other errors. The status is never 5xx, because the
// instance's code causes the error, and the alarm of the API counts 5xx.
func ofQuery(err error) (p Problem, ok bool) {
	if errors.Is(err, client.ErrQueriesUnsupported) {
		return Problem{
			Status: http.StatusConflict, Code: apiwire.CodeQueriesUnsupported,
			Detail: "the hub has no orchestrator function that supports queries; deploy one of this release",
		}, true
	}
	e, ok := errors.AsType[*client.QueryError](err)
	if !ok {
		return p, false
	}
	p = Problem{
		Status: http.StatusUnprocessableEntity, Code: apiwire.PrefixQuery + string(e.Code), Detail: e.Message,
		Field: FieldQuery, Details: detailsIn(err), Failure: e.Failure, Known: e.Known,
	}
	switch e.Code {
	case client.QueryHandlerNotFound:
		p.Status, p.Code = http.StatusNotFound, string(e.Code)
	case client.QueryBadInput:
		p.Status, p.Field = http.StatusBadRequest, FieldInput
	case client.QueryNotStarted:
		p.Status, p.Field, p.Retryable = http.StatusConflict, FieldInstanceID, true
	case client.QueryBlocked, client.QueryUnregistered:
		p.Status, p.Field = http.StatusConflict, FieldInstanceID
	case client.QueryTimedOut:
		p.Retryable = true
	case client.QueryUnsupported:
		p.Status = http.StatusConflict
	case client.QueryFailed, client.QueryNotReadOnly, client.QueryHandlerTimedOut, client.QueryResultTooLarge,
		client.QueryFunctionFailed:
	}
	return p, true
}

// detailsIn returns the error details of the instance's code, or nil.
func detailsIn(err error) json.RawMessage {
	details, err := perdure.ErrorDetails[json.RawMessage](err)
	if err != nil {
		return nil
	}
	return details
}

// OfData returns err with the field data in place of input, for an update whose input is the field data.
func OfData(err error) error {
	p, ok := ofUpdate(err)
	if !ok || p.Field != FieldInput {
		return err
	}
	p.Field = FieldData
	return &p
}

// ofUpdate returns the problem of a failed update. ok is false for other errors. Like for a query, the status is never
// 5xx.
func ofUpdate(err error) (p Problem, ok bool) {
	e, ok := errors.AsType[*client.UpdateError](err)
	if !ok || e.Code == client.UpdatePending || e.Code == client.UpdateResultEncoded {
		return p, false
	}
	p = Problem{
		Status: http.StatusUnprocessableEntity, Code: apiwire.PrefixUpdate + string(e.Code), Detail: e.Message,
		Field: FieldUpdate, Details: detailsIn(err), Failure: e.Failure,
	}
	switch e.Code {
	case client.UpdateHandlerNotFound:
		p.Status, p.Code = http.StatusNotFound, string(e.Code)
	case client.UpdateBadInput:
		p.Status, p.Field = http.StatusBadRequest, FieldInput
	case client.UpdateLimitExceeded, client.UpdateAborted:
		p.Status, p.Field = http.StatusConflict, FieldInstanceID
	case client.UpdateResultExpired:
		p.Status, p.Field = http.StatusGone, FieldIdempotencyKey
	case client.UpdateRejected, client.UpdateValidatorNotReadOnly, client.UpdateFailed, client.UpdatePending,
		client.UpdateResultEncoded:
	}
	return p, true
}

// ofToken returns the problem of a token that is invalid or no longer valid.
func ofToken(e *client.TokenError) Problem {
	status := http.StatusConflict
	switch e.Reason {
	case client.TokenInvalid, client.TokenWrongHub:
		status = http.StatusBadRequest
	case client.TokenExecutionEnded:
		status = http.StatusGone
	case client.TokenSuperseded, client.TokenActivityEnded:
	}
	return Problem{
		Status: status, Code: string(e.Reason), Detail: e.Error(), Field: FieldToken,
		Attempt: &apiwire.Attempt{
			Hub: e.Hub, InstanceID: e.InstanceID, ExecutionID: e.ExecutionID, ActivityID: e.ActivityID,
			Attempt: e.Attempt, CurrentAttempt: e.CurrentAttempt,
		},
	}
}
