package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/awsrequest"
)

// The HTTP API of the probe function has the kinds of routes and the CORS configuration that the API of a hub can have.
const (
	RouteOfAll     = "ANY /v1/{proxy+}"
	RouteOfOne     = "POST /v1/one"
	PreflightRoute = "OPTIONS /v1/{proxy+}"
	AllowedOrigin  = "https://selftest.example"
)

// GatewayConfig has the URLs of the probe functions, without a final slash.
type GatewayConfig struct {
	// APIURL is that of the HTTP API. It is empty if the hub has a function URL instead.
	APIURL string
	// FunctionURL is that of the function URL, and StreamURL that of one with the invoke mode RESPONSE_STREAM. They are
	// empty if the hub has an HTTP API.
	FunctionURL, StreamURL string
}

// RequestAPI sends requests. *awsrequest.Sender implements it.
type RequestAPI interface {
	Do(ctx context.Context, r *awsrequest.Request, most int64) (*awsrequest.Response, error)
}

// gatewayProbes checks assumptions about API Gateway and function URLs.
type gatewayProbes struct {
	clock
	GatewayConfig

	Requests RequestAPI
}

func (p *gatewayProbes) checks() []Check {
	return []Check{
		{Name: "api-routes", Assumptions: []string{"A134"}, Run: p.routes},
		{Name: "api-cors", Assumptions: []string{"A135"}, Run: p.preflight},
		{Name: "url-paths", Assumptions: []string{"A140"}, Run: p.paths},
		{Name: "lambda-stream", Assumptions: []string{"A63"}, Run: p.stream},
	}
}

const responseLimit = 1 << 20

// ErrNoAPI means that the hub has a function URL instead of an HTTP API.
var ErrNoAPI = errors.New("the hub has no HTTP API")

var (
	errNoURL     = errors.New("the hub has no function URL")
	errForbidden = errors.New("forbidden")
)

// request sends a request to the function, and returns the body of its response. A response with status 403 is
// errForbidden.
func request(ctx context.Context, as RequestAPI, service, method, url string, most int64) ([]byte, error) {
	response, err := as.Do(ctx, &awsrequest.Request{
		Operation: "call the probe function", Service: service, Method: method, URL: url,
	}, most)
	if err != nil {
		return nil, err
	}
	if response.Status == http.StatusOK {
		return response.Body, nil
	}
	err = fmt.Errorf("%s %s: status %d: %s", method, url, response.Status, response.Body)
	switch response.Status {
	case http.StatusForbidden:
		err = fmt.Errorf("%w: %w", errForbidden, err)
	case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
		err = undecided(err)
	}
	return nil, err
}

// call sends a request to the function. It returns the request that the function has received.
func (p *gatewayProbes) call(ctx context.Context, service, method, url string) (*probefunction.Request, error) {
	body, err := request(ctx, p.Requests, service, method, url, responseLimit)
	if err != nil {
		return nil, undecided(err)
	}
	received := &probefunction.Request{}
	if err := json.Unmarshal(body, received); err != nil {
		return nil, undecided(fmt.Errorf("%s %s: decode %s: %w", method, url, body, err))
	}
	return received, nil
}

// routes sends requests that one route matches, and one that two routes match.
func (p *gatewayProbes) routes(ctx context.Context) (string, error) {
	if p.APIURL == "" {
		return "", undecided(ErrNoAPI)
	}
	const limit, pause = time.Minute, 5 * time.Second // an API deploys its routes one after the other
	return RouteOfOne + " wins over " + RouteOfAll, p.until(ctx, limit, pause, func() (wrong, err error) {
		for _, want := range []struct{ method, path, route string }{
			{http.MethodPost, "/v1/one", RouteOfOne},
			{http.MethodGet, "/v1/one", RouteOfAll},
			{http.MethodPost, "/v1/one/more", RouteOfAll},
		} {
			got, err := p.call(ctx, apiclient.ServiceAPIGateway, want.method, p.APIURL+want.path)
			if err != nil {
				return nil, err
			}
			if got.RouteKey != want.route {
				return fmt.Errorf("%s %s takes the route %s", want.method, want.path, got.RouteKey), nil
			}
		}
		return nil, nil
	})
}

// preflight sends the preflight requests of web pages of two origins.
func (p *gatewayProbes) preflight(ctx context.Context) (string, error) {
	if p.APIURL == "" {
		return "", undecided(ErrNoAPI)
	}
	const another, allowed = "https://other.example", "Access-Control-Allow-Origin"
	response, err := p.options(ctx, AllowedOrigin)
	if err != nil {
		return "", err
	}
	received := probefunction.Request{}
	if json.Unmarshal(response.Body, &received) == nil && received.RawPath != "" {
		return "", errors.New("the function receives preflight requests")
	}
	for _, want := range []struct{ name, value string }{
		{allowed, AllowedOrigin},
		{"Access-Control-Allow-Methods", http.MethodPost},
		{"Access-Control-Allow-Headers", "authorization"},
	} {
		got := response.Header.Get(want.name)
		if response.Status >= http.StatusMultipleChoices || !strings.Contains(got, want.value) {
			return "", fmt.Errorf("a preflight request gets status %d with the %s %q", response.Status, want.name, got)
		}
	}
	if response, err = p.options(ctx, another); err != nil {
		return "", err
	}
	if got := response.Header.Get(allowed); got == another || got == "*" {
		return "", fmt.Errorf("the %s of %s is %s", allowed, another, got)
	}
	return "only the configured origin is allowed", nil
}

// options sends a preflight request of a web page.
func (p *gatewayProbes) options(ctx context.Context, origin string) (*awsrequest.Response, error) {
	response, err := p.Requests.Do(ctx, &awsrequest.Request{
		Operation: "preflight request", Method: http.MethodOptions, URL: p.APIURL + "/v1/one",
		Header: map[string]string{
			"Origin": origin, "Access-Control-Request-Method": http.MethodPost,
			"Access-Control-Request-Headers": "authorization",
		},
	}, responseLimit)
	if err != nil {
		return nil, undecided(err)
	}
	if s := response.Status; s == http.StatusTooManyRequests || s >= http.StatusInternalServerError {
		return nil, undecided(fmt.Errorf("preflight request: status %d", s))
	}
	return response, nil
}

// paths sends a path with an encoded slash to the function URL.
func (p *gatewayProbes) paths(ctx context.Context) (string, error) {
	const path, host = "/v1/a%2Fb", ".lambda-url."
	if p.FunctionURL == "" {
		return "", undecided(errNoURL)
	}
	got, err := p.call(ctx, apiclient.ServiceLambda, http.MethodGet, p.FunctionURL+path)
	switch {
	case err != nil:
		return "", err
	case !strings.Contains(got.RequestContext.DomainName, host):
		return "", fmt.Errorf("the domain name of a function URL is %s", got.RequestContext.DomainName)
	case got.RawPath != path:
		return "", fmt.Errorf("the path %s arrives as %s", path, got.RawPath)
	}
	return "the path arrives as it was sent, at " + got.RequestContext.DomainName, nil
}

// stream reads a short stream, and one that is longer than the 6 MB of a response that is not streamed.
func (p *gatewayProbes) stream(ctx context.Context) (string, error) {
	const long, limit, pause = 8_000_000, time.Minute, 5 * time.Second
	if p.StreamURL == "" {
		return "", undecided(errNoURL)
	}
	read := func(bytes int) error {
		body, err := request(ctx, p.Requests, apiclient.ServiceLambda, http.MethodGet,
			p.StreamURL+probefunction.StreamPath+strconv.Itoa(bytes), long+responseLimit)
		if err == nil && len(body) != bytes {
			err = fmt.Errorf("a stream of %d bytes arrives with %d bytes", bytes, len(body))
		}
		return err
	}
	if err := p.untilPermitted(ctx, func() error { return read(1) }); err != nil {
		return "", err
	}
	if err := p.until(ctx, limit, pause, func() (missing, err error) {
		missing = read(long)
		switch {
		case errors.Is(missing, io.ErrUnexpectedEOF): // decides, unlike other lost responses
			missing = errors.New("the connection is closed before the end")
		case errors.Is(missing, errForbidden):
			missing = undecided(missing)
		}
		return missing, nil
	}); err != nil {
		return "", fmt.Errorf("a stream of %d bytes: %w", long, err)
	}
	return fmt.Sprintf("a stream of %d bytes arrives", long), nil
}
