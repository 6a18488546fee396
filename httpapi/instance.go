package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// longestWait keeps a call under the 30 s after which API Gateway gives up on it.
const longestWait = 20 * time.Second

// ResultResponse is the status of an instance and, if it has ended, its output or failure.
type ResultResponse struct {
	InstanceID  string               `json:"instanceId"`
	ExecutionID string               `json:"executionId"`
	Status      client.RuntimeStatus `json:"status"`
	Output      json.RawMessage      `json:"output,omitempty"`
	Failure     *history.Failure     `json:"failure,omitempty"`
	// EncodedOutput describes an output that is not returned.
	EncodedOutput *client.EncodedPayload `json:"outputSealed,omitempty"`
}

// NewResultResponse returns the response for the status of an instance.
func NewResultResponse(s client.Status) ResultResponse {
	return ResultResponse{
		InstanceID: s.InstanceID, ExecutionID: s.ExecutionID, Status: s.Status, Output: s.Output, Failure: s.Failure,
		EncodedOutput: s.EncodedOutput,
	}
}

func (h *handler) read(r *http.Request) (client.Status, error) {
	id, err := pathID(r, "id", fieldInstanceID)
	if err != nil {
		return client.Status{}, err
	}
	s, err := h.client.Status(r.Context(), id)
	return shown(s), err
}

// shownOutput is the largest output that is shown: an answer that holds nothing else has room for it, however much of
// it is quotes.
const shownOutput = answerLimit / 4

// shown is a status without an output that is too large for an answer: the command line and the Go client show it.
func shown(s client.Status) client.Status {
	if len(s.Output) > shownOutput {
		s.EncodedOutput, s.Output = &client.EncodedPayload{Bytes: int64(len(s.Output))}, nil
	}
	return s
}

func (h *handler) result(w http.ResponseWriter, r *http.Request, query url.Values) error {
	wait, err := durationParam(query, "wait", longestWait)
	if err != nil {
		return err
	}
	s, err := h.read(r)
	if err == nil && wait > 0 && !s.Status.Terminal() {
		s, err = waitFor(r.Context(), s, wait, h.client.Wait)
	}
	if err != nil {
		return err
	}
	if s.Status.Terminal() {
		return writeJSON(w, http.StatusOK, NewResultResponse(s))
	}
	w.Header().Set("Retry-After", "1")
	return writeJSON(w, http.StatusAccepted, NewResultResponse(s))
}

// waitFor returns how the instance stands at the end of a wait, or, when that takes longer, how it stood at the last
// look.
func waitFor(
	ctx context.Context, before client.Status, longest time.Duration,
	wait func(context.Context, string) (client.Status, error),
) (client.Status, error) {
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	s, err := wait(limited, before.InstanceID)
	s = shown(s)
	switch {
	case err == nil:
		return s, nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && s.InstanceID == "":
		return before, nil // there was no time to look again
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return s, nil
	default:
		return s, err
	}
}

// writeJSON encodes before it writes, so that what cannot be encoded, or is more than an answer holds, can still be
// answered with a problem.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	if size := wireSize(body); size > answerLimit {
		return errAnswerTooLarge("", "the result", size, "use the command line or the Go client")
	}
	w.Header().Set(headerType, "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the caller is gone
	return nil
}
