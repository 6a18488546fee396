package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/internal/vault"
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
	// UpdateRejected means that the validator rejected the update or panicked. Failure has the reason.
	UpdateRejected UpdateCode = "rejected"
	// UpdateHandlerNotFound means that the code had not set a handler of this name. Failure lists the names that it had set.
	UpdateHandlerNotFound UpdateCode = history.RejectedNoHandler
	// UpdateBadInput means that the input does not match the handler's input type. Failure has the position.
	UpdateBadInput UpdateCode = history.RejectedInput
	// UpdateValidatorNotReadOnly means that the validator tried to schedule, wait or decide something. Failure has the position.
	UpdateValidatorNotReadOnly UpdateCode = history.RejectedNotReadOnly
	// UpdateLimitExceeded means that the execution was running the maximum number of handlers. Send another update later.
	UpdateLimitExceeded UpdateCode = history.RejectedLimit
	// UpdateFailed means that the handler returned an error. Failure has the error.
	UpdateFailed UpdateCode = "failed"
	// UpdateAborted means that the update was accepted, but the execution ended or continued as new before the handler
	// returned.
	UpdateAborted UpdateCode = "left"
	// UpdateResultExpired means that the update was accepted long ago and its result is no longer stored.
	UpdateResultExpired UpdateCode = "forgotten"
	// UpdateResultEncoded means that the update is completed, but this client cannot decode the result. EncodedResult describes it.
	UpdateResultEncoded UpdateCode = "sealed"
	// UpdatePending means that there was no response in time. Status is the status of the instance.
	UpdatePending UpdateCode = "pending"
)

// UpdateError reports an update without a result.
type UpdateError struct {
	InstanceID string
	// Update is the name of the update and UpdateID its ID. All calls with the same ID refer to the same update.
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

	cause error // of one that is pending: what the caller's context ended with; of one that is sealed, why
}

// Error implements error.
func (e *UpdateError) Error() string {
	return fmt.Sprintf("instance %q: update %q (%s): %s", e.InstanceID, e.Update, e.UpdateID, e.Message)
}

// As finds the details of the handler's error. Use perdure.ErrorDetails to read them.
func (e *UpdateError) As(target any) bool { return errdetails.As(target, nil, e.Failure) }

// Unwrap returns the engine error that caused the handler's failure, the error of the caller's context if the update is
// pending, or a *perdure.PayloadError if the result cannot be decoded. Otherwise it returns nil.
func (e *UpdateError) Unwrap() error {
	if e.cause != nil || e.Failure == nil {
		return e.cause
	}
	return (&perdure.ActivityError{Cause: e.Failure}).Unwrap()
}

// UpdateOption is an option of Update and CallEntity.
type UpdateOption func(*updateOptions)

type updateOptions struct {
	id    *string
	input string // what errors call it; empty: input
}

// WithUpdateID sets the ID of an update. Updates with the same ID are one update, even from different callers: it is
// handled once, and for 30 days each call returns the same result. Set an ID to repeat an update after a crash or a
// timeout. The ID has 1 to 256 bytes of UTF-8 without control characters. Without an ID, each call is another update.
func WithUpdateID(id string) UpdateOption { return func(o *updateOptions) { o.id = &id } }

// UpdateWaiter is a Backend that can wait without polling by the client: for an update, for the start of an instance,
// and for the end of an instance that is replaced.
type UpdateWaiter interface {
	// WaitUpdate calls look repeatedly until it reports done or returns an error, and returns this error. When ctx ends
	// first, it returns the error of ctx.
	WaitUpdate(ctx context.Context, instanceID string, look func(ctx context.Context) (done bool, err error)) error
}

// Update sends an update to an instance, waits for its handler and returns the handler's result as JSON. The instance's
// code sets the handler with perdure.SetUpdateHandler. The input is encoded as JSON; a json.RawMessage is used as is. It
// has at most perdure.MaxPayloadBytes, or perdure.MaxLargePayloadBytes if the hub has a payload store.
//
// The instance processes the update in order with its other messages. The validator accepts or rejects the update, then
// the handler runs. Update waits until the handler returns or ctx ends. When ctx ends, Update returns a *UpdateError
// with UpdatePending that wraps the error of ctx. A call with the same update ID continues waiting. A paused or blocked
// instance processes the update when it continues.
//
// Update returns a *UpdateError if there is no result, ErrNotFound if the instance does not exist or was purged, and
// ErrEnded if it has ended or ends before it accepts the update. After a retryable error, repeat the call with the
// same update ID.
func (c *Client) Update(ctx context.Context, instanceID, update string, input any, opts ...UpdateOption) (json.RawMessage, error) {
	var o updateOptions
	for _, opt := range opts {
		opt(&o)
	}
	u, err := c.newUpdate(instanceID, update, input, o)
	if err != nil {
		return nil, fmt.Errorf("client: update: %w", err)
	}
	result, err := u.run(ctx)
	return result, u.told(err)
}

// told is an error of an update as a caller gets it; nil for none.
func (u *updating) told(err error) error {
	if err == nil {
		return nil
	}
	if _, told := errors.AsType[*UpdateError](err); !told {
		return fmt.Errorf("client: update %q (%s): %w", u.name, u.id, err)
	}
	return fmt.Errorf("client: %w", err)
}

// updating is an update that is being sent and waited for.
type updating struct {
	c                    *Client
	instanceID, name, id string
	named                bool // by the caller: it may have been sent before
	data                 history.Payload
	startID              string // of the life that it is for
	status               RuntimeStatus
	answer               *provider.UpdateResult
}

func (c *Client) newUpdate(instanceID, update string, input any, o updateOptions) (u *updating, err error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return nil, err
	}
	if err := provider.CheckText("update", update, 1, MaxUpdateNameBytes); err != nil {
		return nil, err
	}
	u = &updating{c: c, instanceID: instanceID, name: update, named: o.id != nil}
	if u.named {
		u.id = *o.id
	} else {
		u.id = ulid.MustNew(ulid.Timestamp(c.now()), rand.Reader).String()
	}
	if err := provider.CheckText("updateId", u.id, 1, MaxUpdateIDBytes); err != nil {
		return nil, err
	}
	u.data, err = encodePayload(cmp.Or(o.input, fieldInput), input, c.vault.Limit())
	return u, err
}

// isFor says which life of the instance the update is for, as it was read.
func (u *updating) isFor(in *provider.Instance) { u.startID, u.status = in.StartID, in.Status }

// about is what is known of a payload of the update.
func (u *updating) about(kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: u.instanceID, Kind: kind, Name: u.name}
}

// run sends the update, and waits for its answer.
func (u *updating) run(ctx context.Context) (json.RawMessage, error) {
	err := u.c.call(ctx, clientcall.Update, u.instanceID, u.name, u.send)
	if err == nil && u.answer == nil {
		err = u.wait(ctx)
	}
	if err != nil {
		return nil, u.unanswered(ctx, err)
	}
	return u.result(ctx)
}

// unanswered is why there is no answer: that there was none in time, where the update is, or may be, on its way.
func (u *updating) unanswered(ctx context.Context, err error) error {
	if ctx.Err() == nil || u.startID == "" || errors.Is(err, ErrEnded) || errors.Is(err, ErrNotFound) {
		return err
	}
	return &UpdateError{
		InstanceID: u.instanceID, Update: u.name, UpdateID: u.id, Code: UpdatePending, Status: u.status, cause: ctx.Err(),
		Message: fmt.Sprintf("no response in time: instance is %s; call again with the same ID to continue waiting",
			u.status),
	}
}

// send sends the update, unless it was sent before and is answered by now.
func (u *updating) send(ctx context.Context) error {
	if u.startID == "" {
		in, err := u.c.readInstance(ctx, u.instanceID)
		if err != nil {
			return err
		}
		u.isFor(&in)
	}
	if u.named {
		if err := u.readAnswer(ctx); err != nil || u.answer != nil {
			return err
		}
	}
	if u.status.Terminal() {
		return u.over(u.status)
	}
	var err error
	if u.data, err = u.c.vault.SealMail(ctx, u.about(perdure.PayloadUpdateInput), provider.MessageUpdate, u.id, u.data); err != nil {
		return err
	}
	return u.c.hub.EnqueueForOrchestrator(ctx, provider.Message{
		Kind: provider.MessageUpdate, InstanceID: u.instanceID, StartID: u.startID, Name: u.name, EventID: u.id, Data: u.data, CustomUpdateID: u.named,
		RequestedBy: u.c.calls.Caller(ctx), TraceParent: traceParentOf(ctx),
	})
}

func (u *updating) over(status RuntimeStatus) error {
	return fmt.Errorf("instance %q is %s: %w", u.instanceID, status, ErrEnded)
}

// readAnswer reads the answer, if there is one for this life of the instance.
func (u *updating) readAnswer(ctx context.Context) error {
	a, err := u.c.hub.ReadUpdate(ctx, u.instanceID, u.id)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case a.StartID == u.startID:
		u.answer = &a
	}
	return nil
}

// wait looks for the answer until it is there.
func (u *updating) wait(ctx context.Context) error {
	if w, ok := offered.By[UpdateWaiter](u.c.hub); ok {
		return w.WaitUpdate(ctx, u.instanceID, u.look)
	}
	return u.poll(ctx)
}

// poll looks soon at first, since many updates are done in moments, and then less and less often.
func (u *updating) poll(ctx context.Context) error {
	pause := firstPause
	for looks := 1; ; looks++ {
		if err := u.c.sleep(ctx, pause/2+mathrand.N(pause/2)); err != nil {
			return err
		}
		look := u.lookForAnswer
		if looks%instanceEvery == 0 {
			look = u.look
		}
		if done, err := look(ctx); done || err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// instanceEvery: each so-manieth look for the answer is also one at the instance.
const instanceEvery = 3

// look reports whether there is an answer. What is over, or was purged, has none any more: an answer is written before the status that says so (R9).
func (u *updating) look(ctx context.Context) (done bool, err error) {
	done, err = u.lookForAnswer(ctx)
	if done || err != nil {
		return done, err
	}
	return u.found(u.lookAtInstance(ctx))
}

func (u *updating) lookForAnswer(ctx context.Context) (done bool, err error) {
	return u.found(u.readAnswer(ctx))
}

// found reports whether there is an answer. A call that may yet succeed is made again with the next look.
func (u *updating) found(err error) (done bool, failed error) {
	if err != nil && retrybudget.IsTransient(err) {
		err = nil
	}
	return u.answer != nil, err
}

func (u *updating) lookAtInstance(ctx context.Context) error {
	in, err := u.c.readInstance(ctx, u.instanceID)
	if err != nil {
		return err
	}
	if in.StartID != u.startID {
		return fmt.Errorf("instance %q was purged before it accepted the update: %w", u.instanceID, ErrNotFound)
	}
	if u.status = in.Status; !in.Status.Terminal() {
		return nil
	}
	if err := u.readAnswer(ctx); err != nil || u.answer != nil {
		return err
	}
	return u.over(in.Status)
}

// result is what the answer says.
func (u *updating) result(ctx context.Context) (json.RawMessage, error) {
	a := u.answer
	if a.Outcome == provider.UpdateCompleted && a.Error == nil {
		return u.shown(ctx)
	}
	failure, err := u.c.openFailure(ctx, u.about(perdure.PayloadErrorDetails), a.Error)
	if err != nil {
		return nil, err
	}
	e := &UpdateError{InstanceID: u.instanceID, Update: u.name, UpdateID: u.id, Failure: failure}
	switch a.Outcome {
	case provider.UpdateCompleted:
		e.Code, e.Message = UpdateFailed, "handler failed: "+a.Error.Message
	case provider.UpdateRejected:
		e.Code, e.Message = UpdateCode(a.Reason), "rejected: "+messageOf(a.Error)
		if a.Reason == history.RejectedByValidator {
			e.Code = UpdateRejected
		}
	case provider.UpdateAborted:
		e.Code, e.Message = UpdateAborted, "execution ended before the handler returned: "+a.Reason
	default:
		e.Code, e.Message = UpdateResultExpired, "accepted earlier, and its result is no longer stored"
	}
	return nil, e
}

// shown is what the handler has returned, as far as the client can show it.
func (u *updating) shown(ctx context.Context) (json.RawMessage, error) {
	doc, err := u.c.vault.Open(ctx, u.about(perdure.PayloadUpdateResult), u.answer.Result)
	s, sealed := EncodedPayloadOf(u.answer.Result)
	if err == nil || !sealed || !vault.IsFinal(err) {
		return doc, err
	}
	return nil, &UpdateError{
		InstanceID: u.instanceID, Update: u.name, UpdateID: u.id, Code: UpdateResultEncoded, EncodedResult: &s, cause: err,
		Message: fmt.Sprintf("completed, but its result of %d bytes cannot be decoded: %v", s.Bytes, err),
	}
}

func messageOf(f *history.Failure) string {
	if f == nil {
		return "unknown reason"
	}
	return f.Message
}
