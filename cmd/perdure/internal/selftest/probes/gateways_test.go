package probes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
	"github.com/perdure/perdure/internal/awsrequest"
)

// simulatedGateways are an HTTP API and a function URL.
type simulatedGateways struct {
	function *simulatedFunction
	// differences from the assumptions
	oneRoute, forwardsPreflight, anyOrigin, noMethods, decodes, otherHost bool
	// optionsStatus is the status of preflight requests, unless it is 0.
	optionsStatus int
	deployed      time.Time // until then, the API has one route
	most          int       // the number of bytes that a stream can have, unless it is 0
	breaks        bool      // the connection of a longer one is closed
	rejects       int       // the status of a longer one, unless it is 0
}

const (
	apiURL      = "https://a.execute-api.eu-west-1.amazonaws.com"
	functionURL = "https://b.lambda-url.eu-west-1.on.aws"
	streamURL   = "https://c.lambda-url.eu-west-1.on.aws"
)

func (g *simulatedGateways) Do(
	ctx context.Context, r *awsrequest.Request, _ int64,
) (*awsrequest.Response, error) {
	if g.function.mistake.denied {
		return nil, errDenied
	}
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	e := &probefunction.Event{Request: probefunction.Request{
		RawPath: u.EscapedPath(), RequestContext: probefunction.RequestContext{DomainName: u.Host},
	}}
	header := http.Header{}
	switch {
	case strings.HasPrefix(r.URL, functionURL), strings.HasPrefix(r.URL, streamURL):
		if r.Service != "lambda" {
			return &awsrequest.Response{Status: http.StatusForbidden}, nil
		}
		if g.decodes {
			e.RawPath = u.Path
		}
		if g.otherHost {
			e.RequestContext.DomainName = "b.example"
		}
	case r.Method == http.MethodOptions && !g.forwardsPreflight:
		if r.Header["Origin"] == AllowedOrigin || g.anyOrigin {
			header.Set("Access-Control-Allow-Origin", r.Header["Origin"])
			header.Set("Access-Control-Allow-Headers", "authorization")
		}
		if !g.noMethods {
			header.Set("Access-Control-Allow-Methods", "GET,POST")
		}
		return &awsrequest.Response{Status: cmp.Or(g.optionsStatus, http.StatusNoContent), Header: header}, nil
	case r.Method != http.MethodOptions && r.Service != "execute-api":
		return &awsrequest.Response{Status: http.StatusForbidden}, nil
	case r.Method+" "+u.Path == RouteOfOne && !g.oneRoute && !time.Now().Before(g.deployed):
		e.RouteKey = RouteOfOne
	default:
		e.RouteKey = RouteOfAll
	}
	result, err := g.function.Handle(ctx, e)
	if err != nil {
		return nil, err
	}
	if stream, ok := result.(*events.LambdaFunctionURLStreamingResponse); ok {
		body, err := io.ReadAll(stream.Body)
		if g.most > 0 && len(body) > g.most {
			body = body[:g.most]
			switch {
			case g.breaks:
				return nil, &smithyhttp.RequestSendError{Err: fmt.Errorf("lost: %w", io.ErrUnexpectedEOF)}
			case g.rejects != 0:
				return &awsrequest.Response{Status: g.rejects}, nil
			}
		}
		return &awsrequest.Response{Status: http.StatusOK, Header: header, Body: body}, err
	}
	response, _ := result.(*events.APIGatewayV2HTTPResponse)
	return &awsrequest.Response{Status: response.StatusCode, Header: header, Body: []byte(response.Body)}, nil
}

func TestGatewayProbes_accountDiffers_checkReportsIt(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		check    string
		gateways simulatedGateways
	}{
		"POST /v1/one takes the route ANY /v1/{proxy+}":   {"api-routes", simulatedGateways{oneRoute: true}},
		"the function receives preflight requests":        {"api-cors", simulatedGateways{forwardsPreflight: true}},
		"Allow-Origin of https://other.example is https":  {"api-cors", simulatedGateways{anyOrigin: true}},
		`status 204 with the Access-Control-Allow-Meth`:   {"api-cors", simulatedGateways{noMethods: true}},
		"a preflight request gets status 403":             {"api-cors", simulatedGateways{optionsStatus: 403}},
		"the path /v1/a%2Fb arrives as /v1/a/b":           {"url-paths", simulatedGateways{decodes: true}},
		"the domain name of a function URL is b.example":  {"url-paths", simulatedGateways{otherHost: true}},
		"of 8000000 bytes arrives with 6000000 bytes":     {"lambda-stream", simulatedGateways{most: 6_000_000}},
		"8000000 bytes: the connection is closed before ": {"lambda-stream", simulatedGateways{most: 6_000_000, breaks: true}},
		"/stream/8000000: status 502":                     {"lambda-stream", simulatedGateways{most: 6_000_000, rejects: 502}},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			c.gateways.function, _ = p.Functions.(*simulatedFunction)
			p.Requests = &c.gateways
			_, err := p.check(c.check).Run(t.Context())
			_, open := errors.AsType[*UndecidedError](err)
			if err == nil || open || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", c.check, err, want)
			}
		})
	}
}

// Requests that do not reach the function show nothing.
func TestGatewayProbes_otherCause_isUndecided(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		check  string
		change func(p *Probes)
	}{
		"the hub has no HTTP API":       {"api-routes", func(p *Probes) { p.APIURL = "" }},
		"the hub has no function URL":   {"url-paths", func(p *Probes) { p.FunctionURL = "" }},
		"/stream/1: status 502":         {"lambda-stream", func(p *Probes) { p.Requests = rejecting(http.StatusBadGateway) }},
		"has no function URL":           {"lambda-stream", func(p *Probes) { p.StreamURL = "" }},
		"/stream/8000000: status 429":   {"lambda-stream", func(p *Probes) { rejectLong(p, http.StatusTooManyRequests) }},
		"forbidden: GET https://c":      {"lambda-stream", func(p *Probes) { rejectLong(p, http.StatusForbidden) }},
		"status 403":                    {"api-routes", func(p *Probes) { p.Requests = rejecting(http.StatusForbidden) }},
		"preflight request: status 429": {"api-cors", func(p *Probes) { p.Requests = rejecting(http.StatusTooManyRequests) }},
		"preflight request: status 503": {"api-cors", func(p *Probes) { p.Requests = rejecting(http.StatusServiceUnavailable) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			c.change(p)
			_, err := p.check(c.check).Run(t.Context())
			if _, open := errors.AsType[*UndecidedError](err); !open || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// rejectLong gives long streams a status.
func rejectLong(p *Probes, status int) {
	g, _ := p.Requests.(*simulatedGateways)
	g.most, g.rejects = 1, status
}

// A new API does not have all its routes at once.
func TestGatewayProbes_routesAreDeployedLater_hold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := simulated(t, nil)
		g, _ := p.Requests.(*simulatedGateways)
		g.deployed = time.Now().Add(20 * time.Second)
		if detail, err := p.check("api-routes").Run(t.Context()); err != nil {
			t.Errorf("got %q, %v", detail, err)
		}
	})
}

// rejecting rejects all requests with a status.
type rejecting int

func (r rejecting) Do(context.Context, *awsrequest.Request, int64) (*awsrequest.Response, error) {
	return &awsrequest.Response{Status: int(r), Body: []byte(`{"message":"no"}`)}, nil
}

// The metrics and alarms of the account differ from the assumptions, or show nothing.
func TestMetricProbes_accountDiffers_checkReportsIt(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		check     string
		metrics   simulatedMetrics
		undecided bool
	}{
		"breaching:INSUFFICIENT_DATA": {check: "cloudwatch-alarms", metrics: simulatedMetrics{breaching: "INSUFFICIENT_DATA"}},
		"of a disabled rule has 2":    {check: "rule-metric", metrics: simulatedMetrics{values: 1, disabled: 2}},
		"no data after 5m0s":          {check: "rule-metric", undecided: true},
		"selfTestFiltered false adds": {check: "cloudwatch-filter", metrics: simulatedMetrics{values: 1, disabled: 2}},
		"a line is not counted after": {check: "cloudwatch-filter"},
		"does not count a throttled PutItem after 6m0s": {
			check: "dynamodb-throttle-metric", metrics: simulatedMetrics{values: 1, uncounted: "PutItem"},
		},
		"does not count a throttled TransactWriteItems after 6m0s": {
			check: "dynamodb-throttle-metric", metrics: simulatedMetrics{values: 1, uncounted: "TransactWriteItems"},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			p.Metrics = &c.metrics
			f, _ := p.Functions.(*simulatedFunction)
			f.serve(t)
			_, err := p.check(c.check).Run(t.Context())
			_, open := errors.AsType[*UndecidedError](err)
			if err == nil || open != c.undecided || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", c.check, err, want)
			}
		})
	}
}

// throttledMetrics throttles the first calls.
type throttledMetrics struct {
	MetricAPI

	calls int
}

func (m *throttledMetrics) err() error {
	if m.calls--; m.calls >= 0 {
		return &smithy.GenericAPIError{Code: "ThrottlingException", Message: "slow down"}
	}
	return nil
}

func (m *throttledMetrics) Total(ctx context.Context, of Metric, since time.Time) (float64, error) {
	if err := m.err(); err != nil {
		return 0, err
	}
	return m.MetricAPI.Total(ctx, of, since)
}

func (m *throttledMetrics) AlarmStates(ctx context.Context, names ...string) (map[string]string, error) {
	if err := m.err(); err != nil {
		return nil, err
	}
	return m.MetricAPI.AlarmStates(ctx, names...)
}

// A throttled read is repeated until the time limit of the check.
func TestMetricProbes_throttledReads_areRepeated(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cloudwatch-metrics", "cloudwatch-alarms", "rule-metric", "dynamodb-throttle-metric", "cloudwatch-filter"} {
		for calls, want := range map[int]string{3: "", 1_000: "slow down"} {
			synctest.Test(t, func(t *testing.T) {
				p := simulated(t, nil)
				f, _ := p.Functions.(*simulatedFunction)
				f.serve(t)
				p.Metrics = &throttledMetrics{p.Metrics, calls}
				_, err := p.check(name).Run(t.Context())
				_, open := errors.AsType[*UndecidedError](err)
				if open != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", name, err, want)
				}
			})
		}
	}
}

// The function decodes an event of each gateway, and messages and calls are no requests.
func TestEvent_eachSource_isDecoded(t *testing.T) {
	t.Parallel()
	for text, isRequest := range map[string]bool{
		`{"version":"2.0","routeKey":"POST /v1/one","rawPath":"/v1/one","headers":{},"requestContext":{"domainName":"a","http":{"method":"POST"}}}`: true,
		`{"version":"2.0","routeKey":"$default","rawPath":"/","requestContext":{"domainName":"b"},"isBase64Encoded":false}`:                         true,
		`{"Records":[{"messageId":"1"}]}`: false,
		`{"call":{"quotes":1}}`:           false,
	} {
		var e probefunction.Event
		err := json.Unmarshal([]byte(text), &e)
		if got := e.RawPath != "" && e.RequestContext.DomainName != ""; err != nil || got != isRequest {
			t.Errorf("%s: got %+v, %v", text, e, err)
		}
	}
}
