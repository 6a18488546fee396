package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/updating"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/provider"
)

// Limits of an update, in bytes.
const (
	MaxUpdateNameBytes = provider.MaxEventNameBytes
	MaxUpdateIDBytes   = provider.MaxEventIDBytes
)

// UpdateCode is the reason why an update has no result. Later releases may add codes.
type UpdateCode string

// Codes of an UpdateError. With UpdateRejected, UpdateHandlerNotFound, UpdateBadInput, UpdateValidatorNotReadOnly and
// UpdateLimitExceeded, the update has changed nothing.
const (
	// UpdateRejected means that the validator rejected the update or panicked. Failure contains the reason.
	UpdateRejected UpdateCode = updating.CodeRejected
	// UpdateHandlerNotFound means that the code has not set a handler of this name. Failure lists the names of the
	// handlers that it has set.
	UpdateHandlerNotFound UpdateCode = history.RejectedNoHandler
	// UpdateBadInput means that the input does not match the handler's input type. Failure contains the position.
	UpdateBadInput UpdateCode = history.RejectedInput
	// UpdateValidatorNotReadOnly means that the validator tried to schedule, wait or decide something. Failure contains
	// the position.
	UpdateValidatorNotReadOnly UpdateCode = history.RejectedNotReadOnly
	// UpdateLimitExceeded means that the execution was running the maximum number of handlers. Send another update
	// later.
	UpdateLimitExceeded UpdateCode = history.RejectedLimit
	// UpdateFailed means that the handler returned an error. Failure contains the error.
	UpdateFailed UpdateCode = updating.CodeFailed
	// UpdateAborted means that the update was accepted, but the execution ended or continued as new before the handler
	// returned.
	UpdateAborted = UpdateCode(updating.CodeAborted)
	// UpdateResultExpired means that the update was accepted earlier and its result has expired.
	UpdateResultExpired = UpdateCode(updating.CodeExpired)
	// UpdateResultEncoded means that the update is completed, but this client cannot decode the result. EncodedResult
	// describes the result.
	UpdateResultEncoded UpdateCode = "sealed"
	// UpdatePending means that no response arrived in time. Status is the status of the instance.
	UpdatePending UpdateCode = "pending"
)

// UpdateError reports an update without a result.
type UpdateError struct {
	InstanceID string
	// Update is the name of the update, and UpdateID is its ID. All calls with the same ID refer to the same update.
	Update, UpdateID string
	Code             UpdateCode
	Message          string
	// Failure is the error of the handler or the reason of the rejection. Otherwise it is nil.
	Failure *history.Failure
	// Status is the last known status of the instance if the update is pending. Paused and Blocked instances process
	// the update when they continue. Otherwise Status is empty.
	Status RuntimeStatus

	// EncodedResult describes a result that this client cannot decode. Otherwise it is nil.
	EncodedResult *EncodedPayload

	cause error // error of the caller's context if the update is pending, or the decoding error of the result
}

// Error implements error.
func (e *UpdateError) Error() string {
	return fmt.Sprintf("instance %q: update %q (%s): %s", e.InstanceID, e.Update, e.UpdateID, e.Message)
}

// As finds the details of the handler's error. Use perdure.ErrorDetails to read them.
func (e *UpdateError) As(target any) bool { return errdetails.As(target, nil, e.Failure) }

// Unwrap returns the error of the caller's context if the update is pending, and a *perdure.PayloadError if the result
// cannot be decoded. Otherwise it returns the engine error that caused the handler's failure, or nil.
func (e *UpdateError) Unwrap() error {
	if e.cause != nil || e.Failure == nil {
		return e.cause
	}
	return (&perdure.ActivityError{Cause: e.Failure}).Unwrap()
}

// UpdateOption is an option of Update and CallEntity.
type UpdateOption func(*updateOptions)

type updateOptions struct{ id *string }

// WithUpdateID sets the ID of an update. Updates with the same ID are the same update, even from different callers. The
// instance handles the update once, and each call within 30 days returns the same result. Set an ID to repeat an update
// after a crash or a timeout. The ID has 1 to 256 bytes of UTF-8 without control characters. Without an ID, each call
// sends a separate update.
func WithUpdateID(id string) UpdateOption { return func(o *updateOptions) { o.id = &id } }

// UpdateWaiter is a Backend that can wait without polling by the client. The client uses it to wait for an update, for
// the start of an instance, and for the end of a replaced instance.
type UpdateWaiter interface {
	// WaitUpdate calls poll repeatedly until it reports done or returns an error, and returns this error. When ctx ends
	// first, it returns the error of ctx.
	WaitUpdate(ctx context.Context, instanceID string, poll func(ctx context.Context) (done bool, err error)) error
}

// Update sends an update to an instance, waits for its handler and returns the handler's result as JSON. The instance's
// code sets the handler with perdure.SetUpdateHandler. The input is encoded as JSON; a json.RawMessage is used as is.
// The input has at most perdure.MaxPayloadBytes, or perdure.MaxLargePayloadBytes if the hub has a payload store.
//
// The instance processes the update in order with its other messages. The validator accepts or rejects the update, then
// the handler runs. Update waits until the handler returns or ctx ends. When ctx ends, Update returns a *UpdateError
// with UpdatePending that wraps the error of ctx. A call with the same update ID continues waiting. A paused or blocked
// instance processes the update when it continues.
//
// Update returns a *UpdateError if the update has no result. It returns ErrNotFound if the instance does not exist or
// was purged, and ErrEnded if it has ended or ends before it accepts the update. After a retryable error, repeat the
// call with the same update ID.
func (c *Client) Update(
	ctx context.Context, instanceID, update string, input any, opts ...UpdateOption,
) (json.RawMessage, error) {
	o := optionsOf(opts)
	u, err := c.newUpdate(instanceID, update, input, o)
	if err != nil {
		return nil, fmt.Errorf("client: update: %w", err)
	}
	r, pending, err := c.ops.RunUpdate(ctx, u)
	return c.updateResult(ctx, u, r, pending, err)
}

func (c *Client) newUpdate(instanceID, update string, input any, o updateOptions) (*updating.Update, error) {
	return updating.New(c.hub, updating.Request{
		InstanceID: instanceID, Name: update, ID: o.id, Input: input, InputField: fieldInput,
	})
}

// updateResult returns the outcome of an update as a caller of the client gets it.
func (c *Client) updateResult(
	ctx context.Context, u *updating.Update, r *provider.UpdateResult, pending bool, failed error,
) (json.RawMessage, error) {
	result, err := c.publicResult(ctx, u, r, pending, failed)
	if err == nil {
		return result, nil
	}
	if _, reported := errors.AsType[*UpdateError](err); !reported {
		return nil, fmt.Errorf("client: update %q (%s): %w", u.Name, u.ID, err)
	}
	return nil, fmt.Errorf("client: %w", err)
}

func (c *Client) publicResult(
	ctx context.Context, u *updating.Update, r *provider.UpdateResult, pending bool, err error,
) (json.RawMessage, error) {
	encoded, isEncoded := errors.AsType[*updating.EncodedResultError](err)
	switch {
	case pending:
		return nil, &UpdateError{
			InstanceID: u.InstanceID, Update: u.Name, UpdateID: u.ID, Code: UpdatePending, Status: u.Status,
			cause: ctx.Err(),
			Message: fmt.Sprintf("no response in time: instance is %s; call again with the same ID to continue waiting",
				cmp.Or(u.Status, "of unknown status")),
		}
	case isEncoded:
		described := EncodedPayload{Codec: encoded.Codec, Key: encoded.Key, Bytes: encoded.Bytes}
		return nil, encodedResultError(u, &described, encoded)
	case err != nil:
		return nil, err
	case r.Outcome == provider.UpdateCompleted && r.Error == nil:
		return c.decodeUpdateResult(ctx, u, r)
	}
	failure, err := c.hub.DecodeFailure(ctx, u.Payload(perdure.PayloadErrorDetails), r.Error)
	if err != nil {
		return nil, err
	}
	return nil, updateErrorOf(u, r, failure)
}

// updateErrorOf returns the error of an update that was rejected, failed or was aborted.
func updateErrorOf(u *updating.Update, r *provider.UpdateResult, failure *history.Failure) *UpdateError {
	code, message := updating.Problem(r)
	return &UpdateError{
		InstanceID: u.InstanceID, Update: u.Name, UpdateID: u.ID, Code: UpdateCode(code), Message: message,
		Failure: failure,
	}
}

// publicUpdateError replaces an updating.FailedError by an UpdateError. It returns other errors unchanged.
func publicUpdateError(err error) error {
	if e, ok := errors.AsType[*updating.FailedError](err); ok {
		return updateErrorOf(&e.Update, &e.Result, e.Result.Error)
	}
	return err
}

// decodeUpdateResult returns the result of a handler, or an UpdateError if this client cannot decode it.
func (c *Client) decodeUpdateResult(
	ctx context.Context, u *updating.Update, r *provider.UpdateResult,
) (json.RawMessage, error) {
	doc, undecodable, err := c.hub.Decode(ctx, u.Payload(perdure.PayloadUpdateResult), r.Result)
	if undecodable == nil {
		return doc, err
	}
	encoded, _ := EncodedPayloadOf(r.Result)
	return nil, encodedResultError(u, &encoded, undecodable)
}

func encodedResultError(u *updating.Update, encoded *EncodedPayload, undecodable error) *UpdateError {
	return &UpdateError{
		InstanceID: u.InstanceID, Update: u.Name, UpdateID: u.ID, Code: UpdateResultEncoded, EncodedResult: encoded,
		cause:   undecodable,
		Message: fmt.Sprintf("completed, but its result of %d bytes cannot be decoded: %v", encoded.Bytes, undecodable),
	}
}
