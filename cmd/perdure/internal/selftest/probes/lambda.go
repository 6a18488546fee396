package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
)

// functionError is an error of the function, or of Lambda instead of it.
type functionError struct{ text string }

func (e *functionError) Error() string { return "the function failed: " + e.text }

// call invokes the function. The error is a functionError if the function ended without a response.
func (p *functionProbes) call(ctx context.Context, c *probefunction.Call) (*probefunction.Response, error) {
	payload, err := json.Marshal(map[string]any{"call": c})
	if err != nil {
		return nil, undecided(fmt.Errorf("encode call: %w", err))
	}
	out, err := p.Functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: &p.FunctionName, Payload: payload})
	if err != nil {
		return nil, undecided(fmt.Errorf("invoke: %w", err))
	}
	if out.FunctionError != nil {
		return nil, &functionError{string(out.Payload)}
	}
	var r probefunction.Response
	if err := json.Unmarshal(out.Payload, &r); err != nil {
		return nil, undecided(fmt.Errorf("decode response: %w", err))
	}
	return &r, nil
}

// freeze starts a goroutine that continues after the invocation. A later invocation waits for its end.
func (p *functionProbes) freeze(ctx context.Context) (string, error) {
	const background, pause, clocks = 2 * time.Second, 5 * time.Second, 2 * time.Second
	first, err := p.call(ctx, &probefunction.Call{Background: background})
	if err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, pause); err != nil {
		return "", undecided(err)
	}
	before := p.Now()
	second, err := p.call(ctx, &probefunction.Call{Join: true})
	if err != nil {
		return "", err
	}
	after := p.Now()
	switch {
	case second.Process != first.Process:
		return "", undecided(errors.New("the second invocation ran in another environment"))
	case !second.Joined:
		return "", errors.New("a goroutine did not continue in the next invocation")
	case second.Now.Before(before.Add(-clocks)) || second.Now.After(after.Add(clocks)):
		return "", fmt.Errorf("the clock of the function was %v between %v and %v", second.Now, before, after)
	}
	return "a goroutine continued in the next invocation, and the clock was right", nil
}

// deadline lets the function respond shortly before its deadline.
func (p *functionProbes) deadline(ctx context.Context) (string, error) {
	early := 500 * time.Millisecond
	r, err := p.call(ctx, &probefunction.Call{UntilDeadline: &early})
	if err != nil {
		return "", err
	}
	if r.Remaining < FunctionTimeout*time.Second-time.Second {
		return "", fmt.Errorf("an invocation starts %v before its deadline, the timeout is %d s", r.Remaining,
			FunctionTimeout)
	}
	return fmt.Sprintf("responded %v before the deadline, %v after the start", early,
		(r.Remaining - early).Round(time.Millisecond)), nil
}

// timeout lets the function exceed its timeout.
func (p *functionProbes) timeout(ctx context.Context) (string, error) {
	late := -5 * time.Second
	_, err := p.call(ctx, &probefunction.Call{UntilDeadline: &late})
	failed, ok := errors.AsType[*functionError](err)
	switch {
	case err == nil:
		return "", errors.New("the function responded 5 s after its deadline")
	case !ok:
		return "", err
	case !strings.Contains(failed.text, "Sandbox.Timedout") && !strings.Contains(failed.text, "Task timed out"):
		return "", fmt.Errorf("the error of a timeout is %s", failed.text)
	}
	return failed.text, nil
}

// response requests responses with many characters that JSON escapes.
func (p *functionProbes) response(ctx context.Context) (string, error) {
	const accepted, rejected = 3_000_000, 3_300_000 // twice as many bytes; the limit has 6 MiB
	if r, err := p.call(ctx, &probefunction.Call{Quotes: accepted}); err != nil {
		return "", err
	} else if len(r.Text) != accepted {
		return "", fmt.Errorf("a response has %d of %d characters", len(r.Text), accepted)
	}
	_, err := p.call(ctx, &probefunction.Call{Quotes: rejected})
	failed, ok := errors.AsType[*functionError](err)
	switch {
	case err == nil:
		return "", fmt.Errorf("a response of %d bytes in JSON is accepted", 2*rejected) //nolint:mnd // escaped
	case !ok:
		return "", err
	}
	return fmt.Sprintf("%.100s", failed.text), nil
}
