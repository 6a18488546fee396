package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

const (
	fieldUpdate  = "update"
	prefixUpdate = "update_"
)

// longestUpdate is how long a call waits for an update: API Gateway ends one after 30 s.
const longestUpdate = 25 * time.Second

// UpdateResponse is the response to an update.
type UpdateResponse struct {
	InstanceID string `json:"instanceId"`
	Update     string `json:"update"`
	// UpdateID is the update's ID. Repeat the call with it as the Idempotency-Key to continue waiting. It is empty if
	// the update is completed and the caller gave no ID.
	UpdateID string `json:"updateId,omitempty"`
	// Result is the handler's result. It is nil if the update is not completed.
	Result json.RawMessage `json:"result,omitempty"`
	// EncodedResult describes a result that is not returned.
	EncodedResult *client.EncodedPayload `json:"resultSealed,omitempty"`
	// Status is the last known status of the instance if the update is not completed.
	Status client.RuntimeStatus `json:"status,omitempty"`
	// Started and Links are those of a PUT that sends the update, like in type Started. Otherwise they are nil.
	Started *bool  `json:"started,omitempty"`
	Links   *Links `json:"links,omitempty"`
}

// NewPendingUpdateResponse returns the response to a PUT that sends an update, before the update is completed.
func NewPendingUpdateResponse(instanceID, update, updateID string, started bool) UpdateResponse {
	links := NewStartResponse(instanceID).Links
	return UpdateResponse{InstanceID: instanceID, Update: update, UpdateID: updateID, Started: &started, Links: &links}
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

	u := UpdateResponse{InstanceID: id, Update: update, UpdateID: key}
	return answerUpdate(h, w, r, fieldUpdate, &u, func(ctx context.Context) (json.RawMessage, error) {
		return h.client.Update(ctx, id, update, input, opts...)
	})
}

// answerUpdate answers with what an update comes to in time. The operation is for the log.
func answerUpdate(
	h *handler, w http.ResponseWriter, r *http.Request, operation string, u *UpdateResponse,
	ask func(ctx context.Context) (json.RawMessage, error),
) error {
	ctx, stop := context.WithTimeout(r.Context(), longestUpdate)
	defer stop()
	result, err := ask(ctx)
	e, told := errors.AsType[*client.UpdateError](err)
	if err == nil || told {
		h.asked(r, operation, ofInstance, u.InstanceID)
	}
	switch {
	case told && e.Code == client.UpdatePending && r.Context().Err() == nil:
		w.Header().Set("Retry-After", "1")
		u.UpdateID, u.Status = e.UpdateID, e.Status
		return writeJSON(w, http.StatusAccepted, u)
	case told && e.Code == client.UpdateResultEncoded:
		u.EncodedResult = e.EncodedResult
	case err != nil:
		return err
	case len(result) > shownOutput:
		u.EncodedResult = &client.EncodedPayload{Bytes: int64(len(result))}
	default:
		u.Result = result
	}
	return writeJSON(w, http.StatusOK, u)
}

// detailsIn are the details that the code has given an error; nil where they are not to be had.
func detailsIn(err error) json.RawMessage {
	details, err := perdure.ErrorDetails[json.RawMessage](err)
	if err != nil {
		return nil
	}
	return details
}

// askingProblem is the problem of a query or an update that has no answer; false for other errors.
func askingProblem(err error) (p problem, ok bool) {
	if p, ok := queryProblem(err); ok {
		return p, true
	}
	return updateProblem(err)
}

// ofData is the error of an update whose input the caller calls data.
func ofData(err error) error {
	p, ok := updateProblem(err)
	if !ok || p.Field != fieldInput {
		return err
	}
	p.Field = fieldData
	return &p
}

// updateProblem is the problem of an update that has no result; false for other errors. None is of 500 and more: what a
// caller asks must not ring the alarm of the API.
func updateProblem(err error) (p problem, ok bool) {
	e, ok := errors.AsType[*client.UpdateError](err)
	if !ok || e.Code == client.UpdatePending || e.Code == client.UpdateResultEncoded {
		return p, false
	}
	p = problem{
		Status: http.StatusUnprocessableEntity, Code: prefixUpdate + string(e.Code), Detail: e.Message,
		Field: fieldUpdate, Details: detailsIn(err),
	}
	switch e.Code {
	case client.UpdateHandlerNotFound:
		p.Status, p.Code = http.StatusNotFound, string(e.Code)
	case client.UpdateBadInput:
		p.Status, p.Field = http.StatusBadRequest, fieldInput
	case client.UpdateLimitExceeded, client.UpdateAborted:
		p.Status, p.Field = http.StatusConflict, fieldInstanceID
	case client.UpdateResultExpired:
		p.Status, p.Field = http.StatusGone, headerKey
	case client.UpdateRejected, client.UpdateValidatorNotReadOnly, client.UpdateFailed, client.UpdatePending,
		client.UpdateResultEncoded:
	}
	return p, true
}
