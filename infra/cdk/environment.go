package cdk

import (
	"maps"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// environment is a function's configuration; names and meanings are a format of
// perdure that outlives a release.
type environment map[string]string

// with returns a copy with one more variable, as the CDK wants it.
func (e environment) with(name, value string) *map[string]*string {
	all := map[string]*string{name: jsii.String(value)}
	for key, v := range e {
		all[key] = jsii.String(v)
	}
	return &all
}

// merge returns a new environment of all of them.
func merge(parts ...environment) environment {
	all := environment{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// hubEnvironment is what every function is told.
func (h *TaskHub) hubEnvironment() environment {
	e := environment{
		"PERDURE_HUB":       h.props.HubName,
		"PERDURE_TABLE":     *h.Table.TableName(),
		"PERDURE_INBOX_URL": *h.Inbox.QueueUrl(),
	}
	if h.props.PayloadBucket != nil {
		e["PERDURE_PAYLOAD_BUCKET"] = *h.props.PayloadBucket.BucketName()
	}
	return e
}

// queueEnvironment is for those who send work or look after dead letters.
func (h *TaskHub) queueEnvironment() environment {
	return environment{
		"PERDURE_WORK_QUEUES":  queueURLs(h.workQueues()),
		"PERDURE_DEAD_LETTERS": queueURLs(h.deadLetters()),
	}
}

// timerEnvironment is for those who create or delete timers.
func (h *TaskHub) timerEnvironment() environment {
	return environment{
		"PERDURE_TIMERS_URL":              *h.Timers.QueueUrl(),
		"PERDURE_TIMERS":                  h.props.Timers,
		"PERDURE_TIMERS_ARN":              *h.Timers.QueueArn(),
		"PERDURE_TIMERS_DEAD_LETTERS_ARN": *h.TimersDeadLetters.QueueArn(),
		"PERDURE_SCHEDULE_GROUP":          h.schedule.group,
		"PERDURE_SCHEDULE_ROLE_ARN":       *h.schedule.role.RoleArn(),
		"PERDURE_TIMER_LONGEST_DELAY":     goDuration(h.props.TimerLongestDelay),
		"PERDURE_SCHEDULE_LEAD":           goDuration(h.props.ScheduleLead),
	}
}

func (h *TaskHub) orchestratorEnvironment() environment {
	return merge(h.hubEnvironment(), h.queueEnvironment(), h.timerEnvironment(), h.poisonEnvironment(), h.retentionEnvironment())
}

// retentionEnvironment is for those who end instances: they say when each is to be
// deleted.
func (h *TaskHub) retentionEnvironment() environment {
	if h.props.Retention == nil {
		return nil
	}
	return environment{"PERDURE_RETENTION": goDuration(h.props.Retention)}
}

// poisonEnvironment is for those who run code of the user's.
func (h *TaskHub) poisonEnvironment() environment {
	return environment{"PERDURE_MAX_ATTEMPTS": wholeNumber(h.props.MaxAttempts)}
}

func (h *TaskHub) workerEnvironment(queue string) environment {
	var texts environment
	if h.props.OmitErrorTexts {
		texts = environment{"PERDURE_LOG_ERROR_TEXTS": "false"}
	}
	return merge(h.hubEnvironment(), h.queueEnvironment(), h.poisonEnvironment(), texts, environment{
		"PERDURE_QUEUE":                     queue,
		"PERDURE_LOCK_TIMEOUT":              goDuration(h.props.LockTimeout),
		"PERDURE_LOCK_RENEWAL_BUFFER":       goDuration(h.props.LockRenewalBuffer),
		"PERDURE_CANCEL_POLL_INTERVAL":      goDuration(h.props.CancelPollInterval),
		"PERDURE_CANCELLATION_GRACE_PERIOD": goDuration(h.props.CancellationGracePeriod),
	})
}

func (h *TaskHub) renewerEnvironment() environment {
	return merge(h.hubEnvironment(), h.queueEnvironment(), h.timerEnvironment())
}

func (h *TaskHub) apiEnvironment() environment {
	return merge(h.hubEnvironment(), h.timerEnvironment())
}

// wholeNumber writes n, or the parameter it stands for.
func wholeNumber(n *float64) string {
	if *awscdk.Token_IsUnresolved(n) {
		return *awscdk.Token_AsString(n, nil)
	}
	return strconv.Itoa(int(*n))
}

// goDuration writes d, or the parameter it stands for, as time.ParseDuration reads it.
func goDuration(d awscdk.Duration) string {
	seconds := d.ToSeconds(&awscdk.TimeConversionOptions{Integral: jsii.Bool(false)})
	return *awscdk.Token_AsString(seconds, nil) + "s"
}
