package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
)

// longestWait is less than the 30 seconds after which API Gateway ends a call.
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

// read returns the status of the path's instance.
func (i instances) read(c *call) (client.Status, error) {
	id, err := c.instanceID()
	if err != nil {
		return client.Status{}, err
	}
	s, err := i.client.Status(c.ctx(), id)
	return shown(s), err
}

// shownOutput is the largest output of a response. Its size can double because quotes are escaped twice.
const shownOutput = response.Limit / 4

// shown returns a status without its output if the output is too large for a response. The command line and the Go
// client return such an output.
func shown(s client.Status) client.Status {
	if len(s.Output) > shownOutput {
		s.EncodedOutput, s.Output = &client.EncodedPayload{Bytes: int64(len(s.Output))}, nil
	}
	return s
}

func (i instances) result(c *call) error {
	wait, err := request.Duration(c.query, "wait", longestWait)
	if err != nil {
		return err
	}
	s, err := i.read(c)
	if err == nil && wait > 0 && !s.Status.Terminal() {
		s, err = waitFor(c.ctx(), s, wait, i.client.Wait)
	}
	if err != nil {
		return err
	}
	if s.Status.Terminal() {
		return c.reply(http.StatusOK, NewResultResponse(s))
	}
	c.w.Header().Set("Retry-After", "1")
	return c.reply(http.StatusAccepted, NewResultResponse(s))
}

// waitFor returns the status after a wait. If the wait takes too long, it returns the last known status.
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
		return before, nil // there was no time for another read
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return s, nil
	default:
		return s, err
	}
}
