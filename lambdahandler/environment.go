package lambdahandler

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/provider/dynamo"
)

// environment reads variables, and remembers what is wrong with them, so that one start names all.
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
		e.failf(name, "is not a JSON object of names to URLs: %v", err)
	}
	return m
}

// bytes reads a size: a number of bytes, or of KiB, MiB or GiB.
func (e *environment) bytes(name, otherwise string) int {
	v := e.optional(name, otherwise)
	digits, shift := v, 0
	for unit, s := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if d, ok := strings.CutSuffix(v, unit); ok {
			digits, shift = strings.TrimSpace(d), s
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<40>>shift {
		e.failf(name, "is %q: not a size such as 67108864 or 64 MiB", v)
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
		e.failf(name, "is %q: not a whole number from %d to %d", v, least, most)
		return otherwise
	}
	return n
}

// The attempts when the environment says nothing, and their bound: the queues move a record away after 100 deliveries, and
// what is poison is to be found before.
const (
	defaultMaxAttempts = 10
	mostAttempts       = 90
)

// maxAttempts reads how often code may take its process down, alone, before its record is poison.
func (e *environment) maxAttempts() int {
	return e.count("PERDURE_MAX_ATTEMPTS", defaultMaxAttempts, 1, mostAttempts)
}

// logsErrorTexts reads whether what activities fail with may be logged.
func (e *environment) logsErrorTexts() bool {
	const name = "PERDURE_LOG_ERROR_TEXTS"
	switch v := e.optional(name, "true"); v {
	case "true", "false":
		return v == "true"
	default:
		e.failf(name, "is %q: neither true nor false", v)
		return false
	}
}

// retention reads how long instances are kept after their end; 0, which is also nothing, is for ever.
func (e *environment) retention() time.Duration {
	const name = "PERDURE_RETENTION"
	v := e.getenv(name)
	if v == "" || v == "0" {
		return 0
	}
	d, err := days.Parse(v)
	if err != nil || d < time.Hour {
		e.failf(name, "is %q: neither 0, for ever, nor an hour or more, such as 30d", v)
		return 0
	}
	return d
}

func (e *environment) logLevel() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(e.optional("PERDURE_LOG_LEVEL", "info"))); err != nil {
		e.failf("PERDURE_LOG_LEVEL", "is none of debug, info, warn, error: %v", err)
	}
	return l
}

// hub reads what every function is told, and for those that run turns, work or keep time, the queues.
func (e *environment) hub(queues, timers bool) dynamo.Hub {
	h := dynamo.Hub{
		Name: e.required("PERDURE_HUB"), Table: e.required("PERDURE_TABLE"), InboxURL: e.required("PERDURE_INBOX_URL"),
	}
	if queues {
		h.WorkQueues, h.DeadLetters = e.urls("PERDURE_WORK_QUEUES"), e.urls("PERDURE_DEAD_LETTERS")
	}
	if timers {
		h.TimersURL = e.required("PERDURE_TIMERS_URL")
	}
	// Who sends without keeping time needs no more than the queue. Told of schedules, it deletes those of what it purges.
	if timers && (queues || e.getenv("PERDURE_TIMERS") != "") {
		e.scheduling(&h)
	}
	return h
}

// scheduling reads what becomes of timers that are longer than a queue can delay.
func (e *environment) scheduling(h *dynamo.Hub) {
	h.Timers = e.optional("PERDURE_TIMERS", dynamo.TimersSchedules)
	switch h.Timers {
	case dynamo.TimersSchedules:
		h.ScheduleGroup, h.ScheduleRoleARN = e.required("PERDURE_SCHEDULE_GROUP"), e.required("PERDURE_SCHEDULE_ROLE_ARN")
		h.TimersARN, h.TimersDeadLettersARN = e.required("PERDURE_TIMERS_ARN"), e.required("PERDURE_TIMERS_DEAD_LETTERS_ARN")
	case dynamo.TimersHops:
	default:
		e.failf("PERDURE_TIMERS", "is %q: neither %s nor %s", h.Timers, dynamo.TimersSchedules, dynamo.TimersHops)
	}
}

// The times of long timers that tests make short.
const (
	longestDelay        = 900 * time.Second // SQS's quota
	longestLead         = longestDelay - time.Second
	defaultScheduleLead = 2 * time.Minute
)

// timing reads how long the queue holds a timer, and how long before it is due its schedule fires.
func (e *environment) timing(h *dynamo.Hub) []dynamo.Option {
	longest := e.duration("PERDURE_TIMER_LONGEST_DELAY", longestDelay, time.Second, longestDelay)
	lead := e.duration("PERDURE_SCHEDULE_LEAD", defaultScheduleLead, 0, longestLead)
	if h.Timers == dynamo.TimersSchedules && lead > longest-time.Second {
		e.failf("PERDURE_SCHEDULE_LEAD", "is %v: not a second less than PERDURE_TIMER_LONGEST_DELAY, %v", lead, longest)
	}
	return []dynamo.Option{dynamo.WithLongestDelay(longest), dynamo.WithScheduleLead(lead)}
}

// duration reads a duration of Go's syntax, within bounds.
func (e *environment) duration(name string, otherwise, least, most time.Duration) time.Duration {
	v := e.getenv(name)
	if v == "" {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > most {
		e.failf(name, "is %q: not a duration from %v to %v such as 90s", v, least, most)
		return otherwise
	}
	return d
}

// The activities' times when the environment says nothing, and their bounds.
const (
	defaultLockTimeout   = 30 * time.Second
	defaultRenewalBuffer = 5 * time.Second
	defaultCancelPoll    = time.Second
	defaultCancelGrace   = 10 * time.Second
	longestLock          = 12 * time.Hour // SQS's quota
	shortestTime         = 10 * time.Millisecond
)

// activities reads how a worker leases activities and cancels them.
func (e *environment) activities(o *dispatch.Options) {
	const buffer = "PERDURE_LOCK_RENEWAL_BUFFER"
	o.LockTimeout = e.duration("PERDURE_LOCK_TIMEOUT", defaultLockTimeout, time.Second, longestLock).Truncate(time.Second)
	o.LockRenewalBuffer = e.duration(buffer, min(defaultRenewalBuffer, o.LockTimeout/3), shortestTime, longestLock)
	if o.LockRenewalBuffer >= o.LockTimeout {
		e.failf(buffer, "is %v: not less than PERDURE_LOCK_TIMEOUT, %v", o.LockRenewalBuffer, o.LockTimeout)
	}
	o.CancelPollInterval = e.duration("PERDURE_CANCEL_POLL_INTERVAL", defaultCancelPoll, shortestTime, longestLock)
	o.CancellationGracePeriod = e.duration("PERDURE_CANCELLATION_GRACE_PERIOD", defaultCancelGrace, 0, longestLock)
	if o.CancellationGracePeriod == 0 {
		o.CancellationGracePeriod = -1 // none, where zero is the default
	}
}
