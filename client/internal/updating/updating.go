// Package updating sends an update to an instance and waits for the result.
package updating

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/provider"
)

// Update is an update with its state while it is sent and until its result arrives. It is not safe for concurrent use.
type Update struct {
	InstanceID, Name, ID string
	// Status is the last known status of the instance.
	Status provider.RuntimeStatus

	hub      *hub.Hub
	customID bool // the caller chose the ID, so the update may have been sent before
	input    history.Payload
	startID  string // identifies the incarnation that receives the update
	result   *provider.UpdateResult
}

// Request describes an update.
type Request struct {
	InstanceID, Name string
	ID               *string // nil for a generated ID
	Input            any
	InputField       string // the name of the input in errors
}

// New checks a request and returns its update.
func New(h *hub.Hub, r Request) (u *Update, err error) {
	if err := inputcheck.InstanceID(r.InstanceID); err != nil {
		return nil, err
	}
	if err := inputcheck.Text("update", r.Name, 1, provider.MaxEventNameBytes); err != nil {
		return nil, err
	}
	u = &Update{hub: h, InstanceID: r.InstanceID, Name: r.Name, customID: r.ID != nil}
	if u.customID {
		u.ID = *r.ID
	} else {
		u.ID = h.NewID()
	}
	if err := inputcheck.Text("updateId", u.ID, 1, provider.MaxEventIDBytes); err != nil {
		return nil, err
	}
	u.input, err = hub.Encode(r.InputField, r.Input, h.Encoding.Limit())
	return u, err
}

// SetIncarnation sets the incarnation that receives the update. The default is the incarnation that exists when Send is
// called.
func (u *Update) SetIncarnation(in *provider.Instance) { u.startID, u.Status = in.StartID, in.Status }

// Payload describes a payload of the update.
func (u *Update) Payload(kind perdure.PayloadKind) perdure.PayloadInfo {
	return perdure.PayloadInfo{InstanceID: u.InstanceID, Kind: kind, Name: u.Name}
}

// Document returns the input as JSON.
func (u *Update) Document() json.RawMessage {
	doc, _ := u.input.Document()
	return doc
}

// EncodedResultError reports a completed update whose result the client cannot read. The tags are for responses of the
// HTTP API.
type EncodedResultError struct {
	Codec string `json:"codec"`
	Key   string `json:"key"`
	Bytes int64  `json:"bytes"`
}

// Error implements error.
func (e *EncodedResultError) Error() string {
	return fmt.Sprintf("the HTTP API does not return the result of %d bytes", e.Bytes)
}

// FailedError reports an update without a result that another call sent.
type FailedError struct {
	Update
	Result provider.UpdateResult
}

// Error implements error.
func (e *FailedError) Error() string { return fmt.Sprintf("update %q has no result", e.Name) }

// Run sends the update and waits for its result. pending is true if ctx ended after the update was or may have been
// sent.
func (u *Update) Run(ctx context.Context) (result *provider.UpdateResult, pending bool, err error) {
	err = u.Send(ctx)
	if err == nil && u.result == nil {
		err = u.wait(ctx)
	}
	if err == nil {
		return u.result, false, nil
	}
	pending = ctx.Err() != nil && u.startID != "" &&
		!errors.Is(err, provider.ErrEnded) && !errors.Is(err, provider.ErrNotFound)
	return nil, pending, err
}

// Send sends the update unless a call with the same ID already has a result.
func (u *Update) Send(ctx context.Context) error {
	return u.hub.Call(ctx, clientcall.Update, u.InstanceID, u.Name, u.send)
}

func (u *Update) send(ctx context.Context) error {
	if u.startID == "" {
		in, err := u.hub.Instance(ctx, u.InstanceID)
		if err != nil {
			return err
		}
		u.SetIncarnation(&in)
	}
	if u.customID {
		if err := u.readResult(ctx); err != nil || u.result != nil {
			return err
		}
	}
	if u.Status.Terminal() {
		return hub.EndedError(u.InstanceID, u.Status)
	}
	var err error
	about := u.Payload(perdure.PayloadUpdateInput)
	if u.input, err = u.hub.Encoding.EncodeMessage(ctx, about, provider.MessageUpdate, u.ID, u.input); err != nil {
		return err
	}
	return u.hub.EnqueueForOrchestrator(ctx, provider.Message{
		Kind: provider.MessageUpdate, InstanceID: u.InstanceID, StartID: u.startID, Name: u.Name, EventID: u.ID,
		Data: u.input, CustomUpdateID: u.customID, RequestedBy: u.hub.Calls.Caller(ctx),
		TraceParent: hub.TraceParent(ctx),
	})
}

// readResult reads the result of the update from this incarnation, if it exists.
func (u *Update) readResult(ctx context.Context) error {
	r, err := u.hub.ReadUpdate(ctx, u.InstanceID, u.ID)
	switch {
	case errors.Is(err, provider.ErrNotFound):
		return nil
	case err != nil:
		return err
	case r.StartID == u.startID:
		u.result = &r
	}
	return nil
}

func (u *Update) wait(ctx context.Context) error {
	if w := u.hub.UpdateWaiter; w != nil {
		return w.WaitUpdate(ctx, u.InstanceID, u.poll)
	}
	return u.pollUntilDone(ctx)
}

// instancePollInterval is the number of polls for the result between two reads of the instance.
const instancePollInterval = 3

// pollUntilDone polls with growing delays, because most updates complete quickly.
func (u *Update) pollUntilDone(ctx context.Context) error {
	delay := hub.FirstDelay
	for n := 1; ; n++ {
		if err := u.hub.Sleep(ctx, hub.Jitter(delay)); err != nil {
			return err
		}
		poll := u.pollResult
		if n%instancePollInterval == 0 {
			poll = u.poll
		}
		if done, err := poll(ctx); done || err != nil {
			return err
		}
		delay = min(2*delay, hub.MaxDelay)
	}
}

// poll reports whether the result exists. An instance that has ended or was purged gets no further results, because a
// result is written before the final status (R9).
func (u *Update) poll(ctx context.Context) (done bool, err error) {
	done, err = u.pollResult(ctx)
	if done || err != nil {
		return done, err
	}
	return u.polled(u.readInstance(ctx))
}

func (u *Update) pollResult(ctx context.Context) (done bool, err error) {
	return u.polled(u.readResult(ctx))
}

// polled returns the outcome of a poll. The next poll repeats a call that failed with a transient error.
func (u *Update) polled(err error) (done bool, permanent error) {
	if err != nil && retrybudget.IsTransient(err) {
		err = nil
	}
	return u.result != nil, err
}

func (u *Update) readInstance(ctx context.Context) error {
	in, err := u.hub.Instance(ctx, u.InstanceID)
	if err != nil {
		return err
	}
	if in.StartID != u.startID {
		return fmt.Errorf("instance %q was purged before it accepted the update: %w", u.InstanceID,
			provider.ErrNotFound)
	}
	if u.Status = in.Status; !in.Status.Terminal() {
		return nil
	}
	if err := u.readResult(ctx); err != nil || u.result != nil {
		return err
	}
	return hub.EndedError(u.InstanceID, in.Status)
}
