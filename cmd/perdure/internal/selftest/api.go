package selftest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/client/sigv4"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app"
	"github.com/perdure/perdure/cmd/perdure/internal/selftest/probes"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider"
)

// outputAPI is the output of the stack with the URL of the HTTP API.
const outputAPI = "ApiUrl"

// dialAPI returns a client of the HTTP API that signs its requests. The hosts of APIs do not resolve in a local cloud,
// which serves them at its endpoint.
func dialAPI(cfg *aws.Config, address string, more ...client.DialOption) (*client.Client, error) {
	opts := append([]client.DialOption{sigv4.WithConfig(*cfg)}, more...)
	local, err := localClient(cfg)
	if err != nil {
		return nil, err
	}
	if local != nil {
		opts = append(opts, client.WithHTTPClient(local))
	}
	return client.Dial(address, opts...)
}

// newRequests returns a sender of requests to APIs and function URLs.
func newRequests(cfg *aws.Config, now func() time.Time) (*awsrequest.Sender, error) {
	local, err := localClient(cfg)
	if err != nil {
		return nil, err
	}
	own := *cfg
	if local != nil {
		own.HTTPClient = local
	}
	return awsrequest.New(&own, now), nil
}

// localClient returns an HTTP client for the APIs of a local cloud, or nil.
func localClient(cfg *aws.Config) (*http.Client, error) {
	if cfg.BaseEndpoint == nil {
		return nil, nil //nolint:nilnil // AWS
	}
	endpoint, err := url.Parse(*cfg.BaseEndpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint of AWS: %w", err)
	}
	return &http.Client{Transport: &localTransport{endpoint}}, nil
}

// localTransport sends requests to an endpoint, with the hosts of their URLs in the header Host.
type localTransport struct{ endpoint *url.URL }

// RoundTrip implements http.RoundTripper.
func (t *localTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.Host = r.URL.Host
	sent.URL.Scheme, sent.URL.Host = t.endpoint.Scheme, t.endpoint.Host
	return http.DefaultTransport.RoundTrip(sent)
}

// callAPI runs an instance over the HTTP API. Its ID has characters that paths encode.
func (o *operator) callAPI(ctx context.Context, id string) error {
	const steps = 5
	id += " ä%2B?+#1"
	if _, err := o.api.Start(ctx, app.Steps, steps, client.WithInstanceID(id)); err != nil {
		return err
	}
	if err := o.checkStream(ctx, o.api, id, steps); err != nil {
		return err
	}
	s, err := o.api.Wait(ctx, id)
	if err != nil {
		return err
	}
	if err := checkOutput(&s, steps); err != nil {
		return err
	}
	if s.InstanceID != id {
		return fmt.Errorf("status of instance %q has the ID %q", id, s.InstanceID)
	}
	_, err = o.api.Start(ctx, app.Steps, steps, client.WithInstanceID(id))
	if err := wantError("second start", err, client.ErrAlreadyExists); err != nil {
		return err
	}
	if err := o.api.Purge(ctx, id); err != nil {
		return err
	}
	_, err = o.client.Status(ctx, id)
	return wantError("status of a purged instance", err, client.ErrNotFound)
}

// recordCaller cancels one instance directly and one over the HTTP API. Their histories must record the same caller,
// which API Gateway reports.
func (o *operator) recordCaller(ctx context.Context) (string, error) {
	direct, err := o.cancelled(ctx, o.client)
	if err != nil {
		return "", &probes.UndecidedError{Cause: err}
	}
	reported, err := o.cancelled(ctx, o.api)
	if err != nil {
		return "", &probes.UndecidedError{Cause: err}
	}
	if direct == history.RequestedByClient {
		return "", &probes.UndecidedError{Cause: errors.New("STS did not return the caller of the client")}
	}
	if reported != direct {
		return "", fmt.Errorf("the histories record the caller %q of the API, and %q of the client", reported, direct)
	}
	return direct, nil
}

// cancelled cancels an instance with a client, and returns the caller that its history records.
func (o *operator) cancelled(ctx context.Context, c *client.Client) (caller string, err error) {
	id, err := c.Start(ctx, app.Receive, "never")
	if err != nil {
		return "", err
	}
	if err := c.Cancel(ctx, id, "self-test"); err != nil {
		return "", err
	}
	if _, err := c.Wait(ctx, id); err != nil {
		return "", err
	}
	for e, err := range o.client.History(ctx, id) {
		if err != nil {
			return "", err
		}
		if e.Kind == history.CancelRequested {
			caller = e.RequestedBy
		}
	}
	return caller, nil
}

// idempotencyKey is the header that the API rejects if a gateway has joined two values.
const idempotencyKey = "Idempotency-Key"

// repeatKey adds a second value of the header before the request is signed.
func repeatKey(c *apiclient.Config) error {
	sign := c.Authenticate
	c.Authenticate = func(ctx context.Context, r *http.Request, body []byte) error {
		r.Header.Add(idempotencyKey, "another")
		return sign(ctx, r, body)
	}
	return nil
}

// repeatHeader starts an instance with two idempotency keys, which the API must reject.
func (o *operator) repeatHeader(ctx context.Context) error {
	id, err := o.repeatingAPI.Start(ctx, app.Greet, "twice")
	if field, ok := errors.AsType[*provider.FieldError](err); ok && field.Field == idempotencyKey {
		return nil
	}
	if err == nil {
		return fmt.Errorf("instance %s was started with two values of %s", id, idempotencyKey)
	}
	return &probes.UndecidedError{Cause: err}
}

// longWait requests the result of a running instance for as long as the API allows. API Gateway must not end the
// request before the API responds.
func (o *operator) longWait(ctx context.Context) (string, error) {
	const limit, cut, responseLimit = 20 * time.Second, 5 * time.Second, 1 << 20
	if o.probes.APIURL == "" {
		return "", &probes.UndecidedError{Cause: probes.ErrNoAPI}
	}
	id, err := o.client.Start(ctx, app.Receive, "never")
	if err != nil {
		return "", &probes.UndecidedError{Cause: err}
	}
	defer func() { _ = o.client.Terminate(ctx, id, "") }() // the stack is deleted
	began := o.now()
	response, err := o.probes.Requests.Do(ctx, &awsrequest.Request{
		Operation: "wait for result", Service: apiclient.ServiceAPIGateway, Method: http.MethodGet,
		URL: fmt.Sprintf("%s/v1/instances/%s/result?wait=%v", o.address, id, limit),
	}, responseLimit)
	took := o.now().Sub(began).Round(time.Millisecond)
	if err == nil {
		err = fmt.Errorf("a request for %v gets status %d after %v: %.200s", limit, response.Status, took,
			response.Body)
	}
	switch {
	case response == nil && (took < cut || ctx.Err() != nil):
		return "", &probes.UndecidedError{Cause: err}
	case response == nil: // the connection was cut
		return "", fmt.Errorf("after %v: %w", took, err)
	case response.Status == http.StatusAccepted && took >= limit:
		return fmt.Sprintf("a request for %v gets its response after %v", limit, took), nil
	case response.Status >= http.StatusInternalServerError && took >= cut:
		return "", err
	default:
		return "", &probes.UndecidedError{Cause: err}
	}
}
