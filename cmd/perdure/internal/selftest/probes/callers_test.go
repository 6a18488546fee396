package probes

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/perdure/perdure/internal/awsrequest"
)

// invocations have an error.
type invocations struct{ err error }

func (i invocations) Invoke(
	context.Context, *lambda.InvokeInput, ...func(*lambda.Options),
) (*lambda.InvokeOutput, error) {
	return &lambda.InvokeOutput{}, i.err
}

// laterRole can be assumed after a time.
type laterRole struct {
	RequestAPI

	exists time.Time
}

func (r *laterRole) Do(ctx context.Context, in *awsrequest.Request, most int64) (*awsrequest.Response, error) {
	if time.Now().Before(r.exists) {
		return nil, errDenied
	}
	return r.RequestAPI.Do(ctx, in, most)
}

func TestCallerProbes_permissions_decide(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		change    func(c *CallerConfig)
		undecided bool
	}{
		"": {change: func(c *CallerConfig) { c.Caller = &laterRole{c.Caller, time.Now().Add(20 * time.Second)} }},
		"a role without lambda:InvokeFunction may call the function URL": {
			change: func(c *CallerConfig) { c.PartialCaller = c.Caller },
		},
		"a role that may call the function URL may invoke the function itself": {
			change: func(c *CallerConfig) { c.CallerFunctions = invocations{} },
		},
		"a role with both permissions may not call the function URL: forbidden: GET ": {
			change: func(c *CallerConfig) { c.Caller = c.PartialCaller }, undecided: true,
		},
		"/v1/one: status 502": {
			change: func(c *CallerConfig) { c.PartialCaller = rejecting(http.StatusBadGateway) }, undecided: true,
		},
		"a role may not invoke its function: invoke: api error AccessDeniedException": {
			change: func(c *CallerConfig) { c.PartialFunctions = invocations{errDenied} }, undecided: true,
		},
		"invoke: lost": {
			change: func(c *CallerConfig) { c.CallerFunctions = invocations{errors.New("lost")} }, undecided: true,
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := simulated(t, nil)
			c.change(&p.CallerConfig)
			_, err := p.check("url-permissions").Run(t.Context())
			_, open := errors.AsType[*UndecidedError](err)
			if (err == nil) != (want == "") || open != c.undecided || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}
