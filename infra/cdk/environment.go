package cdk

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
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
		"PERDURE_TIMER_LONGEST_DELAY":     goDuration(h.props.MaxTimerDelay),
		"PERDURE_SCHEDULE_LEAD":           goDuration(h.props.ScheduleLead),
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
	return environment{name: goDuration(d)}
}

// poisonEnvironment returns the variables of functions that run user code.
func (h environments) poisonEnvironment() environment {
	return environment{"PERDURE_MAX_ATTEMPTS": wholeNumber(h.props.MaxCrashes)}
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
		"PERDURE_LOCK_TIMEOUT":              goDuration(h.props.LockTimeout),
		"PERDURE_LOCK_RENEWAL_BUFFER":       goDuration(h.props.LockRenewalBuffer),
		"PERDURE_CANCEL_POLL_INTERVAL":      goDuration(h.props.CancelPollInterval),
		"PERDURE_CANCELLATION_GRACE_PERIOD": goDuration(h.props.CancellationGracePeriod),
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

// wholeNumber formats n or its token.
func wholeNumber(n *float64) string {
	if *awscdk.Token_IsUnresolved(n) {
		return *awscdk.Token_AsString(n, nil)
	}
	return strconv.Itoa(int(*n))
}

// goDuration formats d or its token for time.ParseDuration.
func goDuration(d awscdk.Duration) string {
	seconds := d.ToSeconds(&awscdk.TimeConversionOptions{Integral: jsii.Bool(false)})
	return *awscdk.Token_AsString(seconds, nil) + "s"
}

// Limits of a function's environment and of the hub's configuration in bytes, and the maximum lengths of values that
// are references in the template.
const (
	mostEnvironment = 4096
	mostConfig      = 4096 // a standard parameter of Systems Manager
	longestURL      = 57   // https://sqs.cn-northwest-1.amazonaws.com.cn/123456789012/
	longestName     = 80
	longestTable    = 163  // CloudFormation adds the logical ID and a suffix to the name of the stack
	longestBucket   = 95   // PERDURE_PAYLOAD_BUCKET with a name of 63 characters
	longestEndpoint = 73   // https://<32 characters>.lambda-url.ap-southeast-1.on.aws
	otherVariables  = 1400 // measured with all names at their maximum length
	otherFields     = 845  // of the configuration, measured without the names of the queues and the table
	bucketField     = 82   // payloadBucket with a name of 63 characters
)

// check panics if the URLs of the queues may exceed the environment of a function or the hub's configuration.
// Otherwise, the deployment would fail when CloudFormation creates the orchestrator or the parameter.
func (h environments) check() {
	urls := h.workQueueBytes()
	total := otherVariables + urls + len(h.payloadEnvironment())*longestBucket +
		len(h.schedulesEnvironment()["PERDURE_SCHEDULES"])
	if total > mostEnvironment {
		panic(fmt.Errorf("task hub %s: the environment of a function may need %d bytes for %d work queues and "+
			"Schedules, "+
			"the limit is %d: shorten NamePrefix, create schedules through the API, or split the hub",
			h.props.HubName, total, len(h.props.WorkQueues), mostEnvironment))
	}
	if total := h.otherConfigBytes() + urls; total > mostConfig {
		panic(fmt.Errorf("task hub %s: the parameter with the configuration may need %d bytes for %d work queues, "+
			"the limit is %d: shorten NamePrefix or the names of the queues, or split the hub",
			h.props.HubName, total, len(h.props.WorkQueues), mostConfig))
	}
}

// workQueueBytes returns the maximum length of the URLs of the work queues and their dead-letter queues in a JSON
// object.
func (h environments) workQueueBytes() (total int) {
	for _, queue := range h.props.WorkQueues {
		name, dead := h.longest("work-"+queue, longestName), h.longest("work-"+queue+"-dead-letters", longestName)
		const punctuation = 6 // "":"",
		total += name + dead + 2*(longestURL+len(queue)+punctuation)
		if h.queueProps(queue).Exclusive {
			total += name + dead + 2*(longestURL+len(queue)+punctuation+2*len(exclusiveSuffix))
		}
	}
	return total
}

// otherConfigBytes returns the maximum length of the hub's configuration without the work queues.
func (h environments) otherConfigBytes() int {
	total := otherFields + len(h.payloadEnvironment())*bucketField + h.tableBytes()
	for part, times := range map[string]int{ // a URL or ARN each time
		"inbox.fifo": 1, "inbox-dead-letters.fifo": 1, "timers": 2, "timers-dead-letters": 2,
	} {
		total += times * h.longest(part, longestName)
	}
	if domain := h.props.HTTPAPI.Domain; domain != nil {
		total += max(0, len("https://"+domain.Name)-longestEndpoint)
	}
	return total
}

// tableBytes returns the maximum length of the table's name.
func (h environments) tableBytes() int {
	const longestGiven = 255 // DynamoDB's limit
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
