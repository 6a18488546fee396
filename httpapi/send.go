package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/perdure/perdure/client"
)

// AcceptedResponse is the response to a call that sends something to an instance.
type AcceptedResponse struct {
	InstanceID string `json:"instanceId"`
	// NotPaused reports that the status of an instance that is resumed was not Paused. A pause that has not arrived yet
	// is ended too.
	NotPaused bool `json:"notPaused,omitempty"`
}

// raise takes the body as the event's data, whatever JSON it is; none is null.
func (h *handler) raise(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	event, err := pathID(r, "event", "event")
	if err != nil {
		return err
	}
	data, err := readAll(w, r)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		data = []byte("null")
	}
	var opts []client.RaiseOption
	switch key, given, err := idempotencyKey(r); {
	case err != nil:
		return err
	case given:
		opts = append(opts, client.WithEventID(key))
	}
	if err := h.client.RaiseEvent(r.Context(), id, event, json.RawMessage(data), opts...); err != nil {
		return err
	}
	h.asked(r, "raise", ofInstance, id)
	return writeJSON(w, http.StatusAccepted, AcceptedResponse{InstanceID: id})
}

func (h *handler) terminate(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	return h.tell(w, r, "terminate", h.client.Terminate)
}

func (h *handler) cancel(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	return h.tell(w, r, "cancel", h.client.Cancel)
}

func pauseInstance(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	return h.tell(w, r, "pause", h.client.Pause)
}

func resumeInstance(h *handler, w http.ResponseWriter, r *http.Request, _ url.Values) error {
	return h.tell(w, r, "resume", h.client.Resume)
}

// tell sends something to an instance, with the message of the body.
func (h *handler) tell(
	w http.ResponseWriter, r *http.Request, operation string,
	say func(ctx context.Context, instanceID, message string) error,
) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	return tellInstance(h, w, r, operation, id, say)
}

// tellInstance is tell, for an instance that the path names in another way.
func tellInstance(
	h *handler, w http.ResponseWriter, r *http.Request, operation, id string,
	say func(ctx context.Context, instanceID, message string) error,
) error {
	message, err := readMessage(w, r)
	if err != nil {
		return err
	}
	err = say(r.Context(), id, message)
	notPaused := errors.Is(err, client.ErrNotPaused)
	if err != nil && !notPaused {
		return err
	}
	h.asked(r, operation, ofInstance, id)
	return writeJSON(w, http.StatusAccepted, AcceptedResponse{InstanceID: id, NotPaused: notPaused})
}

func (h *handler) cancelActivity(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return err
	}
	activity, err := pathNumber(r, fieldActivityID)
	if err != nil {
		return err
	}
	message, err := readMessage(w, r)
	if err != nil {
		return err
	}
	if err := h.client.CancelActivity(r.Context(), id, activity, message); err != nil {
		return err
	}
	h.asked(r, "cancel activity "+strconv.FormatInt(activity, 10), ofInstance, id)
	return writeJSON(w, http.StatusAccepted, AcceptedResponse{InstanceID: id})
}

// readMessage is why something is ended, of a body that may be missing.
func readMessage(w http.ResponseWriter, r *http.Request) (message string, err error) {
	body, err := readAll(w, r)
	if err == nil && len(body) > 0 {
		err = readObject(body, map[string]any{fieldMessage: &message})
	}
	return message, err
}
