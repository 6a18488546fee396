package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/perdure/perdure/cmd/perdure/internal/selftest/app/probefunction"
)

// lambdaProbes checks assumptions about Lambda functions.
type lambdaProbes struct {
	*functionClient

	AlarmNames
	RuleNames

	Metrics MetricAPI
	Logs    LogAPI
	Hub     string
}

// checks returns checks that call the function one after the other. A concurrent call would start another environment.
func (p *lambdaProbes) checks() []Check {
	return []Check{
		{Name: "lambda-freeze", Assumptions: []string{"A51"}, Run: p.freeze},
		{Name: "lambda-deadline", Assumptions: []string{"A53", "A62"}, Run: p.deadline},
		{Name: "lambda-size", Assumptions: []string{"A57"}, Run: p.size},
		{Name: "iam-leading-keys", Assumptions: []string{"A151"}, Run: p.leadingKeys},
	}
}

// slowChecks returns groups of checks that wait for minutes.
func (p *lambdaProbes) slowChecks() [][]Check {
	return [][]Check{
		{{Name: "lambda-async", Assumptions: []string{"A66"}, Run: p.async, Slow: true}},
		{{Name: "lambda-log-level", Assumptions: []string{"A59", "A60"}, Run: p.logLevel, Slow: true}},
		{{Name: "cloudwatch-metrics", Assumptions: []string{"A181"}, Run: p.metrics, Slow: true}},
		{{Name: "cloudwatch-filter", Assumptions: []string{"A182"}, Run: p.filteredLines, Slow: true}},
		{{Name: "rule-metric", Assumptions: []string{"A122"}, Run: p.disabledRule, Slow: true}},
		{{Name: "cloudwatch-alarms", Assumptions: []string{"A183"}, Run: p.missingData, Slow: true}},
	}
}

// freeze starts a goroutine that continues after the invocation, and looks at it in a later one.
func (p *lambdaProbes) freeze(ctx context.Context) (string, error) {
	const tries = 5
	for range tries {
		detail, err := p.freezeOnce(ctx)
		if detail != "" || err != nil {
			return detail, err
		}
	}
	return "", undecided(fmt.Errorf("%d times, the next invocation ran in another environment", tries))
}

// freezeOnce returns an empty detail if the invocations ran in different environments.
func (p *lambdaProbes) freezeOnce(ctx context.Context) (detail string, err error) {
	const pause, joined, clocks = 5 * time.Second, time.Second, 2 * time.Second
	const half = 2 // of the ticks that are possible
	first, err := p.call(ctx, &probefunction.Call{Count: true})
	if err != nil {
		return "", err
	}
	before := p.Now()
	if err := p.Sleep(ctx, pause); err != nil {
		return "", undecided(err)
	}
	second, err := p.call(ctx, &probefunction.Call{Duration: joined})
	if err != nil || second.Process != first.Process {
		return "", err
	}
	elapsed, local := second.Now.Sub(first.Now), p.Now().Sub(before)
	frozen, thawed := second.FirstTicks-first.Ticks, second.Ticks-second.FirstTicks
	switch {
	case frozen > int64(pause/probefunction.Tick/half):
		return "", fmt.Errorf("a goroutine counted %d ticks between two invocations", frozen)
	case thawed < int64(joined/probefunction.Tick/half):
		return "", fmt.Errorf("a goroutine counted %d ticks in the next invocation of %v", thawed, joined)
	case (elapsed - local).Abs() > clocks:
		return "", fmt.Errorf("the clock of the function advanced by %v in %v", elapsed, local)
	}
	return fmt.Sprintf("a goroutine counted %d ticks in %v between two invocations, and %d in the next one of %v",
		frozen, pause, thawed, joined), nil
}

// deadline lets the function respond shortly before its deadline, and after it.
func (p *lambdaProbes) deadline(ctx context.Context) (string, error) {
	const timeout, starts = FunctionTimeout * time.Second, 3 * time.Second
	early, late := 500*time.Millisecond, -2*starts
	r, err := p.call(ctx, &probefunction.Call{UntilDeadline: &early})
	if failed, ok := errors.AsType[*functionError](err); ok && failed.isTimeout() {
		return "", fmt.Errorf("%v before its deadline: %w", early, failed)
	}
	if err != nil {
		return "", err
	}
	if r.Remaining < timeout-time.Second {
		return "", fmt.Errorf("an invocation starts %v before its deadline, the timeout is %v", r.Remaining, timeout)
	}
	began := p.Now()
	_, err = p.call(ctx, &probefunction.Call{UntilDeadline: &late})
	took := p.Now().Sub(began).Round(time.Millisecond)
	failed, ok := errors.AsType[*functionError](err)
	switch {
	case err != nil && !ok, ok && took < timeout:
		return "", err
	case err == nil || took > timeout+starts:
		return "", fmt.Errorf("an invocation with a timeout of %v ended after %v", timeout, took)
	case !failed.isTimeout():
		return "", fmt.Errorf("the error of a timeout is %s", failed.text)
	}
	return fmt.Sprintf("responded %v before the deadline; later, ended after %v with %s", early, took, failed.text), nil
}

// size sends large requests, and requests responses with many characters that JSON escapes.
func (p *lambdaProbes) size(ctx context.Context) (string, error) {
	const accepted, rejected = 3_112_000, 3_300_000
	const escaped = 2 // bytes of a quotation mark; the API sends up to 6,225,920 bytes
	r, err := p.call(ctx, &probefunction.Call{Quotes: accepted})
	if failed, ok := errors.AsType[*functionError](err); ok && failed.isTooLarge() {
		return "", fmt.Errorf("a response of %d bytes in JSON is rejected", escaped*accepted)
	}
	if err != nil {
		return "", err
	}
	if len(r.Text) != accepted {
		return "", fmt.Errorf("a response has %d of %d characters", len(r.Text), accepted)
	}
	_, err = p.call(ctx, &probefunction.Call{Quotes: rejected})
	failed, ok := errors.AsType[*functionError](err)
	switch {
	case err == nil:
		return "", fmt.Errorf("a response of %d bytes in JSON is accepted", escaped*rejected)
	case !ok || !failed.isTooLarge():
		return "", err
	}
	_, err = p.call(ctx, &probefunction.Call{Padding: strings.Repeat("x", escaped*rejected)})
	if err == nil {
		return "", fmt.Errorf("a request of %d bytes is accepted", escaped*rejected)
	}
	if !strings.Contains(codeOf(err), "TooLarge") {
		return "", undecided(err)
	}
	return fmt.Sprintf("response: %.100s; request: %s", failed.text, codeOf(err)), nil
}

// leadingKeys lets the function put items whose partition keys its role allows, and others, alone and in a transaction.
func (p *lambdaProbes) leadingKeys(ctx context.Context) (string, error) {
	const denied = "AccessDeniedException"
	allowed, other := probefunction.Partition("iam-leading-keys"), otherName
	for _, c := range []struct {
		partitions []string
		allowed    bool
	}{
		{[]string{allowed}, true},
		{[]string{allowed, allowed + "-2"}, true},
		{[]string{other}, false},
		{[]string{allowed, other}, false},
	} {
		r, err := p.call(ctx, &probefunction.Call{Partitions: c.partitions})
		switch {
		case err != nil:
			return "", err
		case c.allowed && r.Code == denied:
			return "", fmt.Errorf("a put of %q is denied: %s", c.partitions, r.Error)
		case !c.allowed && r.Error == "":
			return "", fmt.Errorf("a put of %q is allowed", c.partitions)
		case c.allowed && r.Error != "" || !c.allowed && r.Code != denied:
			return "", undecided(fmt.Errorf("put of %q: %s", c.partitions, r.Error))
		}
	}
	return "puts and transactions with other partition keys are denied", nil
}

// async invokes the function asynchronously with a message that fails. By default, Lambda would retry after a minute.
func (p *lambdaProbes) async(ctx context.Context) (string, error) {
	const check, wait = "lambda-async", 90 * time.Second
	body, err := json.Marshal(probefunction.Task{Check: check, Name: check, Failure: probefunction.Returned})
	if err != nil {
		return "", undecided(err)
	}
	payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: check, Body: string(body),
		Attributes: map[string]string{probefunction.AttributeCount: "1", probefunction.AttributeFirst: "0"},
	}}})
	if err != nil {
		return "", undecided(err)
	}
	if _, err := p.Functions.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &p.MappedName, InvocationType: lambdatypes.InvocationTypeEvent, Payload: payload,
	}, once); err != nil {
		return "", undecided(fmt.Errorf("invoke: %w", err))
	}
	if _, err := p.await(ctx, check, map[string]int{check: 1}); err != nil {
		return "", err
	}
	if err := p.Sleep(ctx, wait); err != nil {
		return "", undecided(err)
	}
	all, err := p.records(ctx, check)
	if err != nil {
		return "", err
	}
	for i := range all[1:] { // another request is a duplicate of the event
		if r := &all[i+1]; r.Invocation == all[0].Invocation {
			return "", fmt.Errorf("a failed invocation was repeated after %v", r.StartedAt.Sub(all[0].StartedAt))
		}
	}
	return fmt.Sprintf("no retry in %v", wait), nil
}
