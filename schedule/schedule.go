package schedule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/provider"
)

// Schedule says which orchestration is started when. Only ID, Orchestration and When are required.
type Schedule struct {
	// ID names the schedule in its hub: 1 to 200 bytes of UTF-8 without control characters. Its runs are the instances "ID@time", with the time for
	// which they were due in UTC, such as "nightly@2026-11-23T02:00:00Z".
	ID string `json:"id"`
	// Orchestration is what is started, in Version or, where that is empty, in the highest there is by then.
	Orchestration string `json:"orchestration"`
	Version       string `json:"version,omitempty"`
	// Input is that of each run: a JSON document of up to MaxInputBytes.
	Input json.RawMessage `json:"input,omitempty"`
	// When is one of
	//
	//	rate(5 minutes)      minutes, hours or days, counted from From or from when the schedule was made
	//	cron(0 2 * * ? *)    as EventBridge Scheduler has it: minute, hour, day, month, day of week (1 is Sunday), year
	//	                     (1970 to 2199); exactly one of the two day fields is "?"
	//	0 2 * * MON-FRI      minute, hour, day, month, day of week (0 and 7 are Sunday); if both day fields are
	//	                     restricted, a day that matches one of them is due
	//	@daily               @hourly, @daily, @weekly, @monthly, @yearly, @annually
	//
	// A range of days of the week may wrap around, as in FRI-MON; any other reversed range is an error. In both syntaxes the
	// day may be L (the last of the month), LW (the last weekday) or 15W (the weekday nearest to the 15th), and the day of
	// the week 5L (the last one of the month) or 5#3 (the third one).
	//
	// A cron expression whose hours begin with * goes by the time that passes. Any other is due once for each time on the clock: one that
	// is skipped as clocks are put forward is due as much later, and one that comes twice as they are put back is due the first time.
	When string `json:"when"`
	// TimeZone is a name of the IANA database, such as "Europe/Berlin". Empty is UTC. It is that of cron expressions alone.
	TimeZone string `json:"timeZone,omitempty"`
	// From and Until bound the times at which runs are due, both inclusive. Zero bounds nothing; others are of the
	// years 1970 to 2199. Times before the schedule was made are never due: a backfill starts their runs.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Overlap says what becomes of a time that comes while the run before is not over. Empty is Skip.
	Overlap Overlap `json:"overlap,omitempty"`
	// CatchUp says what becomes of times that were missed, by more than a minute, because the schedule was paused or its hub was down.
	// Empty is CatchUpLast.
	CatchUp CatchUp `json:"catchUp,omitempty"`
	// Revision is whatever whoever puts the schedule knows this state of it by, of up to 64 bytes. It is shown, and changes nothing.
	Revision string `json:"revision,omitempty"`
}

// Overlap is what becomes of a time that comes while the run before is not over.
type Overlap string

// The ways to overlap.
const (
	// Skip leaves the time out.
	Skip Overlap = "skip"
	// Queue starts it when the run before is over: up to MaxQueued, the oldest of which are left out first.
	Queue Overlap = "queue"
	// Cancel cancels the run before, waits for its end, and starts it then.
	Cancel Overlap = "cancel"
	// Allow starts it beside the other. The schedule does not wait for such runs: what became of them is in their own histories alone.
	Allow Overlap = "allow"
)

// CatchUp is what becomes of times that were missed.
type CatchUp string

// The ways to catch up.
const (
	// CatchUpNone leaves them out.
	CatchUpNone CatchUp = "none"
	// CatchUpLast starts one run, for the last of them.
	CatchUpLast CatchUp = "last"
	// CatchUpAll starts a run for each of the last MaxQueued of them: one after the other, but with Allow.
	CatchUpAll CatchUp = "all"
)

const (
	// MaxQueued is how many times may wait for their runs.
	MaxQueued = 1000
	// MaxIDBytes is the limit of a schedule's id.
	MaxIDBytes = 200
	// MaxInputBytes is the limit of a schedule's input as encoding/json writes it, which takes six bytes for a "<": what it carries from one execution
	// to the next beside its input must fit into a payload.
	MaxInputBytes = perdure.MaxPayloadBytes - 48<<10

	maxNameBytes    = 256
	maxVersionBytes = 64

	maxRevisionBytes = 64
)

// Orchestration is the name of the orchestration whose instances are schedules. It is part of the format: it never changes.
const Orchestration = "perdure.schedule"

// instancePrefix is what the instance ids of schedules begin with.
const instancePrefix = "schedule:"

// InstanceID is the id of the instance that is the schedule.
func InstanceID(id string) string { return instancePrefix + id }

// IDOf is the schedule that an instance is, if it is one.
func IDOf(instanceID string) (id string, ok bool) {
	return strings.CutPrefix(instanceID, instancePrefix)
}

// RunID is the instance id of the run that was due at a time.
func RunID(id string, due time.Time) string { return id + "@" + due.UTC().Format(time.RFC3339Nano) }

// Due is the time for which a run was due, by its instance id. It is for orchestrations that need it, and not Now: they may be late.
func Due(runID string) (due time.Time, ok bool) {
	at := strings.LastIndexByte(runID, '@')
	if at < 0 {
		return time.Time{}, false
	}
	due, err := time.Parse(time.RFC3339Nano, runID[at+1:])
	return due, err == nil
}

// Validate returns a *provider.FieldError for the first field that is wrong, a *perdure.PayloadTooLargeError for an input that is too large, or nil.
func (s *Schedule) Validate() error {
	if err := s.validateStored(); err != nil {
		return err
	}
	p, err := s.plan(time.Time{})
	if err != nil {
		return err
	}
	return p.checkNew(s.When)
}

// validateStored is Validate for a schedule that exists: it accepts every cron expression that an earlier release
// accepted, so that an upgrade ends no schedule and a replay repeats what was decided.
func (s *Schedule) validateStored() error {
	_, when := s.plan(time.Time{})
	for _, err := range []error{
		provider.CheckText("id", s.ID, 1, MaxIDBytes), s.checkOrchestration(), provider.CheckText("version", s.Version, 0, maxVersionBytes),
		s.checkInput(), when,
		check("overlap", s.Overlap, Skip, Queue, Cancel, Allow), check("catchUp", s.CatchUp, CatchUpNone, CatchUpLast, CatchUpAll),
		provider.CheckText("revision", s.Revision, 0, maxRevisionBytes),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Schedule) checkOrchestration() error {
	if s.Orchestration == Orchestration {
		return &provider.FieldError{Field: "orchestration", Problem: "must be one of yours: a schedule cannot start schedules"}
	}
	return provider.CheckText("orchestration", s.Orchestration, 1, maxNameBytes)
}

func (s *Schedule) checkInput() error {
	if len(s.Input) == 0 {
		return nil
	}
	switch written, err := json.Marshal(s.Input); {
	case err != nil:
		return &provider.FieldError{Field: "input", Problem: "is not a JSON document"}
	case len(written) > MaxInputBytes:
		return &perdure.PayloadTooLargeError{What: "input of schedule " + s.ID, Bytes: len(written), Limit: MaxInputBytes}
	default:
		return nil
	}
}

// check refuses a choice that is none of all, and not left to the default.
func check[T ~string](field string, choice T, all ...T) error {
	if choice == "" || slices.Contains(all, choice) {
		return nil
	}
	return &provider.FieldError{Field: field, Problem: fmt.Sprintf("%q is none of %q", provider.Echo(choice), all)}
}
