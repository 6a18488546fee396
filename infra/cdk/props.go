package cdk

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

// Values of [TaskHubProps.Timers].
const (
	TimersSchedules = "schedules" // EventBridge Scheduler for timers of more than 15 minutes
	TimersRequeue   = "hops"      // repeated SQS delays of 15 minutes, for clouds without EventBridge Scheduler
)

// Values of [TaskHubProps.APIKind].
const (
	APIKindHTTP        = "http-api"     // an API Gateway HTTP API, at most 30 s per request
	APIKindFunctionURL = "function-url" // a Lambda function URL, without this limit
)

// Values of [TaskHubProps.Metrics].
const (
	MetricsByHub  = "hub"  // metrics with the hub as dimension
	MetricsByName = "name" // also metrics with the name of the activity or orchestration as dimension
)

// TaskHubProps configures a [TaskHub]. HubName is required. FunctionsDir is required unless every function has its own
// Code. The zero value of every other field selects its default.
type TaskHubProps struct {
	// HubName is the name of the hub. It has at most 20 lower-case letters, digits and hyphens and starts with a
	// letter. Function names contain it.
	HubName string
	// FunctionsDir is a directory with the subdirectories orchestrator, worker, renewer and api. Each one has a Linux
	// binary named bootstrap. It can be empty if every function has its own Code.
	FunctionsDir string
	// Architecture is the architecture of the binaries. Default: arm64.
	Architecture awslambda.Architecture
	// WorkQueues has the names of the work queues, with the same format as HubName. Each work queue has its own worker
	// function and dead-letter queue. Default: one queue with the name default.
	WorkQueues []string
	// WorkQueueProps configures work queues by their names in WorkQueues.
	WorkQueueProps map[string]WorkQueueProps
	// OrchestratorProps, RenewerProps and APIProps configure these functions. Default memory: 512 MB for the
	// orchestrator, 256 MB for the others.
	OrchestratorProps, RenewerProps, APIProps FunctionProps

	// InboxTimeout is the timeout of the orchestrator function. Default: 30 s.
	InboxTimeout awscdk.Duration
	// InboxVisibility is the visibility timeout of the inbox. It must not be less than InboxTimeout. Default: 90 s.
	InboxVisibility awscdk.Duration
	// InlineTimeout limits the time that an inline activity (perdure.Inline) runs in the orchestrator function before
	// it moves to its work queue. A third of InboxTimeout also limits it. 0 disables inline execution. The maximum is 5
	// minutes. Default: 2 s.
	InlineTimeout awscdk.Duration
	// WorkTimeout is the timeout of the worker functions and the visibility timeout of the work queues. It limits the
	// run time of an activity. Default: 900 s, the maximum of Lambda.
	WorkTimeout awscdk.Duration
	// LockTimeout is the duration of a lease that a worker does not renew. Default: 30 s.
	LockTimeout awscdk.Duration
	// LockRenewalBuffer is the time before the end of a lease at which the worker renews it. Default: 5 s.
	LockRenewalBuffer awscdk.Duration
	// CancelPollInterval is the interval at which a worker reads the cancel record. Default: 250 ms.
	CancelPollInterval awscdk.Duration
	// CancellationGracePeriod is the time that a cancelled activity has to return. Default: 10 s.
	CancellationGracePeriod awscdk.Duration
	// MaxCrashes is the number of consecutive crashes that the processing of a single message may cause. After that,
	// the message is poison. Default: 10.
	MaxCrashes *float64
	// OmitErrorTexts removes error messages of activities from the logs of workers. The logs then have only the types
	// of retried errors. Histories always have the messages.
	OmitErrorTexts bool
	// LargePayloads creates an S3 bucket as payload store for payloads of up to 32 MiB, unless PayloadBucket is set.
	// Default: payloads that are too large for a history fail.
	LargePayloads bool
	// Retention is the time that the hub keeps ended instances and past executions. The sweeper then deletes them
	// within a day. The minimum is one hour, and 30 days for past executions. perdure.WithRetention overrides it for an
	// orchestration. Default: without limit.
	Retention awscdk.Duration
	// SweepRate is the schedule of the sweeper as an EventBridge schedule expression. Default: rate(2 minutes).
	SweepRate string
	// Timers is TimersSchedules or TimersRequeue. Default: TimersSchedules.
	Timers string
	// MaxTimerDelay is the longest delay of a timer in its queue, at least 1 s. It is for tests of long timers.
	// Default: 900 s, the maximum of SQS.
	MaxTimerDelay awscdk.Duration
	// ScheduleLead is the time before the due time of a timer at which its EventBridge schedule fires. It must be at
	// least 1 s less than MaxTimerDelay. It is for tests, because EventBridge Scheduler can be a minute late.
	// Default: 120 s.
	ScheduleLead awscdk.Duration

	// InboxConcurrency, TimersConcurrency and WorkConcurrency limit the concurrent invocations of an event source
	// mapping, from 2 to 1,000. Default: only the limit of the account applies, and synthesis prints a warning, because
	// a new account may have only 10 concurrent executions.
	InboxConcurrency, TimersConcurrency, WorkConcurrency int
	// APIConcurrency is the reserved concurrency of the API function, which is also its limit. Default: none, because a
	// new account has no concurrency to reserve.
	APIConcurrency int

	// APIKind is APIKindHTTP or APIKindFunctionURL. IAM authorizes the callers of both, unless HTTPAPI has another
	// authorizer. Default: APIKindHTTP.
	APIKind string
	// StreamURL adds a function URL that sends the events of an instance as the hub commits them (invoke mode
	// RESPONSE_STREAM). With APIKindFunctionURL, the URL of the API does so. IAM must authorize the callers of the API,
	// and of the hub's grants only GrantAPI permits calls of the URL. Each open stream occupies an environment of the
	// API function, and only APIConcurrency limits them. Default: false.
	StreamURL bool
	// UI makes the API function serve the web UI at /ui. A browser cannot sign requests: if IAM authorizes the callers,
	// use perdure ui instead. Default: false.
	UI bool
	// DeadLetters allows the API function to list, redrive and drop dead letters, for the routes under /v1/dead-letters
	// and the web UI. It adds permissions to receive from and delete in the dead-letter queues, and to send to the work
	// queues. The command perdure dead-letters does not need it. Default: false.
	DeadLetters bool
	// Schedules start orchestrations at fixed times.
	Schedules []Schedule
	// HTTPAPI configures the limits, access logs, authorizer, domain and CORS of the HTTP API.
	HTTPAPI HTTPAPIProps
	// Canary shifts traffic to a new build gradually and rolls back if the build fails. Default: a deployment replaces
	// the build immediately.
	Canary *Canary
	// WithoutDeletionProtection deletes the table when the stack is deleted. Default: the table is protected and
	// retained.
	WithoutDeletionProtection bool
	// LogRetention is the retention of the log groups of the functions. Default: 30 days.
	LogRetention awslogs.RetentionDays
	// LogLevel is the log level of the functions: debug, info or warn. The level error is not valid, because alarms
	// depend on log lines with the level warn. Default: info.
	LogLevel string
	// Metrics enables metrics of activities, orchestrations and turns: MetricsByHub or MetricsByName. CloudWatch bills
	// every metric per hub, or per hub and name. Default: only the metrics of alarms.
	Metrics string
	// WithoutAlarms omits the alarms. Alarms of a Canary remain.
	WithoutAlarms bool
	// AlarmTopic receives a notification when an alarm fires and when it clears. Default: no notifications.
	AlarmTopic awssns.ITopic
	// WithoutDashboard omits the dashboard.
	WithoutDashboard bool

	PlatformProps
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// withDefaults returns a copy with all defaults.
func (p TaskHubProps) withDefaults() TaskHubProps {
	seconds := func(d *awscdk.Duration, n float64) {
		if *d == nil {
			*d = awscdk.Duration_Seconds(jsii.Number(n))
		}
	}
	seconds(&p.InboxTimeout, 30)
	seconds(&p.InboxVisibility, 90)
	seconds(&p.WorkTimeout, 900)
	seconds(&p.LockTimeout, 30)
	seconds(&p.LockRenewalBuffer, 5)
	seconds(&p.CancelPollInterval, 0.25)
	seconds(&p.CancellationGracePeriod, 10)
	seconds(&p.MaxTimerDelay, 900)
	seconds(&p.ScheduleLead, 120)
	if p.MaxCrashes == nil {
		p.MaxCrashes = jsii.Number(maxCrashes)
	}
	text := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	text(&p.SweepRate, "rate(2 minutes)")
	text(&p.Timers, TimersSchedules)
	text(&p.APIKind, APIKindHTTP)
	text((*string)(&p.LogRemovalPolicy), string(awscdk.RemovalPolicy_DESTROY))
	text((*string)(&p.QueueRemovalPolicy), string(awscdk.RemovalPolicy_DESTROY))
	if p.WithoutDeletionProtection {
		text((*string)(&p.TableRemovalPolicy), string(awscdk.RemovalPolicy_DESTROY))
	}
	text((*string)(&p.TableRemovalPolicy), string(awscdk.RemovalPolicy_RETAIN))
	if p.Architecture == nil {
		p.Architecture = awslambda.Architecture_ARM_64()
	}
	if len(p.WorkQueues) == 0 {
		p.WorkQueues = []string{"default"}
	}
	if p.LogRetention == "" {
		p.LogRetention = awslogs.RetentionDays_ONE_MONTH
	}
	return p
}

// validate returns an error for props that would fail at deployment or at run time.
func (p TaskHubProps) validate() error {
	if !isToken(p.HubName) && !namePattern.MatchString(p.HubName) {
		return fmt.Errorf("task hub: invalid HubName %q: must match %s", p.HubName, namePattern)
	}
	for _, validate := range []func() error{
		p.validateQueues, p.validateFunctions, func() error { return p.HTTPAPI.validate(p.APIKind, p.StreamURL) },
		func() error { return inField("Schedules", p.validateSchedules()) }, p.validateDurations,
	} {
		if err := validate(); err != nil {
			return fmt.Errorf("task hub %s: %w", p.HubName, err)
		}
	}
	return nil
}

// inField adds the name of a field to an error. It returns nil if err is nil.
func inField(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (p TaskHubProps) validateQueues() error {
	seen := map[string]bool{inboxName: true, timersName: true}
	for _, name := range p.WorkQueues {
		if !namePattern.MatchString(name) {
			return fmt.Errorf("invalid work queue %q: must match %s", name, namePattern)
		}
		if seen[name] {
			return fmt.Errorf("invalid work queue %q: duplicate or reserved name (%s, %s)",
				name, inboxName, timersName)
		}
		seen[name] = true
	}
	return nil
}

func (p TaskHubProps) validateDurations() error {
	switch {
	case shorter(p.InboxVisibility, p.InboxTimeout):
		return errors.New("InboxVisibility must not be less than InboxTimeout")
	case p.InlineTimeout != nil && shorter(awscdk.Duration_Minutes(jsii.Number(5)), p.InlineTimeout):
		return errors.New("InlineTimeout must not be more than 5 minutes")
	case p.Retention != nil && shorter(p.Retention, awscdk.Duration_Hours(jsii.Number(1))):
		return errors.New("Retention must be at least 1 hour") //nolint:staticcheck // the name of a field
	}
	return nil
}

func isToken(s string) bool { return *awscdk.Token_IsUnresolved(s) }

// shorter reports whether a is less than b. It returns false if one of them is a token.
func shorter(a, b awscdk.Duration) bool {
	if *a.IsUnresolved() || *b.IsUnresolved() {
		return false
	}
	return *a.ToMilliseconds(nil) < *b.ToMilliseconds(nil)
}
