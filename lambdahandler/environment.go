package lambdahandler

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/provider/dynamo"
)

// environment reads environment variables and collects the errors, so that all errors are reported together.
type environment struct {
	getenv func(string) string
	errs   []error
}

func (e *environment) failf(name, format string, args ...any) {
	err := fmt.Errorf("lambdahandler: environment variable %s %s", name, fmt.Sprintf(format, args...))
	e.errs = append(e.errs, err)
}

func (e *environment) err() error { return errors.Join(e.errs...) }

func (e *environment) required(name string) string {
	v := e.getenv(name)
	if v == "" {
		e.failf(name, "is required and not set")
	}
	return v
}

func (e *environment) optional(name, otherwise string) string {
	if v := e.getenv(name); v != "" {
		return v
	}
	return otherwise
}

// urls reads a JSON object of names and URLs.
func (e *environment) urls(name string) map[string]string {
	v := e.required(name)
	if v == "" {
		return nil
	}
	m := map[string]string{}
	if err := json.Unmarshal([]byte(v), &m); err != nil {
		e.failf(name, "is not a JSON object of names and URLs: %v", err)
	}
	return m
}

// parsed parses a variable. If the variable is not set or is invalid, parsed returns otherwise. usage describes the
// valid values.
func parsed[T any](e *environment, name string, otherwise T, usage string, parse func(string) (v T, ok bool)) T {
	text := e.getenv(name)
	if text == "" {
		return otherwise
	}
	v, ok := parse(text)
	if !ok {
		e.failf(name, "has the invalid value %q; use %s", text, usage)
		return otherwise
	}
	return v
}

// bytes reads a size in bytes, KiB, MiB or GiB.
func (e *environment) bytes(name string, otherwise int) int {
	return parsed(e, name, otherwise, "a size such as 67108864 or 64 MiB", func(v string) (int, bool) {
		digits, shift := v, 0
		for unit, s := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
			if d, ok := strings.CutSuffix(v, unit); ok {
				digits, shift = strings.TrimSpace(d), s
			}
		}
		n, err := strconv.Atoi(digits)
		return n << shift, err == nil && n >= 0 && n <= 1<<40>>shift
	})
}

// count reads an integer within bounds.
func (e *environment) count(name string, otherwise, least, most int) int {
	usage := fmt.Sprintf("an integer from %d to %d", least, most)
	return parsed(e, name, otherwise, usage, func(v string) (int, bool) {
		n, err := strconv.Atoi(v)
		return n, err == nil && n >= least && n <= most
	})
}

// maxMaxCrashes is the maximum of PERDURE_MAX_ATTEMPTS. Poison must be detected before the queue moves the record to
// its dead-letter queue after 100 deliveries.
const maxMaxCrashes = 90

// maxCrashes reads dispatch.WorkerOptions.MaxCrashes.
func (e *environment) maxCrashes() int {
	return e.count("PERDURE_MAX_ATTEMPTS", dispatch.DefaultMaxCrashes, 1, maxMaxCrashes)
}

// logsErrorTexts reports whether error messages of activities are logged.
func (e *environment) logsErrorTexts() bool { return e.boolean("PERDURE_LOG_ERROR_TEXTS", "true") }

// metrics reads the dimensions of metrics.
func (e *environment) metrics() dispatch.Metrics {
	parse := func(v string) (dispatch.Metrics, bool) {
		if v == "off" {
			return dispatch.MetricsOff, true
		}
		return dispatch.Metrics(v), dispatch.Metrics(v).Known()
	}
	return parsed(e, "PERDURE_METRICS", dispatch.MetricsOff, "off, hub or name", parse)
}

// servesWebUI reports whether the API's function also serves the web UI.
func (e *environment) servesWebUI() bool { return e.boolean("PERDURE_UI", "false") }

// originGuard reads the comma-separated list of origins whose pages may make changes.
func (e *environment) originGuard() *http.CrossOriginProtection {
	guard := originguard.Protection()
	for origin := range strings.SplitSeq(e.optional("PERDURE_UI_ORIGINS", ""), ",") {
		if origin = strings.TrimSpace(origin); origin == "" {
			continue
		}
		if err := guard.AddTrustedOrigin(origin); err != nil {
			e.failf("PERDURE_UI_ORIGINS", "has the invalid origin %q; use one such as https://shop.example.com",
				origin)
		}
	}
	return guard
}

const apiAuthorization = "PERDURE_API_AUTHORIZATION"

// authorization reads the authorization of the API's gateway.
func (e *environment) authorization() authorization {
	parse := func(v string) (authorization, bool) {
		all := []authorization{notAuthorized, authorizedByIAM, authorizedByJWT, authorizedByLambda}
		return authorization(v), slices.Contains(all, authorization(v))
	}
	return parsed(e, apiAuthorization, notAuthorized, "iam, jwt, lambda or none", parse)
}

const allowedHosts = "PERDURE_ALLOWED_HOSTS"

// allowedHosts reads the host names that callers use to connect to a listening API.
func (e *environment) allowedHosts() originguard.Hosts {
	hosts, err := originguard.ParseHosts(e.optional(allowedHosts, ""))
	if err != nil {
		e.failf(allowedHosts, "is invalid: %v", err)
	}
	return hosts
}

func (e *environment) boolean(name, otherwise string) bool {
	switch v := e.optional(name, otherwise); v {
	case "true", "false":
		return v == "true"
	default:
		e.failf(name, "has the invalid value %q; use true or false", v)
		return false
	}
}

// retention reads the time for which ended instances are kept. The default is 0, which means forever.
func (e *environment) retention() time.Duration {
	const usage = "0 (forever) or at least one hour, such as 30d"
	return parsed(e, "PERDURE_RETENTION", 0, usage, func(v string) (time.Duration, bool) {
		d, err := days.Parse(v)
		return d, v == "0" || err == nil && d >= time.Hour
	})
}

func (e *environment) logLevel() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(e.optional("PERDURE_LOG_LEVEL", "info"))); err != nil {
		e.failf("PERDURE_LOG_LEVEL", "is invalid: %v; use debug, info, warn or error", err)
	}
	return l
}

// hub reads the configuration of the hub. queues and timers select the variables that the function requires.
func (e *environment) hub(queues, timers bool) dynamo.HubConfig {
	h := dynamo.HubConfig{
		Name: e.required("PERDURE_HUB"), Table: e.required("PERDURE_TABLE"), InboxURL: e.required("PERDURE_INBOX_URL"),
	}
	if queues {
		h.WorkQueues = e.urls("PERDURE_WORK_QUEUES")
		h.DeadLetters = e.urls("PERDURE_DEAD_LETTERS")
	} else {
		if e.getenv("PERDURE_WORK_QUEUES") != "" { // to renew locks, count work items, and redrive dead letters
			h.WorkQueues = e.urls("PERDURE_WORK_QUEUES")
		}
		h.Orchestrator = e.optional("PERDURE_ORCHESTRATOR", "")
		if e.getenv("PERDURE_DEAD_LETTERS") != "" { // to list, redrive and delete them
			h.DeadLetters = e.urls("PERDURE_DEAD_LETTERS")
		}
	}
	h.PayloadBucket = e.optional("PERDURE_PAYLOAD_BUCKET", "")
	if timers {
		h.TimersURL = e.required("PERDURE_TIMERS_URL")
	}
	// A function that only sends timers needs only the timers queue. With the variables of EventBridge schedules, it
	// also deletes the schedules of instances that it purges.
	if timers && (queues || e.getenv("PERDURE_TIMERS") != "") {
		e.scheduling(&h)
	}
	return h
}

// scheduling reads the configuration for timers that exceed the maximum delay of a queue.
func (e *environment) scheduling(h *dynamo.HubConfig) {
	h.TimerMode = e.optional("PERDURE_TIMERS", dynamo.TimersSchedules)
	switch h.TimerMode {
	case dynamo.TimersSchedules:
		h.ScheduleGroup = e.required("PERDURE_SCHEDULE_GROUP")
		h.ScheduleRoleARN = e.required("PERDURE_SCHEDULE_ROLE_ARN")
		h.TimersARN = e.required("PERDURE_TIMERS_ARN")
		h.TimersDeadLettersARN = e.required("PERDURE_TIMERS_DEAD_LETTERS_ARN")
	case dynamo.TimersRequeue:
	default:
		e.failf("PERDURE_TIMERS", "has the invalid value %q; use %s or %s",
			h.TimerMode, dynamo.TimersSchedules, dynamo.TimersRequeue)
	}
}

// timing reads the maximum delay of the timers queue and the lead time of schedules. Tests shorten both.
func (e *environment) timing(h *dynamo.HubConfig) []dynamo.Option {
	const maxDelay = dynamoknobs.LongestDelay
	longest := e.duration("PERDURE_TIMER_LONGEST_DELAY", maxDelay, time.Second, maxDelay)
	lead := e.duration("PERDURE_SCHEDULE_LEAD", dynamoknobs.ScheduleLead, 0, maxDelay-time.Second)
	if h.TimerMode == dynamo.TimersSchedules && lead > longest-time.Second {
		e.failf("PERDURE_SCHEDULE_LEAD", "is %v; it must be at least 1s less than PERDURE_TIMER_LONGEST_DELAY (%v)",
			lead, longest)
	}
	return []dynamo.Option{dynamoknobs.WithLongestDelay(longest), dynamoknobs.WithScheduleLead(lead)}
}

// duration reads a duration in the syntax of Go, within bounds.
func (e *environment) duration(name string, otherwise, least, most time.Duration) time.Duration {
	usage := fmt.Sprintf("a duration from %v to %v, such as 90s", least, most)
	return parsed(e, name, otherwise, usage, func(v string) (time.Duration, bool) {
		d, err := time.ParseDuration(v)
		return d, err == nil && d >= least && d <= most
	})
}

// The bounds of the durations of activities.
const (
	maxLock     = 12 * time.Hour // quota of SQS
	minDuration = 10 * time.Millisecond
	// maxInlineTimeout is a third of the longest timeout of a function. An inline activity may use a third of an
	// invocation.
	maxInlineTimeout = 5 * time.Minute
)

// buildID reads the ID of the build.
func (e *environment) buildID() string {
	return e.optional("PERDURE_BUILD_ID", dispatch.DefaultBuildID)
}

// inlineTimeout reads the maximum run time of an inline activity. The result is negative if inline execution is
// disabled.
func (e *environment) inlineTimeout() time.Duration {
	d := e.duration("PERDURE_INLINE_TIMEOUT", dispatch.DefaultInlineTimeout, 0, maxInlineTimeout)
	if d == 0 {
		return -1 // zero would select the default
	}
	return d
}

// activities reads the options for locks and cancellations.
func (e *environment) activities(o *dispatch.WorkerOptions) {
	lock := e.duration("PERDURE_LOCK_TIMEOUT", dispatch.DefaultLockTimeout, time.Second, maxLock)
	o.LockTimeout = lock.Truncate(time.Second)
	const buffer = "PERDURE_LOCK_RENEWAL_BUFFER"
	defaultBuffer := min(dispatch.DefaultLockRenewalBuffer, o.LockTimeout/3)
	o.LockRenewalBuffer = e.duration(buffer, defaultBuffer, minDuration, maxLock)
	if o.LockRenewalBuffer >= o.LockTimeout {
		e.failf(buffer, "is %v; it must be less than PERDURE_LOCK_TIMEOUT (%v)", o.LockRenewalBuffer, o.LockTimeout)
	}

	o.CancelPollInterval = e.duration("PERDURE_CANCEL_POLL_INTERVAL",
		dispatch.DefaultCancelPollInterval, minDuration, maxLock)
	o.CancellationGracePeriod = e.duration("PERDURE_CANCELLATION_GRACE_PERIOD",
		dispatch.DefaultCancellationGracePeriod, 0, maxLock)
	if o.CancellationGracePeriod == 0 {
		o.CancellationGracePeriod = -1 // zero would select the default
	}
}
