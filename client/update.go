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
	"github.com/perdure/perdure/internal/errdetails"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// The limits of an update, in bytes.
const (
	MaxUpdateNameBytes = provider.MaxEventNameBytes
	MaxUpdateIDBytes   = provider.MaxEventIDBytes
)

// UpdateCode is why an update has no result. Codes only grow.
type UpdateCode string

// The codes of an UpdateError.
const (
	UpdateRejected  UpdateCode = "rejected"             // the validator refused it, or panicked: Failure. Nothing has changed
	UpdateUnknown   UpdateCode = history.UpdateUnknown  // the code had set no handler of its name: Failure names those it had. Nothing has changed
	UpdateBadInput  UpdateCode = history.UpdateBadInput // the input does not fit what the handler takes: Failure says where. Nothing has changed
	UpdateMisused   UpdateCode = history.UpdateMisused  // the validator scheduled, waited, or decided something else: Failure says where. Nothing has changed
	UpdateTooMany   UpdateCode = history.UpdateTooMany  // as many handlers ran as an execution has at a time. Nothing has changed: send another, later
	UpdateFailed    UpdateCode = "failed"               // the handler returned an error: Failure
	UpdateLeft      UpdateCode = "left"                 // it was accepted, and the execution ended, or continued as new, before its handler returned
	UpdateForgotten UpdateCode = "forgotten"            // it was taken long ago, and what came of it is not known any more
	UpdateSealed    UpdateCode = "sealed"               // it is done, and this client cannot show what its handler returned: Sealed
	UpdatePending   UpdateCode = "pending"              // there was no answer in time: Status is what the instance is
)

// UpdateError says why an update has no result.
type UpdateError struct {
	InstanceID string
	// Update is its name, and UpdateID its id: a call with the same id, by any caller, is about the same update.
	Update, UpdateID string
	Code             UpdateCode
	Message          string
	// Failure is what its handler failed with, or why it was rejected; nil elsewhere.
	Failure *history.Failure
	// Status is what the instance was at the last look, of an update that is pending: Paused and Blocked ones take it when they go on. Empty elsewhere.
	Status RuntimeStatus

	// Sealed says what the result is that this client cannot show; nil elsewhere.
	Sealed *SealedPayload

	cause error // of one that is pending: what the caller's context ended with; of one that is sealed, why
}

// Error implements error.
func (e *UpdateError) Error() string {
	return fmt.Sprintf("instance %q: update %q (%s): %s", e.InstanceID, e.Update, e.UpdateID, e.Message)
}

// As finds the details that the handler's error came with: perdure.DetailsOf asks for them.
func (e *UpdateError) As(target any) bool { return errdetails.As(target, nil, e.Failure) }

// Unwrap returns the engine's own error that the handler failed with, if it was one; of an update that is pending, what the
// caller's context has ended with; of one that is sealed, a *perdure.PayloadError.
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

// WithUpdateID names the update. Sent again with the same id, by any caller, it is the same update: it is taken once, and each call returns the same
// answer, for 30 days. Whoever may have to send it again, after a crash or a timeout, names it. The id has 1 to 256 bytes of UTF-8 without control
// characters. Without it each call is another update.
func WithUpdateID(id string) UpdateOption { return func(o *updateOptions) { o.id = &id } }

// UpdateWaiter is a Hub that lets time pass by itself while an update is waited for, the start of an instance, or the end of one that is replaced.
type UpdateWaiter interface {
	// WaitUpdate calls look again and again, until that reports that it is done or returns an error, which it returns. When
	// ctx ends first it returns ctx's error.
	WaitUpdate(ctx context.Context, instanceID string, look func(ctx context.Context) (done bool, err error)) error
}

// Update asks an instance's code to change something, and returns what its handler answers, as JSON: the code has set a handler for updates of that name
// with perdure.HandleUpdate. The input, of at most perdure.MaxPayloadBytes, or perdure.MaxLargePayloadBytes on a hub with a bucket, is encoded as JSON; a json.RawMessage is used as it is.
//
// The update is a message, with a place among the others that the instance takes. Its validator accepts or rejects it; then the handler runs, for
// as long as that takes: Update waits until it has returned, or until ctx ends. The error is then a *UpdateError with UpdatePending, and with ctx's
// error in it: the update is on its way or under way, and a call with its id goes on waiting. An instance that is paused or blocked takes it when it goes on.
//
// It returns a *UpdateError when there is no result, ErrNotFound when there is no such instance, or none any more, and ErrTerminal when it is over, or ends
// before it has taken the update. After a retryable error it is safe to call again with the same id.
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
	answer               *provider.UpdateAnswer
}

func (c *Client) newUpdate(instanceID, update string, input any, o updateOptions) (u *updating, err error) {
	if err := checkInstanceID(instanceID); err != nil {
		return nil, err
	}
	if err := checkText("update", update, 1, MaxUpdateNameBytes); err != nil {
		return nil, err
	}
	u = &updating{c: c, instanceID: instanceID, name: update, named: o.id != nil}
	if u.named {
		u.id = *o.id
	} else {
		u.id = ulid.MustNew(ulid.Timestamp(c.now()), rand.Reader).String()
	}
	if err := checkText("updateId", u.id, 1, MaxUpdateIDBytes); err != nil {
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
	err := u.c.call(ctx, callUpdate, u.instanceID, u.name, u.send)
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
	if ctx.Err() == nil || u.startID == "" || errors.Is(err, ErrTerminal) || errors.Is(err, ErrNotFound) {
		return err
	}
	return &UpdateError{
		InstanceID: u.instanceID, Update: u.name, UpdateID: u.id, Code: UpdatePending, Status: u.status, cause: ctx.Err(),
		Message: fmt.Sprintf("no answer in time: the instance is %s; a call with the same id goes on waiting", u.status),
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
		Kind: provider.MessageUpdate, InstanceID: u.instanceID, StartID: u.startID, Name: u.name, EventID: u.id, Data: u.data, Named: u.named,
		RequestedBy: u.c.caller(ctx), TraceParent: traceOf(ctx),
	})
}

func (u *updating) over(status RuntimeStatus) error {
	return fmt.Errorf("instance %q is %s: %w", u.instanceID, status, ErrTerminal)
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
	if err != nil && mayYetSucceed(err) {
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
		return fmt.Errorf("instance %q that was to take it was purged: %w", u.instanceID, ErrNotFound)
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
		e.Code, e.Message = UpdateFailed, "its handler failed: "+a.Error.Message
	case provider.UpdateRejected:
		e.Code, e.Message = UpdateCode(a.Reason), "it was rejected: "+messageOf(a.Error)
		if a.Reason == history.UpdateRefused {
			e.Code = UpdateRejected
		}
	case provider.UpdateLeft:
		e.Code, e.Message = UpdateLeft, "its execution ended before its handler returned: "+a.Reason
	default:
		e.Code, e.Message = UpdateForgotten, "it was taken before, and what came of it is not known any more"
	}
	return nil, e
}

// shown is what the handler has returned, as far as the client can show it.
func (u *updating) shown(ctx context.Context) (json.RawMessage, error) {
	doc, err := u.c.vault.Open(ctx, u.about(perdure.PayloadUpdateResult), u.answer.Result)
	s, sealed := SealedOf(u.answer.Result)
	if err == nil || !sealed || !vault.IsFinal(err) {
		return doc, err
	}
	return nil, &UpdateError{
		InstanceID: u.instanceID, Update: u.name, UpdateID: u.id, Code: UpdateSealed, Sealed: &s, cause: err,
		Message: fmt.Sprintf("it is done, and its result of %d bytes cannot be shown: %v", s.Bytes, err),
	}
}

func messageOf(f *history.Failure) string {
	if f == nil {
		return "no reason is known"
	}
	return f.Message
}
