package dynamo

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/provider"
)

// HubConfig contains the names and URLs of a task hub's resources. Name, Table and InboxURL are required. Processes
// that run turns or process timers require all fields, and workers require WorkQueues and DeadLetters. The JSON is the
// format of the hub's SSM parameter.
type HubConfig struct {
	Name     string `json:"hub"`
	Table    string `json:"table"`
	InboxURL string `json:"inboxUrl"`
	// WorkQueues contains the URLs of the work queues by name.
	WorkQueues map[string]string `json:"workQueues"`
	TimersURL  string            `json:"timersUrl"`
	// DeadLetters contains the URLs of the dead-letter queues by queue: provider.QueueInbox, provider.QueueTimers and
	// each work queue.
	DeadLetters map[string]string `json:"deadLetters"`

	// TimerMode selects how timers beyond the maximum delay of a queue are held: TimersSchedules or TimersRequeue. The
	// default is TimersRequeue. The following fields are required for TimersSchedules.
	TimerMode     string `json:"timers"`
	ScheduleGroup string `json:"scheduleGroup"`
	// ScheduleRoleARN is the role with which EventBridge Scheduler sends.
	ScheduleRoleARN      string `json:"scheduleRoleArn"`
	TimersARN            string `json:"timersArn"`
	TimersDeadLettersARN string `json:"timersDeadLettersArn"`

	// Orchestrator is the ARN or name of the function that runs queries, with its alias if it has one. If it is empty,
	// queries are not available.
	Orchestrator string `json:"orchestrator"`

	// PayloadBucket is the bucket of the payload store. If it is empty, there is no payload store.
	PayloadBucket string `json:"payloadBucket,omitempty"`
}

// The values of HubConfig.TimerMode. It selects how to hold timers that exceed the maximum delay of a queue.
const (
	TimersSchedules = "schedules" // a one-time EventBridge schedule sends them to the queue
	TimersRequeue   = "hops"      // they are resent with the maximum delay until they are due; each resend is a hop
)

func (h HubConfig) validate() error {
	if err := missing(
		[2]string{"hub", h.Name}, [2]string{"table", h.Table}, [2]string{"inboxUrl", h.InboxURL},
	); err != nil {
		return fmt.Errorf("dynamo: hub %q: %w", h.Name, err)
	}
	if h.TimerMode != "" && h.TimerMode != TimersSchedules && h.TimerMode != TimersRequeue {
		problem := fmt.Sprintf("is %q, but must be %s or %s", h.TimerMode, TimersSchedules, TimersRequeue)
		return fmt.Errorf("dynamo: hub %q: %w", h.Name, &provider.FieldError{Field: "timers", Problem: problem})
	}
	return nil
}

// missing returns an error for the first of these names whose value is empty.
func missing(fields ...[2]string) error {
	for _, f := range fields {
		if f[1] == "" {
			return &provider.FieldError{Field: f[0], Problem: "is missing"}
		}
	}
	return nil
}

// Clients contains the AWS clients of a Provider. The provider retries by itself, so it disables the retries of SDK
// clients.
type Clients struct {
	Table  TableAPI
	Queues QueueAPI
	// Schedules is required if timers are held with schedules.
	Schedules ScheduleAPI
	// Functions is required for queries (QueryInstance).
	Functions FunctionAPI
	// Bucket is required if the hub has a PayloadBucket.
	Bucket BucketAPI
}

// Option configures a Provider.
type Option func(*settings)

// settings are declared in an internal package, so that functions and tests of the module can set values that have no
// public option.
type settings = dynamoknobs.Settings

// WithClock sets the clock for timestamps and delays. The default is time.Now.
func WithClock(now func() time.Time) Option { return func(s *settings) { s.Now = now } }

// WithLogger sets the logger. The default is slog.Default().
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.Log = l } }

// defaults returns the settings before options are applied.
func defaults() settings {
	return settings{
		// The default clock has no monotonic reading, because a frozen Lambda stops that.
		Now:          func() time.Time { return time.Now().Round(0) }, //nolint:forbidigo // the default clock
		Log:          slog.Default(),
		LongestDelay: dynamoknobs.LongestDelay,
		ScheduleLead: dynamoknobs.ScheduleLead,
		Rollup:       dynamoknobs.Rollup,
	}
}
