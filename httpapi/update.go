package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/client"
)

const (
	fieldUpdate  = "update"
	prefixUpdate = "update_"
)

// longestUpdate is how long a call waits for an update: API Gateway ends one after 30 s.
const longestUpdate = 25 * time.Second

// Updated is the answer to an update.
type Updated struct {
	InstanceID string `json:"instanceId"`
	Update     string `json:"update"`
	// UpdateID is its id: the same call with it as the Idempotency-Key is about the same update. Of one that is done it is absent, unless the
	// caller has given it.
	UpdateID string `json:"updateId,omitempty"`
	// Result is what its handler has returned; absent while it is not done.
	Result json.RawMessage `json:"result,omitempty"`
	// ResultSealed says what the result is where it is not shown.
	ResultSealed *client.SealedPayload `json:"resultSealed,omitempty"`
	// Status is what the instance is, of an update that is not done.
	Status client.RuntimeStatus `json:"status,omitempty"`
}

// updateInstance asks an instance's code to change something, and waits for a while.
func updateInstance(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	key, given, err := idempotencyKey(r)
	if err != nil {
		return err
	}
	var opts []client.UpdateOption
	if given {
		opts = append(opts, client.WithUpdateID(key))
	}
	var update string
	var input json.RawMessage
	if err := readBody(w, r, map[string]any{fieldUpdate: &update, fieldInput: &input}); err != nil {
		return err
	}
	if len(input) == 0 {
		input = json.RawMessage("null")
	}

	ctx, stop := context.WithTimeout(r.Context(), longestUpdate)
	defer stop()
	result, err := h.client.Update(ctx, id, update, input, opts...)
	e, told := errors.AsType[*client.UpdateError](err)
	if err == nil || told {
		h.asked(r, "update", ofInstance, id)
	}
	switch {
	case told && e.Code == client.UpdatePending && r.Context().Err() == nil:
		w.Header().Set("Retry-After", "1")
		return writeJSON(w, http.StatusAccepted, Updated{InstanceID: id, Update: update, UpdateID: e.UpdateID, Status: e.Status})
	case told && e.Code == client.UpdateSealed:
		return writeJSON(w, http.StatusOK, Updated{InstanceID: id, Update: update, UpdateID: key, ResultSealed: e.Sealed})
	case err != nil:
		return err
	case len(result) > shownOutput:
		return writeJSON(w, http.StatusOK, Updated{InstanceID: id, Update: update, UpdateID: key, ResultSealed: &client.SealedPayload{Bytes: int64(len(result))}})
	}
	return writeJSON(w, http.StatusOK, Updated{InstanceID: id, Update: update, UpdateID: key, Result: result})
}

// askingProblem is the problem of a query or an update that has no answer; false for other errors.
func askingProblem(err error) (p problem, ok bool) {
	if p, ok := queryProblem(err); ok {
		return p, true
	}
	return updateProblem(err)
}

// updateProblem is the problem of an update that has no result; false for other errors. None is of 500 and more: what a caller asks must not ring the alarm of the API.
func updateProblem(err error) (p problem, ok bool) {
	e, ok := errors.AsType[*client.UpdateError](err)
	if !ok || e.Code == client.UpdatePending || e.Code == client.UpdateSealed {
		return p, false
	}
	p = problem{Status: http.StatusUnprocessableEntity, Code: prefixUpdate + string(e.Code), Detail: e.Message, Field: fieldUpdate}
	switch e.Code {
	case client.UpdateUnknown:
		p.Status, p.Code = http.StatusNotFound, string(e.Code)
	case client.UpdateBadInput:
		p.Status, p.Field = http.StatusBadRequest, fieldInput
	case client.UpdateTooMany, client.UpdateLeft:
		p.Status, p.Field = http.StatusConflict, fieldInstanceID
	case client.UpdateForgotten:
		p.Status, p.Field = http.StatusGone, headerKey
	case client.UpdateRejected, client.UpdateMisused, client.UpdateFailed, client.UpdatePending, client.UpdateSealed:
	}
	return p, true
}
