package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/perdure/perdure/client/internal/hub"
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/client/internal/updating"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/internal/clientcall"
	"github.com/perdure/perdure/internal/retrybudget"
	"github.com/perdure/perdure/provider"
)

// updated is the response to an update.
type updated struct {
	Result        json.RawMessage              `json:"result"`
	EncodedResult *updating.EncodedResultError `json:"resultSealed"`
	Status        provider.RuntimeStatus       `json:"status"`
	Started       bool                         `json:"started"`
}

// errFailedUpdate is the cause of an update to which the API responded with a problem.
var errFailedUpdate = errors.New("update has no result")

// RunUpdate sends an update and waits for its result, as updating.Update.Run does.
func (h *Hub) RunUpdate(ctx context.Context, u *updating.Update) (*provider.UpdateResult, bool, error) {
	body := map[string]any{"update": u.Name, fieldInput: u.Document()}
	return h.update(ctx, u, &updateCall{field: fieldUpdateID, Call: apiclient.Call{
		Operation: "updateInstance", Path: []string{u.InstanceID}, Body: body,
	}})
}

const (
	fieldUpdateID = "updateId"
	fieldInput    = "input"
)

// CallEntity sends the update of a call of an entity and waits for its result.
func (h *Hub) CallEntity(
	ctx context.Context, entity, entityKey string, u *updating.Update,
) (*provider.UpdateResult, bool, error) {
	return h.update(ctx, u, &updateCall{field: fieldUpdateID, Call: apiclient.Call{
		Operation: "callEntity", Path: []string{entity, entityKey, u.Name},
		Body: map[string]any{fieldInput: u.Document()},
	}})
}

// StartAndUpdate starts an instance unless it exists, sends an update and waits for its result.
func (h *Hub) StartAndUpdate(
	ctx context.Context, s *provider.Start, o *starting.Options, u *updating.Update,
) (result *provider.UpdateResult, began, pending bool, err error) {
	b, _, err := newStart(s, o)
	if err != nil {
		return nil, false, false, err
	}
	b.InstanceID, b.Orchestration, b.Update, b.Data = "", s.Name, u.Name, u.Document()
	result, pending, err = h.update(ctx, u, &updateCall{
		Call:  apiclient.Call{Operation: opPut, Path: []string{s.InstanceID}, Body: b},
		field: "idempotencyKey", orchestration: s.Name, began: &began,
	})
	return result, began, pending, err
}

// updateCall is a call that sends an update.
type updateCall struct {
	apiclient.Call

	field         string // of the update's ID in errors
	orchestration string // that the call starts, or empty
	began         *bool  // whether it started an instance; nil: unused
}

// update sends an update, and repeats the call until the update has a result. The first call runs inside the
// interceptors. Later calls tolerate failures that pass, because the hub has the update.
func (h *Hub) update(
	ctx context.Context, u *updating.Update, call *updateCall,
) (result *provider.UpdateResult, pending bool, err error) {
	call.InstanceID, call.Key = u.InstanceID, u.ID
	if err := key(call.field, u.ID); err != nil {
		return nil, false, err
	}
	send := func(ctx context.Context) error {
		return h.call(ctx, clientcall.Update, u.InstanceID, u.Name, func(ctx context.Context) (err error) {
			result, err = h.updateOnce(ctx, u, call)
			return err
		})
	}
	sent := ctx.Err() == nil // without a response, the update may be on its way
	if call.orchestration != "" {
		err = h.call(ctx, clientcall.Start, u.InstanceID, call.orchestration, send)
	} else {
		err = send(ctx)
	}
	for delay := hub.FirstDelay; err == nil && result == nil; {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		if result, err = h.updateOnce(ctx, u, call); err == nil || !retrybudget.IsTransient(err) {
			delay = hub.FirstDelay
			continue
		}
		delay = min(2*delay, maxUpdateDelay)
		err = h.hub.Sleep(ctx, hub.Jitter(delay))
	}
	pending = sent && err != nil && ctx.Err() != nil &&
		!errors.Is(err, provider.ErrEnded) && !errors.Is(err, provider.ErrNotFound)
	return result, pending, err
}

// maxUpdateDelay is the longest delay between two calls for a result during an outage.
const maxUpdateDelay = 20 * time.Second

// updateOnce makes one call. The result is nil if the update has none yet.
func (h *Hub) updateOnce(
	ctx context.Context, u *updating.Update, call *updateCall,
) (*provider.UpdateResult, error) {
	var failed *provider.UpdateResult
	call.Errors = func(p *apiwire.Problem) error {
		if failed = failedUpdate(p); failed != nil {
			return errFailedUpdate
		}
		return nil
	}
	from := h.hub.Now()
	resp, err := h.api.Do(ctx, call.Call)
	if errors.Is(err, errFailedUpdate) {
		return failed, nil
	}
	if err != nil {
		return nil, err
	}
	var r updated
	if err := resp.Decode(&r); err != nil {
		return nil, err
	}
	if call.began != nil {
		*call.began = *call.began || r.Started
	}
	if resp.Status == http.StatusAccepted {
		u.Status = cmp.Or(r.Status, u.Status)
		return nil, h.pace(ctx, from, resp.RetryAfter)
	}
	if e := r.EncodedResult; e != nil {
		return nil, e
	}
	return &provider.UpdateResult{
		Outcome: provider.UpdateCompleted, Result: history.NewInlinePayload(r.Result),
	}, nil
}

// pace waits before the next long poll unless the last one took a while, so that an API that does not wait is not
// polled without a pause.
func (h *Hub) pace(ctx context.Context, from time.Time, retryAfter time.Duration) error {
	took := h.hub.Now().Sub(from)
	if took >= time.Second && took >= retryAfter {
		return nil
	}
	if err := h.hub.Sleep(ctx, max(retryAfter, time.Second)); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// failedUpdate returns the result of an update that failed, or nil for other problems.
func failedUpdate(p *apiwire.Problem) *provider.UpdateResult {
	code, isUpdate := strings.CutPrefix(p.Code, apiwire.PrefixUpdate)
	if p.Code == apiwire.CodeUnknownUpdate {
		code, isUpdate = history.RejectedNoHandler, true
	}
	if !isUpdate {
		return nil
	}
	return updating.ParseProblem(code, p.Detail, p.Failure, history.Payload(p.Details))
}
