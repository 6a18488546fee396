package probes

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/provider/dynamo"
)

// CallerConfig has calls with the permissions of two roles. The roles exist if there is a function URL.
type CallerConfig struct {
	// Caller has both permissions that a function URL requires, as a hub grants them, and PartialCaller only
	// lambda:InvokeFunctionUrl.
	Caller, PartialCaller RequestAPI
	// CallerFunctions and PartialFunctions invoke functions with these permissions. PartialCaller may invoke the mapped
	// function.
	CallerFunctions, PartialFunctions dynamo.FunctionAPI
}

// callerProbes checks assumptions about the permissions of the callers of a function URL.
type callerProbes struct {
	clock
	CallerConfig

	// Function is the function of the URL, Another is the mapped function.
	FunctionURL, Function, Another string
}

func (p *callerProbes) checks() []Check {
	return []Check{{Name: "url-permissions", Assumptions: []string{"A141"}, Run: p.permissions}}
}

// permissions calls the function URL with both permissions, and with one of them, after another call has shown that the
// permissions of the role are effective. The function itself may not be invoked.
func (p *callerProbes) permissions(ctx context.Context) (string, error) {
	if p.FunctionURL == "" {
		return "", undecided(errNoURL)
	}
	if err := p.untilPermitted(ctx, func() error { return p.call(ctx, p.Caller) }); err != nil {
		return "", fmt.Errorf("a role with both permissions may not call the function URL: %w", err)
	}
	if err := p.untilPermitted(ctx, func() error { return invoke(ctx, p.PartialFunctions, p.Another) }); err != nil {
		return "", fmt.Errorf("a role may not invoke its function: %w", err)
	}
	switch err := p.call(ctx, p.PartialCaller); {
	case err == nil:
		return "", errors.New("a role without lambda:InvokeFunction may call the function URL")
	case !errors.Is(err, errForbidden):
		return "", undecided(err)
	}
	switch err := invoke(ctx, p.CallerFunctions, p.Function); {
	case err == nil:
		return "", errors.New("a role that may call the function URL may invoke the function itself")
	case codeOf(err) != accessDenied:
		return "", undecided(err)
	}
	return "calls require both permissions, which do not permit invocations of the function itself", nil
}

func invoke(ctx context.Context, as dynamo.FunctionAPI, function string) error {
	_, err := as.Invoke(ctx, &lambda.InvokeInput{FunctionName: &function, Payload: []byte(`{"call":{}}`)}, once)
	if err != nil {
		return fmt.Errorf("invoke: %w", err)
	}
	return nil
}

// call sends a request to the function URL.
func (p *callerProbes) call(ctx context.Context, as RequestAPI) error {
	_, err := request(ctx, as, apiclient.ServiceLambda, http.MethodGet, p.FunctionURL+"/v1/one", responseLimit)
	return err
}
