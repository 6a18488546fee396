package cdk

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/sizes"
	"github.com/perdure/perdure/infra/cdk/internal/tokens"
)

// environment has the environment variables of a function. Their names and meanings are a stable format.
type environment map[string]string

// with returns a copy with an additional variable, in the type of the CDK.
func (e environment) with(name, value string) *map[string]*string {
	all := map[string]*string{name: jsii.String(value)}
	for key, v := range e {
		all[key] = jsii.String(v)
	}
	return &all
}

// merge returns an environment with all variables.
func merge(parts ...environment) environment {
	all := environment{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// environments creates the environments of a hub's functions.
type environments struct{ *TaskHub }

// hubEnvironment returns the variables of all functions.
func (h environments) hubEnvironment() environment {
	e := environment{
		"PERDURE_HUB":       h.props.HubName,
		"PERDURE_TABLE":     *h.Table.TableName(),
		"PERDURE_INBOX_URL": *h.Inbox.QueueUrl(),
	}
	if h.props.LogLevel != "" {
		e["PERDURE_LOG_LEVEL"] = h.props.LogLevel
	}
	if h.props.Metrics != "" {
		e["PERDURE_METRICS"] = h.props.Metrics
	}
	return merge(e, h.payloadEnvironment())
}

// queueEnvironment returns the variables of functions that send work items or process dead letters.
func (h environments) queueEnvironment() environment {
	return environment{
		"PERDURE_WORK_QUEUES":  queueURLs(h.workQueues()),
		"PERDURE_DEAD_LETTERS": queueURLs(h.deadLetters()),
	}
}

// timerEnvironment returns the variables of functions that create or delete timers.
func (h environments) timerEnvironment() environment {
	return environment{
		"PERDURE_TIMERS_URL":              *h.Timers.QueueUrl(),
		"PERDURE_TIMERS":                  h.props.Timers,
		"PERDURE_TIMERS_ARN":              *h.Timers.QueueArn(),
		"PERDURE_TIMERS_DEAD_LETTERS_ARN": *h.TimersDeadLetters.QueueArn(),
		"PERDURE_SCHEDULE_GROUP":          h.schedule.group,
		"PERDURE_SCHEDULE_ROLE_ARN":       *h.schedule.role.RoleArn(),
		"PERDURE_TIMER_LONGEST_DELAY":     tokens.Duration(h.props.MaxTimerDelay),
		"PERDURE_SCHEDULE_LEAD":           tokens.Duration(h.props.ScheduleLead),
	}
}

func (h environments) orchestratorEnvironment() environment {
	return merge(h.hubEnvironment(), h.queueEnvironment(), h.timerEnvironment(), h.poisonEnvironment(),
		optional("PERDURE_RETENTION", h.props.Retention), optional("PERDURE_INLINE_TIMEOUT", h.props.InlineTimeout))
}

// queryEnvironment returns the variables of functions that query instances.
func (h environments) queryEnvironment() environment {
	return environment{"PERDURE_ORCHESTRATOR": h.queryTarget()}
}

// queryTarget returns the ARN of the orchestrator for queries, with its alias if it has one, so that queries run in
// the same build as turns. The ARN is a name and not a reference, because the alias is created after the functions.
func (h *TaskHub) queryTarget() string {
	if h.props.Canary != nil {
		return *h.Orchestrator.FunctionArn() + ":" + liveAlias
	}
	return *h.Orchestrator.FunctionArn()
}

// optional returns a variable with a duration, or nothing if d is nil.
func optional(name string, d awscdk.Duration) environment {
	if d == nil {
		return nil
	}
	return environment{name: tokens.Duration(d)}
}

// poisonEnvironment returns the variables of functions that run user code.
func (h environments) poisonEnvironment() environment {
	return environment{"PERDURE_MAX_ATTEMPTS": tokens.Integer(h.props.MaxCrashes)}
}

func (h environments) workerEnvironment(queue string) environment {
	var texts, timers, querying environment
	if h.props.OmitErrorTexts {
		texts = environment{"PERDURE_LOG_ERROR_TEXTS": "false"}
	}
	if h.queueProps(queue).Client {
		timers, querying = environment{"PERDURE_TIMERS_URL": *h.Timers.QueueUrl()}, h.queryEnvironment()
	}
	return merge(h.hubEnvironment(), h.queueEnvironment(), h.poisonEnvironment(), texts, timers, querying, environment{
		"PERDURE_QUEUE":                     queue,
		"PERDURE_LOCK_TIMEOUT":              tokens.Duration(h.props.LockTimeout),
		"PERDURE_LOCK_RENEWAL_BUFFER":       tokens.Duration(h.props.LockRenewalBuffer),
		"PERDURE_CANCEL_POLL_INTERVAL":      tokens.Duration(h.props.CancelPollInterval),
		"PERDURE_CANCELLATION_GRACE_PERIOD": tokens.Duration(h.props.CancellationGracePeriod),
	})
}

func (h environments) renewerEnvironment() environment {
	return merge(h.hubEnvironment(), h.queueEnvironment(), h.timerEnvironment(), h.schedulesEnvironment())
}

func (h environments) apiEnvironment() environment {
	options := environment{}
	if h.props.UI {
		options["PERDURE_UI"] = "true"
		if origins := h.props.HTTPAPI.pageOrigins(); origins != "" {
			options["PERDURE_UI_ORIGINS"] = origins
		}
	}
	if h.props.DeadLetters {
		options["PERDURE_DEAD_LETTERS"] = queueURLs(h.deadLetters())
	}
	if h.props.StreamURL {
		options["PERDURE_API_STREAM"] = "true"
	}
	return merge(h.hubEnvironment(), h.timerEnvironment(), h.queryEnvironment(), options, environment{
		"PERDURE_WORK_QUEUES":       queueURLs(h.workQueues()),
		"PERDURE_API_AUTHORIZATION": h.props.HTTPAPI.authorization(),
	})
}

// check panics if the names of the hub may exceed a limit on which its deployment would fail.
func (h environments) check() {
	sized := sizes.Hub{
		Name: h.props.HubName, Longest: h.longest, Table: h.tableBytes(),
		Schedules: len(h.schedulesEnvironment()["PERDURE_SCHEDULES"]), Payload: h.Payloads != nil,
	}
	for _, queue := range h.props.WorkQueues {
		q := sizes.WorkQueue{Name: queue}
		if h.queueProps(queue).Exclusive {
			q.ExclusiveSuffix = exclusiveSuffix
		}
		sized.Queues = append(sized.Queues, q)
	}
	if domain := h.props.HTTPAPI.Domain; domain != nil {
		sized.Domain = domain.Name
	}
	if err := sized.Check(); err != nil {
		panic(err)
	}
}

// tableBytes returns the maximum length of the table's name.
func (h environments) tableBytes() int {
	const (
		longestTable = 163 // CloudFormation adds the logical ID and a suffix to the name of the stack
		longestGiven = 255 // DynamoDB's limit
	)
	switch {
	case h.props.Table == nil:
		return h.longest("table", longestTable)
	case isToken(*h.Table.TableName()):
		return longestGiven
	default:
		return len(*h.Table.TableName())
	}
}

// longest returns the length of the name of a resource if NamePrefix determines the name, and most otherwise.
func (h environments) longest(part string, most int) int {
	if h.props.NamePrefix == "" || isToken(h.props.NamePrefix) {
		return most
	}
	return len(*h.name(part))
}
