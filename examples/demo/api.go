package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// api is a client of the HTTP API.
type api struct {
	base   string
	client *http.Client
}

func newAPI() *api {
	return &api{base: cmp.Or(os.Getenv("PERDURE_API"), "http://127.0.0.1:8080/v1"), client: http.DefaultClient}
}

// start starts an instance, optionally after a delay. It accepts an existing instance of an earlier run.
func (a *api) start(ctx context.Context, orchestration, instanceID, delay string, input any) error {
	fields := map[string]any{"instanceId": instanceID, "input": input}
	if delay != "" {
		fields["delay"] = delay
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return a.post(ctx, "/orchestrations/"+orchestration, body, http.StatusConflict)
}

// raise raises an external event without data. It accepts an instance of an earlier run that has ended.
func (a *api) raise(ctx context.Context, instanceID, event string) error {
	return a.post(ctx, "/instances/"+url.PathEscape(instanceID)+"/events/"+url.PathEscape(event), nil, http.StatusGone)
}

// cancel cancels an instance. It accepts an instance of an earlier run that has ended.
func (a *api) cancel(ctx context.Context, instanceID, message string) error {
	body, err := json.Marshal(map[string]string{"message": message})
	if err != nil {
		return err
	}
	return a.post(ctx, "/instances/"+url.PathEscape(instanceID)+"/cancel", body, http.StatusGone)
}

// post sends a request. It expects status 202 and also accepts the status fine.
func (a *api) post(ctx context.Context, path string, body []byte, fine int) error {
	status, answer, err := a.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	if status != http.StatusAccepted && status != fine {
		return fmt.Errorf("HTTP %d: %s", status, answer)
	}
	return nil
}

// history returns the events after an event.
func (a *api) history(ctx context.Context, instanceID string, after int64) ([]history.Event, error) {
	return items[history.Event](ctx, a, instanceID, "/history?after="+strconv.FormatInt(after, 10))
}

// cancellations returns the cancellations of an instance.
func (a *api) cancellations(ctx context.Context, instanceID string) ([]client.Cancellation, error) {
	return items[client.Cancellation](ctx, a, instanceID, "/cancellations")
}

// items returns a page of a list of an instance.
func items[T any](ctx context.Context, a *api, instanceID, what string) ([]T, error) {
	status, answer, err := a.call(ctx, http.MethodGet, "/instances/"+url.PathEscape(instanceID)+what, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d: %s", status, answer)
	}
	var page struct {
		Items []T `json:"items"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return nil, err
	}
	return page.Items, nil
}

func (a *api) call(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := a.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}
