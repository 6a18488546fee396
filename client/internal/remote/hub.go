// Package remote calls a hub through the HTTP API. Each method is one operation of the API, with the errors of the same
// call of a provider.
package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/client/internal/cancelling"
	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/purging"
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/provider"
)

// Hub is a hub behind the HTTP API. It is safe for concurrent use.
type Hub struct {
	api *apiclient.Client
	hub *hub.Hub // has no Backend
}

// New returns the hub behind an API.
func New(c *apiclient.Client, h *hub.Hub) *Hub { return &Hub{api: c, hub: h} }

// reason is the body of a call that sends a message.
type reason struct {
	Message string `json:"message,omitempty"`
}

// sends holds the operation that sends a kind of message, and the problem that a repeated call may find if the first
// one has taken effect.
var sends = map[provider.MessageKind]struct{ operation, settled string }{
	provider.MessageCancel:             {"cancelInstance", apiwire.CodeInstanceOver},
	provider.MessageTerminate:          {"terminateInstance", apiwire.CodeInstanceOver},
	provider.MessageExecutionSuspended: {"pauseInstance", ""},
	provider.MessageExecutionResumed:   {"resumeInstance", ""},
	provider.MessageEventRaised:        {"raiseEvent", ""},
}

// Send sends a message to an instance, and returns the status that the instance had before if it was Paused.
func (h *Hub) Send(
	ctx context.Context, operation string, m provider.Message,
) (before provider.RuntimeStatus, err error) {
	if err := inputcheck.InstanceID(m.InstanceID); err != nil {
		return "", h.call(ctx, operation, m.InstanceID, m.Name, func(context.Context) error { return err })
	}
	kind := sends[m.Kind]
	call := apiclient.Call{
		Operation: kind.operation, Path: []string{m.InstanceID}, InstanceID: m.InstanceID, Body: reason{m.Text},
	}
	if kind.settled != "" {
		call.Settled = []string{kind.settled}
	}
	if m.Kind == provider.MessageEventRaised {
		doc, _ := m.Data.Document()
		call.Path, call.Key, call.Body = append(call.Path, m.Name), m.EventID, doc
		if err := key("eventId", m.EventID); err != nil {
			return "", err
		}
	}
	err = h.call(ctx, operation, m.InstanceID, m.Name, func(ctx context.Context) error {
		paused, err := h.accept(ctx, call)
		if paused {
			before = provider.StatusPaused
		}
		return err
	})
	if err == nil && m.Kind == provider.MessageExecutionResumed && before == "" {
		before = h.statusOf(ctx, m.InstanceID)
	}
	return before, err
}

// accept makes a call that sends something. It reports whether the instance or schedule was paused, or may have been: a
// repeated call cannot know it.
func (h *Hub) accept(ctx context.Context, call apiclient.Call) (paused bool, err error) {
	resp, err := h.api.Do(ctx, call)
	if err != nil {
		return false, err
	}
	var a apiwire.AcceptedResponse
	if len(resp.Body) > 0 {
		err = resp.Decode(&a)
	}
	return !a.NotPaused || resp.Repeated, err
}

// statusOf returns the status of an instance for an error. It is Running if the status cannot be read.
func (h *Hub) statusOf(ctx context.Context, instanceID string) provider.RuntimeStatus {
	r, err := apiclient.Get[result](ctx, h.api, apiclient.Call{
		Operation: "getResult", Path: []string{instanceID}, InstanceID: instanceID,
	})
	if err != nil || r.Status == provider.StatusPaused {
		return provider.StatusRunning
	}
	return r.Status
}

// call runs a call inside the interceptors.
func (h *Hub) call(ctx context.Context, operation, instanceID, name string, do func(context.Context) error) error {
	return h.hub.Call(ctx, operation, instanceID, name, do)
}

// do makes a call without a result inside the interceptors.
func (h *Hub) do(ctx context.Context, operation, name string, call apiclient.Call) error {
	return h.call(ctx, operation, call.InstanceID, name, func(ctx context.Context) error {
		_, err := h.api.Do(ctx, call)
		return err
	})
}

// key checks that a key can be sent as a header. The error has the name of the client's option.
func key(field, k string) error {
	if problem, ok := errors.AsType[*provider.FieldError](apiclient.CheckKey(k)); ok {
		return &provider.FieldError{Field: field, Problem: problem.Problem}
	}
	return nil
}

// Annotate adds a note. The API sets the caller and the time.
func (h *Hub) Annotate(ctx context.Context, instanceID string, n provider.Note) error {
	if err := key("noteId", n.ID); err != nil {
		return err
	}
	_, err := h.api.Do(ctx, apiclient.Call{
		Operation: "annotateInstance", Path: []string{instanceID}, InstanceID: instanceID,
		Key: cmp.Or(n.ID, rand.Text()), KeyIsOptional: n.ID == "",
		Body: struct {
			Note string `json:"note"`
		}{n.Text},
	})
	return err
}

// CancelActivity cancels an activity.
func (h *Hub) CancelActivity(ctx context.Context, instanceID string, activityID int64, message string) error {
	if err := cancelling.Check(activityID, message); err != nil {
		return err
	}
	call := apiclient.Call{
		Operation: "cancelActivity", Path: []string{instanceID, strconv.FormatInt(activityID, 10)},
		InstanceID: instanceID, Body: reason{message}, Settled: []string{apiwire.CodeNotCancellable},
		Errors: func(p *apiwire.Problem) error {
			cause := map[string]error{
				apiwire.CodeActivityNotFound: cancelling.ErrActivityNotFound,
				apiwire.CodeNotCancellable:   cancelling.ErrNotCancellable,
			}[p.Code]
			if cause == nil {
				return nil
			}
			return fmt.Errorf("instance %q: activity #%d: %w", instanceID, activityID, cause)
		},
	}
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return h.call(ctx, clientcall.CancelActivity, instanceID, "", func(context.Context) error { return err })
	}
	return h.do(ctx, clientcall.CancelActivity, "", call)
}

// Purge purges an instance.
func (h *Hub) Purge(ctx context.Context, instanceID string, o purging.Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	query := url.Values{}
	if o.Force {
		query.Set("force", "true")
	}
	if o.Children {
		query.Set("withChildren", "true")
	}
	if o.CreatedAt != nil {
		query.Set("createdAt", o.CreatedAt.UTC().Format(time.RFC3339Nano))
	}
	_, err := h.api.Do(ctx, apiclient.Call{
		Operation: "purgeInstance", Path: []string{instanceID}, InstanceID: instanceID, Query: query,
		Settled: []string{apiwire.CodeInstanceNotFound},
	})
	return err
}

// startBody is the body of a start.
type startBody struct {
	InstanceID    string            `json:"instanceId,omitempty"`
	Orchestration string            `json:"orchestration,omitempty"`
	Input         json.RawMessage   `json:"input,omitempty"`
	Version       *string           `json:"version,omitempty"`
	Delay         string            `json:"delay,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	IfExists      *string           `json:"ifExists,omitempty"`
	Event         string            `json:"event,omitempty"`
	Update        string            `json:"update,omitempty"`
	Data          json.RawMessage   `json:"data,omitempty"`
}

// restartBody is the body of a restart. Empty tags replace those of the ended instance, unlike missing ones.
type restartBody struct {
	InstanceID     string            `json:"instanceId,omitempty"`
	Version        *string           `json:"version,omitempty"`
	Delay          string            `json:"delay,omitempty"`
	Tags           map[string]string `json:"tags,omitzero"`
	IdempotencyKey *string           `json:"idempotencyKey,omitempty"`
	From           *int64            `json:"from,omitempty"`
}

func newRestart(o *starting.Options) restartBody {
	b := restartBody{Version: versionOf(o), IdempotencyKey: o.IdempotencyKey, From: o.FromEvent}
	if o.InstanceID != nil {
		b.InstanceID = *o.InstanceID
	}
	if o.Delay != 0 {
		b.Delay = o.Delay.String()
	}
	if b.Tags = o.Tags; o.TagsSet && b.Tags == nil {
		b.Tags = map[string]string{}
	}
	return b
}

// unknownField is the end of the detail of a problem with which an API rejects a field that a later release added.
const unknownField = " is not a field of this call"

// restartErrors returns the error of an API whose restarts have no tags or no key.
func restartErrors(p *apiwire.Problem) error {
	option := map[string]string{"tags": "WithTags", "idempotencyKey": "WithIdempotencyKey"}[p.Field]
	if p.Code != apiwire.CodeInvalidRequest || option == "" || !strings.HasSuffix(p.Detail, unknownField) {
		return nil
	}
	return &apiclient.NoRouteError{Operation: "Restart with " + option, Reason: apiclient.EarlierRelease}
}

// newStart returns the body and the idempotency key of a start. Without a key of the caller, the ID of the start is the
// key, so that a repeated request does not start another instance.
func newStart(s *provider.Start, o *starting.Options) (b startBody, idempotencyKey string, err error) {
	doc, _ := s.Input.Document()
	b = startBody{InstanceID: s.InstanceID, Input: doc, Version: versionOf(o), Tags: o.Tags, IfExists: o.IfExists}
	if o.Delay != 0 {
		b.Delay = o.Delay.String()
	}
	if o.IdempotencyKey == nil {
		return b, s.StartID, nil
	}
	return b, *o.IdempotencyKey, key("idempotencyKey", *o.IdempotencyKey)
}

// Start starts an instance.
func (h *Hub) Start(ctx context.Context, s *provider.Start, o *starting.Options) error {
	b, idempotencyKey, err := newStart(s, o)
	if err != nil {
		return err
	}
	call := apiclient.Call{
		Operation: "startOrchestration", Path: []string{s.Name}, InstanceID: s.InstanceID, Key: idempotencyKey,
	}
	if o.IfExists != nil && *o.IfExists == starting.Replace {
		call.Operation, call.Path = opPut, []string{s.InstanceID}
		b.InstanceID, b.Orchestration = "", s.Name
	}
	call.Body = b
	return h.do(ctx, clientcall.Start, s.Name, call)
}

const opPut = "putInstance"

// StartAndRaise starts an instance unless it exists, and raises an event.
func (h *Hub) StartAndRaise(
	ctx context.Context, s *provider.Start, o *starting.Options, m provider.Message,
) (began bool, err error) {
	b, idempotencyKey, err := newStart(s, o)
	if err != nil {
		return false, err
	}
	doc, _ := m.Data.Document()
	b.InstanceID, b.Orchestration, b.Event, b.Data = "", s.Name, m.Name, doc
	call := apiclient.Call{
		Operation: opPut, Path: []string{s.InstanceID}, InstanceID: s.InstanceID, Key: idempotencyKey, Body: b,
	}
	raise := func(ctx context.Context) error {
		resp, err := apiclient.Get[struct {
			Started bool `json:"started"`
		}](ctx, h.api, call)
		began = resp.Started
		return err
	}
	err = h.call(ctx, clientcall.Start, s.InstanceID, s.Name, func(ctx context.Context) error {
		return h.call(ctx, clientcall.Raise, s.InstanceID, m.Name, raise)
	})
	return began, err
}

// Restart restarts an instance, and returns the ID of the new one.
func (h *Hub) Restart(ctx context.Context, instanceID string, o *starting.Options) (newID string, err error) {
	if err := inputcheck.InstanceID(instanceID); err != nil {
		return "", err
	}
	b := newRestart(o)
	err = h.call(ctx, clientcall.Start, cmp.Or(b.InstanceID, instanceID), "", func(ctx context.Context) error {
		a, err := apiclient.Get[apiwire.AcceptedResponse](ctx, h.api, apiclient.Call{
			Operation: "restartInstance", Path: []string{instanceID}, InstanceID: instanceID, NamesOther: true, Body: b,
			Errors: restartErrors,
		})
		newID = a.InstanceID
		if e, ok := errors.AsType[*provider.AlreadyExistsError](err); ok {
			if e.InstanceID == instanceID { // the API of an earlier release does not return the ID
				e.InstanceID = b.InstanceID
			}
			newID = e.InstanceID
		}
		return err
	})
	return newID, err
}

// versionOf returns the version that the caller set, or nil. An empty version is the default of the deployed build.
func versionOf(o *starting.Options) *string {
	if !o.VersionSet {
		return nil
	}
	return &o.Version
}
