// Package probes checks assumptions about AWS with queues, a table, a schedule group, Lambda functions, an HTTP API and
// alarms and rules that nothing else uses.
package probes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider/dynamo"
)

// Check checks assumptions about AWS.
type Check struct {
	// Name is the name of the check in docs/internals/aws-assumptions.md. Assumptions are IDs of its entries.
	Name        string
	Assumptions []string
	// Slow is true if the check waits for minutes.
	Slow bool
	// Run returns a description of the observation. An error means that the account behaves differently, or, if it is
	// an UndecidedError, that the check could not decide.
	Run func(ctx context.Context) (detail string, err error)
}

// UndecidedError reports that a check could not decide.
type UndecidedError struct{ Cause error }

// Error implements error.
func (e *UndecidedError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *UndecidedError) Unwrap() error { return e.Cause }

// QueueURLs are the queues for the checks.
type QueueURLs struct {
	// StandardURL and FIFOURL are queues for messages of 1 MiB.
	StandardURL, FIFOURL string
	// RedriveURL is a FIFO queue that moves messages to DeadLettersURL after MaxReceives receives.
	RedriveURL, DeadLettersURL string
	// PurgeURL is a standard queue that is purged.
	PurgeURL string
	// RateURL is a FIFO queue for many messages.
	RateURL string
	// FairURL is a standard queue for messages of several tenants, which stay in it.
	FairURL string
	// ScheduleDeadURL is a standard queue for dead letters of schedules.
	ScheduleDeadURL string
}

// Probes has the resources for the checks.
type Probes struct {
	dynamo.Clients

	QueueURLs
	FunctionConfig
	GatewayConfig
	AlarmNames
	RuleNames
	OperatorConfig
	CallerConfig
	AliasConfig
	// TableName has the keys pk and sk, and the index byGS with the keys gs and sk.
	TableName string
	// ThrottledTableName has the same keys and index, with TableUnits and IndexUnits.
	ThrottledTableName string
	// Hub has the schedule group, a queue and a role for its schedules, and the bucket of the payload store.
	Hub     dynamo.HubConfig
	Metrics MetricAPI
	Logs    LogAPI
	// Requests sends requests to the gateways.
	Requests RequestAPI
	Now      func() time.Time
	Sleep    func(ctx context.Context, d time.Duration) error
}

// All returns groups of checks, which may run concurrently. Run the checks of a group one after the other. The slow
// checks wait for minutes.
func (p *Probes) All() (checks, slow [][]Check) {
	c := clock{p.Now, p.Sleep}
	messages := &queueClient{p.Queues}
	queues := &queueProbes{clock: c, queueClient: messages, QueueURLs: p.QueueURLs}
	table := &tableProbes{clock: c, Table: p.Table, TableName: p.TableName}
	schedules := &scheduleProbes{
		clock: c, Schedules: p.Schedules, Hub: p.Hub, Queues: messages, DeadURL: p.ScheduleDeadURL,
	}
	objects := &objectProbes{Objects: p.Bucket, Bucket: p.Hub.PayloadBucket}
	function := &functionClient{
		clock: c, FunctionConfig: p.FunctionConfig, Functions: p.Functions, Queues: messages, Table: table,
	}
	mappings := &mappingProbes{function}
	functions := &lambdaProbes{
		functionClient: function, AlarmNames: p.AlarmNames, RuleNames: p.RuleNames,
		Metrics: p.Metrics, Logs: p.Logs, Hub: p.Hub.Name,
	}
	gateways := &gatewayProbes{c, p.GatewayConfig, p.Requests}
	operator := &operatorProbes{c, p.OperatorConfig}
	callers := &callerProbes{c, p.CallerConfig, p.FunctionURL, p.CalledName, p.MappedName}
	aliases := &aliasProbes{functionClient: function, AliasConfig: p.AliasConfig}
	throttled := &throttleProbes{c, p.Table, p.ThrottledTableName, p.Metrics}
	// The gateways call the same function as the checks of Lambda, which need one environment.
	checks = append(mappings.checks(), slices.Concat(functions.checks(), gateways.checks(), callers.checks()),
		slices.Concat(queues.checks(), table.checks(), schedules.checks(), objects.checks(), operator.checks()))
	slow = append(slices.Concat(mappings.slowChecks(), functions.slowChecks()),
		schedules.slowChecks(), throttled.slowChecks(), queues.slowChecks(), aliases.slowChecks())
	for _, group := range slices.Concat(checks, slow) {
		for i := range group {
			run := group[i].Run
			group[i].Run = func(ctx context.Context) (string, error) {
				detail, err := run(ctx)
				if showsNothing(err) {
					err = undecided(err)
				}
				return detail, err
			}
		}
	}
	return checks, slow
}

const accessDenied = "AccessDeniedException"

// showsNothing reports whether an error means that a call was not processed, or that its response was lost.
func showsNothing(err error) bool {
	code := codeOf(err)
	return isThrottling(code) || awsrequest.IsTransient(err) || slices.Contains([]string{
		"AccessDenied", accessDenied, "ExpiredToken", "ExpiredTokenException",
	}, code)
}

// isThrottling reports whether an error code means that a call was throttled.
func isThrottling(code string) bool {
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	return throttled
}

// undecided returns an UndecidedError, or nil.
func undecided(err error) error {
	if err == nil {
		return nil
	}
	return &UndecidedError{err}
}

// codeOf returns the code of an error response, or "".
func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}
