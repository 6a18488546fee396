package cdk

import (
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
	TimersSchedules = "schedules" // EventBridge Scheduler beyond 15 minutes
	TimersHops      = "hops"      // SQS delays of 15 minutes each, where schedules do not fire
)

// Values of [TaskHubProps.APIKind].
const (
	APIKindHTTP        = "http-api"     // an API Gateway HTTP API, 30 s a request
	APIKindFunctionURL = "function-url" // the function's own URL, without that limit
)

// Values of [TaskHubProps.Metrics].
const (
	MetricsByHub  = "hub"  // a metric has the hub as its dimension
	MetricsByName = "name" // and the name of the activity or orchestration
)

// TaskHubProps says what a [TaskHub] is made of. HubName and FunctionsDir are
// required; the zero value of every other field means its default.
type TaskHubProps struct {
	// HubName is what callers find the hub by: lower-case letters, digits and
	// hyphens, beginning with a letter, at most 20 characters (function names are
	// made of it and of a queue's name, and AWS ends those at 64).
	HubName string
	// FunctionsDir holds orchestrator/, worker/, renewer/ and api/, each with a
	// Linux binary called bootstrap. They may be the team's own. It may be empty
	// where each function has code of its own.
	FunctionsDir string
	// Architecture of those binaries. Default: arm64.
	Architecture awslambda.Architecture
	// WorkQueues names the work queues; each gets a worker function and a
	// dead-letter queue of its own. Named as HubName is. Default: default.
	WorkQueues []string
	// WorkQueueProps says what a queue of WorkQueues has of its own, by its name.
	WorkQueueProps map[string]WorkQueueProps
	// OrchestratorProps, RenewerProps and APIProps say what these functions have of
	// their own. Default memory: 512 MB for the orchestrator, 256 for the others.
	OrchestratorProps, RenewerProps, APIProps FunctionProps

	// InboxTimeout bounds an invocation of the orchestrator. Default: 30 s.
	InboxTimeout awscdk.Duration
	// InboxVisibility must not be below InboxTimeout, or Lambda refuses the
	// mapping. Default: 90 s, so that a throttled delivery is not lost (R19).
	InboxVisibility awscdk.Duration
	// InlineTimeout is how long an inline activity (perdure.Inline) may take in the
	// orchestrator's function before it goes to its work queue; a third of InboxTimeout
	// where that is less. 0: none runs inline. At most 5 minutes. Default: 2 s.
	InlineTimeout awscdk.Duration
	// WorkTimeout bounds an activity in a worker function and is the visibility
	// of its queue. Default: 900 s, Lambda's limit.
	WorkTimeout awscdk.Duration
	// LockTimeout is how long a worker's lock lasts unless it is renewed. Default: 30 s.
	LockTimeout awscdk.Duration
	// LockRenewalBuffer is how long before its end a lock is renewed. Default: 5 s.
	LockRenewalBuffer awscdk.Duration
	// CancelPollInterval is how often a worker reads the cancel record. Default: 250 ms.
	CancelPollInterval awscdk.Duration
	// CancellationGracePeriod is how long a cancelled activity may take to return. Default: 10 s.
	CancellationGracePeriod awscdk.Duration
	// MaxAttempts is how often the code that a message leads to may take its process
	// down, alone and in a row, before the message is poison (R13). Default: 10.
	MaxAttempts *float64
	// OmitErrorTexts keeps what activities fail with out of the workers' logs: of an
	// error that is tried again its type alone is logged. History has it whole.
	OmitErrorTexts bool
	// LargePayloads makes a bucket for inputs, results and outputs that are too large for
	// histories, of up to 32 MiB (R28), unless PayloadBucket is one. Default: they fail.
	LargePayloads bool
	// Retention is how long an instance is kept after its end, and a past execution
	// of one that continues as new: then the renewer deletes it (R21), within a day.
	// At least an hour; past executions are kept for 30 days at least. An orchestration
	// may say otherwise (perdure.WithRetention). Default: for ever.
	Retention awscdk.Duration
	// WatchRate is how often the renewer looks for what is stuck (R11): an
	// EventBridge schedule expression. Default: rate(2 minutes).
	WatchRate string
	// Timers is TimersSchedules (the default) or TimersHops.
	Timers string
	// TimerLongestDelay is how long a timer is delayed by its queue at most, from
	// 1 s. It is for tests of long timers. Default: 900 s, SQS's limit.
	TimerLongestDelay awscdk.Duration
	// ScheduleLead is how long before its timer is due a schedule fires; at least
	// a second less than TimerLongestDelay. It is for tests: Scheduler may be a
	// minute late. Default: 120 s.
	ScheduleLead awscdk.Duration

	// InboxConcurrency, TimersConcurrency and WorkConcurrency cap the invocations a mapping runs at
	// once, 2 to 1,000. Default: no cap but the account's; synthesis warns, since a new account may
	// have only 10 concurrent executions.
	InboxConcurrency, TimersConcurrency, WorkConcurrency int
	// APIConcurrency reserves concurrency for the api function and caps it there.
	// Default: none, because a young account has none to reserve.
	APIConcurrency int

	// APIKind is APIKindHTTP (the default) or APIKindFunctionURL. Both are
	// authorised by IAM, unless HTTPAPI says otherwise.
	APIKind string
	// UI has the api function serve the page at /ui too, to the callers of the API. A
	// browser cannot sign requests: where IAM authorises them, use perdure ui.
	UI bool
	// DeadLetters lets the api function show, redrive and drop dead letters, for its calls below
	// /v1/dead-letters and the page. No other call needs the rights that this takes: to receive and
	// delete in the dead-letter queues, and to send to the work queues. perdure dead does without.
	DeadLetters bool
	// Schedules start orchestrations by the clock.
	Schedules []Schedule
	// HTTPAPI is how the HTTP API is called: limits, logs, who may, domain, CORS.
	HTTPAPI HTTPAPIProps
	// Canary shifts work to a new build bit by bit, and back when that fails. Default: a deployment replaces the build at once.
	Canary *Canary
	// WithoutDeletionProtection lets a delete of the stack delete the table too.
	WithoutDeletionProtection bool
	// LogRetention of the functions' logs. Default: 30 days.
	LogRetention awslogs.RetentionDays
	// LogLevel of the functions: debug, info (the default) or warn. Alarms rest on
	// lines of level warn, so error is refused.
	LogLevel string
	// Metrics are what the functions log of what they do, beside what alarms rest on: MetricsByHub
	// or MetricsByName. CloudWatch bills each metric of each hub, and of each name. Default: none.
	Metrics string
	// WithoutAlarms leaves the alarms out; AlarmTopic is told of those there are.
	WithoutAlarms bool
	AlarmTopic    awssns.ITopic
	// WithoutDashboard leaves the dashboard out.
	WithoutDashboard bool

	PlatformProps
}

var namePattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,19}$`)

// withDefaults returns a copy with every default filled in.
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
	seconds(&p.TimerLongestDelay, 900)
	seconds(&p.ScheduleLead, 120)
	if p.MaxAttempts == nil {
		p.MaxAttempts = jsii.Number(maxAttempts)
	}
	text := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	text(&p.WatchRate, "rate(2 minutes)")
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

// validate refuses what CloudFormation would refuse much later, or never.
func (p TaskHubProps) validate() error {
	if !isToken(p.HubName) && !namePattern.MatchString(p.HubName) {
		return fmt.Errorf("task hub: HubName %q does not match %s", p.HubName, namePattern)
	}
	seen := map[string]bool{deadLettersInbox: true, deadLettersTimers: true}
	for _, name := range p.WorkQueues {
		if !namePattern.MatchString(name) {
			return fmt.Errorf("task hub %s: work queue %q does not match %s", p.HubName, name, namePattern)
		}
		if seen[name] {
			return fmt.Errorf("task hub %s: work queue %q is named twice, or as the hub's own %s or %s",
				p.HubName, name, deadLettersInbox, deadLettersTimers)
		}
		seen[name] = true
	}
	if err := p.validateFunctions(); err != nil {
		return err
	}
	if err := p.HTTPAPI.validate(p.APIKind); err != nil {
		return fmt.Errorf("task hub %s: %w", p.HubName, err)
	}
	if err := p.validateSchedules(); err != nil {
		return fmt.Errorf("task hub %s: Schedules: %w", p.HubName, err)
	}
	if shorter(p.InboxVisibility, p.InboxTimeout) {
		return fmt.Errorf("task hub %s: InboxVisibility is shorter than InboxTimeout", p.HubName)
	}
	if p.InlineTimeout != nil && shorter(awscdk.Duration_Minutes(jsii.Number(5)), p.InlineTimeout) {
		return fmt.Errorf("task hub %s: InlineTimeout is longer than 5 minutes", p.HubName)
	}
	if p.Retention != nil && shorter(p.Retention, awscdk.Duration_Hours(jsii.Number(1))) {
		return fmt.Errorf("task hub %s: Retention is shorter than an hour", p.HubName)
	}
	return nil
}

func isToken(s string) bool { return *awscdk.Token_IsUnresolved(s) }

// shorter says whether a is known to be shorter than b; tokens are not known.
func shorter(a, b awscdk.Duration) bool {
	if *a.IsUnresolved() || *b.IsUnresolved() {
		return false
	}
	return *a.ToMilliseconds(nil) < *b.ToMilliseconds(nil)
}
