package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
)

// httpHolder completes activities by their tokens, through the HTTP API.
type httpHolder struct{}

func (httpHolder) CompleteActivity(ctx context.Context, token string, result any) error {
	return post(ctx, "/activities/complete", map[string]any{"token": token, "result": result}, nil)
}

func (httpHolder) FailActivity(ctx context.Context, token string, err error) error {
	e, ok := errors.AsType[*httpapi.ExternalError](err)
	if !ok {
		return fmt.Errorf("none that travels: %w", err)
	}
	reported := map[string]any{"message": e.Message, "nonRetryable": e.Permanent}
	if e.Type != "" {
		reported["type"] = e.Type
	}
	return post(ctx, "/activities/fail", map[string]any{"token": token, "error": reported}, nil)
}

func (httpHolder) HeartbeatActivity(ctx context.Context, token string, details any) (
	cancel provider.CancelInfo, err error,
) {
	var callResponse struct {
		Cancel *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"cancel"`
	}
	err = post(ctx, "/activities/heartbeat", map[string]any{"token": token, "details": details}, &callResponse)
	if c := callResponse.Cancel; c != nil {
		cancel.Requested, cancel.Reason, cancel.Message = true, c.Reason, c.Message
	}
	return cancel, err
}

// post calls the API with a body. It returns problems with a token as a client.TokenError.
func post(ctx context.Context, path string, body, callResponse any) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hub.api+path, bytes.NewReader(doc))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	read := json.NewDecoder(response.Body)
	if response.StatusCode < http.StatusBadRequest {
		if callResponse == nil {
			return nil
		}
		return read.Decode(callResponse)
	}
	var problem struct {
		Code   string `json:"code"`
		Field  string `json:"field"`
		Detail string `json:"detail"`
	}
	if err := read.Decode(&problem); err != nil {
		return fmt.Errorf("HTTP %d: %w", response.StatusCode, err)
	}
	if problem.Field == "token" {
		return &client.TokenError{Reason: client.TokenErrorReason(problem.Code)}
	}
	return fmt.Errorf("HTTP %d %s: %s", response.StatusCode, problem.Code, problem.Detail)
}
