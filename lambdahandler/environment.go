package lambdahandler

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/originguard"
	"github.com/perdure/perdure/provider/dynamo"
)

// environment reads variables and collects their errors, so that one start reports all of them.
type environment struct {
	getenv func(string) string
	wrong  []error
}

func (e *environment) failf(name, format string, args ...any) {
	e.wrong = append(e.wrong, fmt.Errorf("lambdahandler: environment variable %s %s", name, fmt.Sprintf(format, args...)))
}

func (e *environment) err() error { return errors.Join(e.wrong...) }

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

// urls reads a JSON object of names to URLs.
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

// bytes reads a size: a number of bytes, or of KiB, MiB or GiB.
func (e *environment) bytes(name string, otherwise int) int {
	v := e.getenv(name)
	if v == "" {
		return otherwise
	}

	digits := v
	shift := 0
	for unit, s := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if d, ok := strings.CutSuffix(v, unit); ok {
			digits = strings.TrimSpace(d)
			shift = s
		}
	}

	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<40>>shift {
		e.failf(name, "has the invalid value %q; use a size such as 67108864 or 64 MiB", v)
		return 0
	}
	return n << shift
}

// count reads a whole number, within bounds.
func (e *environment) count(name string, otherwise, least, most int) int {
	v := e.getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		e.failf(name, "has the invalid value %q; use an integer from %d to %d", v, least, most)
		return otherwise
	}
	return n
}

// mostAttempts bounds the attempts: the queues move a record away after 100 deliveries, and poison must be recognised
// before that.
const mostAttempts = 90

// maxAttempts reads how often code may kill its process, running alone, before its record is poison.
func (e *environment) maxAttempts() int {
	return e.count("PERDURE_MAX_ATTEMPTS", dispatch.DefaultMaxCrashes, 1, mostAttempts)
}

// logsErrorTexts reads whether the error texts of activities may be logged.
func (e *environment) logsErrorTexts() bool { return e.boolean("PERDURE_LOG_ERROR_TEXTS", "true") }

// metrics reads which metrics of what the function does are logged.
func (e *environment) metrics() dispatch.Metrics {
	m := dispatch.Metrics(e.optional("PERDURE_METRICS", "off"))
	if m == "off" {
		return dispatch.MetricsOff
	}
	if !m.Known() {
		e.failf("PERDURE_METRICS", "has the invalid value %q; use off, hub or name", m)
		return dispatch.MetricsOff
	}
	return m
}

// servesPage reads whether the API's function serves the page as well.
func (e *environment) servesPage() bool { return e.boolean("PERDURE_UI", "false") }

// pageGuard reads which pages of other origins may change something where the page is served, separated by commas.
func (e *environment) pageGuard() *http.CrossOriginProtection {
	guard := originguard.Protection()
	for origin := range strings.SplitSeq(e.optional("PERDURE_UI_ORIGINS", ""), ",") {
		if origin = strings.TrimSpace(origin); origin == "" {
			continue
		}
		if err := guard.AddTrustedOrigin(origin); err != nil {
			e.failf("PERDURE_UI_ORIGINS", "has the invalid origin %q; use one such as https://shop.example.com", origin)
		}
	}
	return guard
}

const apiAuthorization = "PERDURE_API_AUTHORIZATION"

// authorization reads how the API's gateway authorizes callers.
func (e *environment) authorization() authorization {
	by := authorization(e.optional(apiAuthorization, string(authorizedByNobody)))
	switch by {
	case authorizedByNobody, authorizedByIAM, authorizedByJWT, authorizedByLambda:
	default:
		e.failf(apiAuthorization, "has the invalid value %q; use iam, jwt, lambda or none", by)
	}
	return by
}

const allowedHosts = "PERDURE_ALLOWED_HOSTS"

// allowedHosts reads the hosts by which callers reach the API where it listens.
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

// retention reads how long instances are kept after their end; 0, which is also the default, is for ever.
func (e *environment) retention() time.Duration {
	const name = "PERDURE_RETENTION"
	v := e.getenv(name)
	if v == "" || v == "0" {
		return 0
	}
	d, err := days.Parse(v)
	if err != nil || d < time.Hour {
		e.failf(name, "has the invalid value %q; use 0 (forever) or at least one hour, such as 30d", v)
		return 0
	}
	return d
}

func (e *environment) logLevel() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(e.optional("PERDURE_LOG_LEVEL", "info"))); err != nil {
		e.failf("PERDURE_LOG_LEVEL", "is invalid: %v; use debug, info, warn or error", err)
	}
	return l
}

// hub reads what every function needs and, for functions that run turns, work or keep time, the queues.
func (e *environment) hub(queues, timers bool) dynamo.HubConfig {
	h := dynamo.HubConfig{
		Name: e.required("PERDURE_HUB"), Table: e.required("PERDURE_TABLE"), InboxURL: e.required("PERDURE_INBOX_URL"),
	}
	if queues {
		h.WorkQueues = e.urls("PERDURE_WORK_QUEUES")
		h.DeadLetters = e.urls("PERDURE_DEAD_LETTERS")
	} else {
		if e.getenv("PERDURE_WORK_QUEUES") != "" { // to renew the locks of their messages, and to redrive dead letters
			h.WorkQueues = e.urls("PERDURE_WORK_QUEUES")
		}
		h.Orchestrator = e.optional("PERDURE_ORCHESTRATOR", "")
		if e.getenv("PERDURE_DEAD_LETTERS") != "" { // to show, redrive and drop them
			h.DeadLetters = e.urls("PERDURE_DEAD_LETTERS")
		}
	}
	h.PayloadBucket = e.optional("PERDURE_PAYLOAD_BUCKET", "")
	if timers {
		h.TimersURL = e.required("PERDURE_TIMERS_URL")
	}
	// A function that sends timers without keeping time needs only the queue. With the schedules' variables it also
	// deletes the schedules of what it purges.
	if timers && (queues || e.getenv("PERDURE_TIMERS") != "") {
		e.scheduling(&h)
	}
	return h
}

// scheduling reads how timers are held that are longer than a queue can delay.
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

// timing reads how long the queue holds a timer, and how long before it is due its schedule fires. Tests shorten both.
func (e *environment) timing(h *dynamo.HubConfig) []dynamo.Option {
	longest := e.duration("PERDURE_TIMER_LONGEST_DELAY", dynamoknobs.LongestDelay, time.Second, dynamoknobs.LongestDelay)
	lead := e.duration("PERDURE_SCHEDULE_LEAD", dynamoknobs.ScheduleLead, 0, dynamoknobs.LongestDelay-time.Second)
	if h.TimerMode == dynamo.TimersSchedules && lead > longest-time.Second {
		e.failf("PERDURE_SCHEDULE_LEAD", "is %v; it must be at least 1s less than PERDURE_TIMER_LONGEST_DELAY (%v)",
			lead, longest)
	}
	return []dynamo.Option{dynamoknobs.WithLongestDelay(longest), dynamoknobs.WithScheduleLead(lead)}
}

// duration reads a duration of Go's syntax, within bounds.
func (e *environment) duration(name string, otherwise, least, most time.Duration) time.Duration {
	v := e.getenv(name)
	if v == "" {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > most {
		e.failf(name, "has the invalid value %q; use a duration from %v to %v, such as 90s", v, least, most)
		return otherwise
	}
	return d
}

// The bounds of the activities' times.
const (
	longestLock  = 12 * time.Hour // SQS's quota
	shortestTime = 10 * time.Millisecond
	// longestInline is a third of the longest timeout of a function: an inline activity has no more of an invocation.
	longestInline = 5 * time.Minute
)

// buildID reads the name of the deployed code.
func (e *environment) buildID() string {
	return e.optional("PERDURE_BUILD_ID", dispatch.DefaultBuildID)
}

// inlineTimeout reads how long an inline activity may take; negative where none runs inline.
func (e *environment) inlineTimeout() time.Duration {
	d := e.duration("PERDURE_INLINE_TIMEOUT", dispatch.DefaultInlineTimeout, 0, longestInline)
	if d == 0 {
		return -1 // none, where zero is the default
	}
	return d
}

// activities reads how a worker leases activities and cancels them.
func (e *environment) activities(o *dispatch.WorkerOptions) {
	const buffer = "PERDURE_LOCK_RENEWAL_BUFFER"
	o.LockTimeout = e.duration("PERDURE_LOCK_TIMEOUT", dispatch.DefaultLockTimeout, time.Second, longestLock).Truncate(time.Second)
	o.LockRenewalBuffer = e.duration(buffer, min(dispatch.DefaultLockRenewalBuffer, o.LockTimeout/3), shortestTime, longestLock)
	if o.LockRenewalBuffer >= o.LockTimeout {
		e.failf(buffer, "is %v; it must be less than PERDURE_LOCK_TIMEOUT (%v)", o.LockRenewalBuffer, o.LockTimeout)
	}

	o.CancelPollInterval = e.duration("PERDURE_CANCEL_POLL_INTERVAL", dispatch.DefaultCancelPollInterval, shortestTime, longestLock)
	o.CancellationGracePeriod = e.duration("PERDURE_CANCELLATION_GRACE_PERIOD", dispatch.DefaultCancellationGracePeriod, 0, longestLock)
	if o.CancellationGracePeriod == 0 {
		o.CancellationGracePeriod = -1 // none, where zero is the default
	}
}
