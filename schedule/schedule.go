package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/restartid"
	"github.com/perdure/perdure/provider"
)

// Schedule defines an orchestration and the times at which it starts. ID, Orchestration and Expression are required.
type Schedule struct {
	// ID is the name of the schedule in its hub: 1 to 200 bytes of UTF-8 without control characters. Its runs are the
	// instances "ID@time", with the scheduled time in UTC, such as "nightly@2026-11-23T02:00:00Z".
	ID string `json:"id"`
	// Orchestration is the name of the orchestration to start. Version is its version. If Version is empty, each run
	// uses the highest version.
	Orchestration string `json:"orchestration"`
	Version       string `json:"version,omitempty"`
	// Input is the input of each run, a JSON document of at most MaxInputBytes.
	Input json.RawMessage `json:"input,omitempty"`
	// Expression has one of these forms:
	//
	//	rate(5 minutes)      minutes, hours or days, counted from From or from the creation of the schedule
	//	cron(0 2 * * ? *)    as in EventBridge Scheduler: minute, hour, day, month, day of week (1 is Sunday), year
	//	                     (1970 to 2199); exactly one of the two day fields is "?"
	//	0 2 * * MON-FRI      minute, hour, day, month, day of week (0 and 7 are Sunday); if both day fields are
	//	                     restricted, a day that matches one of them is due
	//	@daily               @hourly, @daily, @weekly, @monthly, @yearly, @annually
	//
	// A range of days of the week may wrap around, as in FRI-MON. Any other reversed range is an error. In both cron
	// syntaxes, the day can be L (the last day of the month), LW (the last weekday) or 15W (the weekday nearest to the
	// 15th). The day of the week can be 5L (its last occurrence in the month) or 5#3 (its third occurrence).
	//
	// When clocks change, a cron expression whose hours begin with * follows elapsed time. Any other expression is due
	// once for each local time. A skipped time is due later by the length of the shift. A time that occurs twice is due
	// at its first occurrence.
	Expression string `json:"when"`
	// TimeZone is an IANA time zone, such as "Europe/Berlin". The default is UTC. It applies only to cron expressions.
	TimeZone string `json:"timeZone,omitempty"`
	// From and Until are the first and the last possible time of a run, inclusive. A zero time means no limit. Other
	// times must be in the years 1970 to 2199. Times before the creation of the schedule are never due. Use a backfill
	// to run them.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Overlap is the policy for a scheduled time at which the previous run is still running. The default is
	// OverlapSkip.
	Overlap OverlapPolicy `json:"overlap,omitempty"`
	// CatchUp is the policy for times that were missed by more than a minute, because the schedule was paused or its
	// hub was down. The default is CatchUpLast. For times that were due during a run, Overlap applies.
	CatchUp CatchUpPolicy `json:"catchUp,omitempty"`
	// Revision is an identifier of this state of the schedule, of at most 64 bytes. Clients can read it. It has no
	// other effect.
	Revision string `json:"revision,omitempty"`
}

// OverlapPolicy is the policy for a scheduled time at which the previous run is still running.
type OverlapPolicy string

// Values of OverlapPolicy.
const (
	// OverlapSkip does not start a run for that time.
	OverlapSkip OverlapPolicy = "skip"
	// OverlapQueue starts the run when the previous run has ended. At most MaxQueuedRuns runs wait. If more runs are
	// due, the oldest ones are dropped.
	OverlapQueue OverlapPolicy = "queue"
	// OverlapCancel cancels the previous run, waits for its end, and then starts the run.
	OverlapCancel OverlapPolicy = "cancel"
	// OverlapAllow starts the run immediately. The schedule does not wait for its runs, and does not record their
	// outcomes.
	OverlapAllow OverlapPolicy = "allow"
)

// CatchUpPolicy is the policy for missed times.
type CatchUpPolicy string

// Values of CatchUpPolicy.
const (
	// CatchUpNone starts no run for missed times.
	CatchUpNone CatchUpPolicy = "none"
	// CatchUpLast starts one run, for the last missed time.
	CatchUpLast CatchUpPolicy = "last"
	// CatchUpAll starts a run for each of the last MaxQueuedRuns missed times. The runs start one after another, or
	// concurrently with OverlapAllow.
	CatchUpAll CatchUpPolicy = "all"
)

const (
	// MaxQueuedRuns is the maximum number of runs that wait in the queue of a schedule.
	MaxQueuedRuns = 1000
	// MaxIDBytes is the maximum size of a schedule's ID.
	MaxIDBytes = 200
	// MaxInputBytes is the maximum size of a schedule's input in bytes, as encoding/json writes it (six bytes for a
	// "<").
	MaxInputBytes = perdure.MaxPayloadBytes - 48<<10

	maxNameBytes    = 256
	maxVersionBytes = 64

	maxRevisionBytes = 64
)

// OrchestrationName is the name of the orchestration whose instances are schedules. Histories store it, so it never
// changes.
const OrchestrationName = "perdure.schedule"

// instancePrefix is the prefix of the instance IDs of schedules.
const instancePrefix = "schedule:"

// InstanceID returns the ID of the instance that runs the schedule.
func InstanceID(id string) string { return instancePrefix + id }

// ParseInstanceID returns the ID of the schedule that an instance runs. ok is false if the instance is not a schedule.
func ParseInstanceID(instanceID string) (id string, ok bool) {
	return strings.CutPrefix(instanceID, instancePrefix)
}

// RunID returns the instance ID of the run for a scheduled time.
func RunID(id string, due time.Time) string { return id + "@" + due.UTC().Format(time.RFC3339Nano) }

// DueTime returns the scheduled time of a run in UTC. runID is the instance ID of the run or of a restart of the run.
// ok is false for other instances. Use DueTime instead of the current time in a scheduled orchestration, because a run
// can start late. To get the date in the time zone of the schedule, convert the time with its method In.
func DueTime(runID string) (due time.Time, ok bool) {
	at := strings.LastIndexByte(runID, '@')
	if at < 0 {
		return time.Time{}, false
	}
	due, err := time.Parse(time.RFC3339Nano, restartid.Original(runID[at+1:]))
	return due, err == nil
}

// Validate returns a *provider.FieldError for the first invalid field, a *perdure.PayloadTooLargeError if the input is
// too large, or nil.
func (s *Schedule) Validate() error {
	if err := s.validateStored(); err != nil {
		return err
	}
	p, err := s.plan(time.Time{})
	if err != nil {
		return err
	}
	return p.checkNew(s.Expression)
}

// validateStored validates an existing schedule. It accepts every cron expression that an earlier release accepted. An
// upgrade therefore does not end a schedule, and a replay makes the same decisions.
func (s *Schedule) validateStored() error {
	_, planErr := s.plan(time.Time{})
	for _, err := range []error{
		inputcheck.Text("id", s.ID, 1, MaxIDBytes),
		s.checkOrchestration(),
		inputcheck.Text("version", s.Version, 0, maxVersionBytes),
		s.checkInput(),
		planErr,
		checkChoice("overlap", s.Overlap, OverlapSkip, OverlapQueue, OverlapCancel, OverlapAllow),
		checkChoice("catchUp", s.CatchUp, CatchUpNone, CatchUpLast, CatchUpAll),
		inputcheck.Text("revision", s.Revision, 0, maxRevisionBytes),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Schedule) checkOrchestration() error {
	if s.Orchestration == OrchestrationName {
		return &provider.FieldError{Field: "orchestration", Problem: "must not be the orchestration of schedules"}
	}
	return inputcheck.Text("orchestration", s.Orchestration, 1, maxNameBytes)
}

func (s *Schedule) checkInput() error {
	if len(s.Input) == 0 {
		return nil
	}
	switch written, err := json.Marshal(s.Input); {
	case err != nil:
		return &provider.FieldError{Field: "input", Problem: "is not a JSON document"}
	case len(written) > MaxInputBytes:
		name := "input of schedule " + s.ID
		return &perdure.PayloadTooLargeError{Name: name, Bytes: len(written), Limit: MaxInputBytes}
	default:
		return nil
	}
}

// checkChoice returns an error if choice is neither empty nor one of all.
func checkChoice[T ~string](field string, choice T, all ...T) error {
	if choice == "" || slices.Contains(all, choice) {
		return nil
	}
	return &provider.FieldError{Field: field, Problem: fmt.Sprintf("%q is invalid; use one of %q",
		provider.Excerpt(choice), all)}
}
