package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/schedule"
)

// argSchedule is the argument for a schedule ID. It has no shell completion.
const argSchedule = "SCHEDULE"

func scheduleVerb(c *command) *cobra.Command {
	cmd := choice(&cobra.Command{
		Use: "schedule", Short: "Manage schedules",
		Long: `Manage schedules, which start orchestrations by a rate or cron expression.

A schedule is the instance schedule:ID. Its history lists what it started, and perdure status shows what it
waits for. Its runs are the instances ID@TIME.`,
		Example: `  perdure schedule put nightly --orchestration report --expression "0 2 * * *" --time-zone Asia/Tokyo
  perdure schedule list
  perdure schedule pause nightly --message "for the migration"
  perdure list --parent schedule:nightly`,
	})
	cmd.AddCommand(putScheduleVerb(c), listSchedulesVerb(c), showScheduleVerb(c), runScheduleVerb(c), backfillVerb(c),
		deleteScheduleVerb(c), pauseScheduleVerb(c), resumeScheduleVerb(c))
	return cmd
}

func pauseScheduleVerb(c *command) *cobra.Command {
	cmd := tellScheduleVerb(c, "pause SCHEDULE", "Pause a schedule",
		func(ctx context.Context, cl *client.Client, id, message string) error {
			if err := cl.PauseSchedule(ctx, id, message); err != nil {
				return ofSchedule(c, err)
			}
			return c.accepted(schedule.InstanceID(id))
		})
	cmd.Long = cmd.Short + `.

A paused schedule starts no runs at its times. A run in progress continues, and perdure schedule run starts
one. If the instance of the schedule is paused, the pause takes effect when the instance is resumed.`
	cmd.Example = `  perdure schedule pause nightly --message "for the migration"`
	return cmd
}

func resumeScheduleVerb(c *command) *cobra.Command {
	cmd := tellScheduleVerb(c, "resume SCHEDULE", "Resume a schedule",
		func(ctx context.Context, cl *client.Client, id, message string) error {
			return ofSchedule(c, resumed(c, schedule.InstanceID(id), cl.ResumeSchedule(ctx, id, message)))
		})
	cmd.Long = cmd.Short + `.

Its catch-up policy decides which missed times run now. The command also resumes the instance of the schedule
if it is paused with perdure pause schedule:ID.`
	cmd.Example = "  perdure schedule resume nightly"
	return cmd
}

// scheduleFlags are the flags of schedule put.
type scheduleFlags struct {
	schedule.Schedule

	input, from, until, overlap, catchUp string
}

// read returns the schedule that the flags describe.
func (f *scheduleFlags) read(c *command, id string) (s schedule.Schedule, err error) {
	switch {
	case f.Orchestration == "":
		return s, errors.New("--orchestration is required")
	case f.Expression == "":
		return s, errors.New("--expression is required; see perdure schedule put --help")
	}
	s = f.Schedule
	s.ID, s.Overlap, s.CatchUp = id, schedule.OverlapPolicy(f.overlap), schedule.CatchUpPolicy(f.catchUp)
	if err := parseTimes(timeFlag{"--from", f.from, &s.From}, timeFlag{"--until", f.until, &s.Until}); err != nil {
		return s, err
	}
	s.Input, err = readInput(c, f.input)
	return s, err
}

func putScheduleVerb(c *command) *cobra.Command {
	var f scheduleFlags
	put := func(ctx context.Context, cl *client.Client, id string) error {
		s, err := f.read(c, id)
		if err != nil {
			return err
		}
		if err := cl.PutSchedule(ctx, s); err != nil {
			return ofSchedule(c, asFlag(err, "when", "--expression"))
		}
		return c.accepted(schedule.InstanceID(id))
	}
	cmd := c.verb("put SCHEDULE", "Create or replace a schedule", argSchedule, put)
	cmd.Long = cmd.Short + `.

A replaced schedule keeps its current run and stays paused. Flags that are not set have their defaults. The
command does not check that the orchestration exists: without one, the first run is Blocked.

--expression is one of
  rate(5 minutes)      minutes, hours or days
  cron(0 2 * * ? *)    as in EventBridge Scheduler: minute, hour, day, month, day of week (1 is Sunday), year
  0 2 * * MON-FRI      as in crontab (0 and 7 are Sunday)
  @daily               also @hourly, @weekly, @monthly, @yearly`
	cmd.Example = `  perdure schedule put nightly --orchestration report --expression "0 2 * * *" --time-zone Asia/Tokyo
  perdure schedule put poll --orchestration poll --expression "rate(5 minutes)" --overlap cancel --input @poll.json`
	flags := cmd.Flags()
	flags.StringVar(&f.Orchestration, "orchestration", "", "orchestration to start (required)")
	flags.StringVar(&f.Version, "version", "", "orchestration version (default: the highest at each run)")
	flags.StringVar(&f.Expression, "expression", "", "rate or cron expression (required)")
	flags.StringVar(&f.TimeZone, "time-zone", "",
		"time zone of a cron expression, such as Europe/Berlin (default: UTC)")
	flags.StringVar(&f.input, "input", "null", "input of each run: JSON, @FILE, or - for stdin")
	flags.StringVar(&f.from, "from", "", "earliest time of a run, RFC 3339, such as 2006-01-02T15:04:05Z")
	flags.StringVar(&f.until, "until", "", "latest time of a run, RFC 3339")
	flags.StringVar(&f.overlap, "overlap", "",
		"policy for times during a run: skip, queue, cancel or allow (default: skip)")
	flags.StringVar(&f.catchUp, "catch-up", "", "policy for missed times: none, last or all (default: last)")
	completeWith(cmd, "overlap", schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapCancel, schedule.OverlapAllow)
	completeWith(cmd, "catch-up", schedule.CatchUpNone, schedule.CatchUpLast, schedule.CatchUpAll)
	return cmd
}

func listSchedulesVerb(c *command) *cobra.Command {
	var p client.Paging
	cmd := c.verb("list", "List schedules", "", func(ctx context.Context, cl *client.Client, _ string) error {
		if err := checkLimit(p.Limit); err != nil {
			return err
		}
		page, err := cl.SchedulesPage(ctx, p)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(httpapi.NewSchedulePage(page))
		}
		if err := c.print(scheduleTable(page.Items)); err != nil {
			return err
		}
		c.more(page.NextCursor)
		return nil
	})
	cmd.Flags().IntVar(&p.Limit, "limit", 100, limitUsage)
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", cursorUsage)
	cmd.Example = "  perdure schedule list --limit 1000"
	return cmd
}

func scheduleTable(all []client.ScheduleStatus) string {
	t := table{header: []string{
		"SCHEDULE", columnStatus, columnOrchestration, "EXPRESSION", "NEXT RUN", "LAST RUN", ">STARTED", ">FAILED",
		">SKIPPED", ">MISSED",
	}}
	for i := range all {
		s := &all[i]
		t.add(clean(s.Schedule.ID), string(s.RuntimeStatus), excerpt(s.Schedule.Orchestration, longestName), whenText(s), momentOr(s.NextDue), lastText(s),
			number(s.Started), number(s.Failed), number(s.Skipped), number(s.Missed))
	}
	return t.String()
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// momentOr returns a time, or a dash for the zero time.
func momentOr(t time.Time) string {
	if t.IsZero() {
		return dash("")
	}
	return moment(t)
}

func whenText(s *client.ScheduleStatus) string {
	return dash(strings.TrimSpace(clean(s.Schedule.Expression + " " + s.Schedule.TimeZone)))
}

// lastText returns the start of the current run, or the outcome of the last one.
func lastText(s *client.ScheduleStatus) string {
	switch {
	case s.CurrentRun != nil && s.RuntimeStatus.Terminal():
		return "started " + moment(s.CurrentRun.StartedAt)
	case s.CurrentRun != nil:
		return "running since " + moment(s.CurrentRun.StartedAt)
	case s.LastRun != nil && s.LastRun.Outcome != "":
		return fmt.Sprintf("%s %s", s.LastRun.Outcome, moment(s.LastRun.EndedAt))
	case s.LastRun != nil:
		return "started " + moment(s.LastRun.StartedAt)
	default:
		return dash("")
	}
}

func showScheduleVerb(c *command) *cobra.Command {
	cmd := c.verb("show SCHEDULE", "Show a schedule", argSchedule,
		func(ctx context.Context, cl *client.Client, id string) error {
			s, err := cl.Schedule(ctx, id)
			if err != nil {
				return ofSchedule(c, err)
			}
			if c.json {
				return c.printJSON(s)
			}
			shown := shownSchedule{ScheduleStatus: s}
			if err := shown.readInstances(ctx, cl); err != nil {
				return err
			}
			return c.print(shown.text())
		})
	cmd.Long = cmd.Short + `.

A current run that is Blocked or Paused holds up the schedule: later times follow the overlap policy.`
	cmd.Example = "  perdure schedule show nightly"
	return cmd
}

// shownSchedule is a schedule with the parts of its output that other instances have.
type shownSchedule struct {
	client.ScheduleStatus

	instancePause *history.Pause // nil if the instance of the schedule is not paused
	runStatus     string         // the status of the current run
}

// readInstances reads the pause of the schedule's instance and the status of the current run.
func (s *shownSchedule) readInstances(ctx context.Context, cl *client.Client) error {
	if s.RuntimeStatus == client.StatusPaused {
		instance, err := cl.Status(ctx, s.InstanceID)
		if err != nil && !errors.Is(err, client.ErrNotFound) {
			return err
		}
		s.instancePause = instance.Paused
	}
	if s.CurrentRun == nil {
		return nil
	}
	var err error
	s.runStatus, err = readStatusText(ctx, cl, s.CurrentRun.InstanceID)
	return err
}

const labelLastRun = "Last run"

func (s *shownSchedule) text() string {
	var b labelled
	b.line("Schedule", s.Schedule.ID)
	b.line("Instance", s.InstanceID)
	status := string(s.RuntimeStatus)
	if s.Deleting && !s.RuntimeStatus.Terminal() {
		status += " (deleted, ends after its current run)"
	}
	if p := s.Paused; p != nil {
		status += " " + pausedText(&history.Pause{At: p.At, Message: p.Message})
	}
	b.line("Status", status)
	if p := s.instancePause; p != nil {
		b.line("", "instance paused "+pausedText(p))
	}
	if s.Schedule.Expression == "" {
		b.line("Definition", "unknown until the first turn of the instance")
		return b.String()
	}
	b.line("Orchestration", strings.TrimSpace(s.Schedule.Orchestration+" "+s.Schedule.Version))
	b.line("Expression", whenText(&s.ScheduleStatus))
	b.line("Next run", momentOr(s.NextDue))
	b.line("Overlap", string(cmp.Or(s.Schedule.Overlap, schedule.OverlapSkip)))
	b.line("Catch-up", string(cmp.Or(s.Schedule.CatchUp, schedule.CatchUpLast)))
	if r := s.CurrentRun; r != nil {
		label := "Current run"
		if s.RuntimeStatus.Terminal() {
			label = labelLastRun
		}
		b.line(label, fmt.Sprintf("%s %s, started %s", r.InstanceID, s.runStatus, moment(r.StartedAt)))
	}
	if s.Queued > 0 {
		b.line("Queued", strconv.Itoa(s.Queued))
	}
	for i, w := range s.Backfills {
		label := ""
		if i == 0 {
			label = "Backfills"
		}
		b.line(label, fmt.Sprintf("%s to %s", moment(w.From), moment(w.To)))
	}
	if r := s.LastRun; r != nil && (s.CurrentRun == nil || !s.RuntimeStatus.Terminal()) {
		b.line(labelLastRun, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.InstanceID, r.Outcome, excerpt(r.Error, 200))))
	}
	b.line("Runs", fmt.Sprintf("%d started, %d failed, %d skipped, %d missed", s.Started, s.Failed, s.Skipped,
		s.Missed))
	return b.String()
}

func runScheduleVerb(c *command) *cobra.Command {
	cmd := c.verb("run SCHEDULE", "Start a run now", argSchedule,
		func(ctx context.Context, cl *client.Client, id string) error {
			run, err := cl.TriggerSchedule(ctx, id)
			if err != nil {
				return ofSchedule(c, err)
			}
			if c.json {
				return c.accepted(run)
			}
			return c.print(clean(run) + "\n")
		})
	cmd.Long = cmd.Short + `.

The command prints the ID of the run. The run starts after the current run, or as the overlap policy of the
schedule decides, even if the schedule is paused. If the instance of the schedule is paused with perdure
pause schedule:ID, the run starts when the instance is resumed.`
	cmd.Example = "  perdure schedule run nightly"
	return cmd
}

func backfillVerb(c *command) *cobra.Command {
	var from, to string
	backfill := func(ctx context.Context, cl *client.Client, id string) error {
		var w schedule.BackfillWindow
		if err := parseTimes(timeFlag{"--from", from, &w.From}, timeFlag{"--to", to, &w.To}); err != nil {
			return err
		}
		if err := cl.BackfillSchedule(ctx, id, w.From, w.To); err != nil {
			return ofSchedule(c, err)
		}
		return c.accepted(schedule.InstanceID(id))
	}
	cmd := c.verb("backfill SCHEDULE", "Run past times of a schedule", argSchedule, backfill)
	cmd.Long = cmd.Short + `.

Times that already have a run are skipped, so the command can be repeated. The runs execute one after
another, or concurrently if the overlap policy allows it. Times that become due meanwhile run first. perdure
schedule show lists the remaining backfills.`
	cmd.Example = `  perdure schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z`
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "first time, RFC 3339")
	flags.StringVar(&to, "to", "", "last time, RFC 3339, not in the future")
	completeWith[string](cmd, "from")
	completeWith[string](cmd, "to")
	return cmd
}

func deleteScheduleVerb(c *command) *cobra.Command {
	cmd := c.verb("delete SCHEDULE", "Delete a schedule", argSchedule,
		func(ctx context.Context, cl *client.Client, id string) error {
			if err := cl.DeleteSchedule(ctx, id); err != nil {
				return ofSchedule(c, err)
			}
			return c.accepted(schedule.InstanceID(id))
		})
	cmd.Long = cmd.Short + `.

The schedule ends after its current run, at least a minute later, so that a put in flight cannot restore it.
To cancel the run as well, use perdure cancel schedule:ID. A schedule that has already ended is purged.`
	cmd.Example = "  perdure schedule delete nightly"
	return cmd
}

// tellScheduleVerb returns a command with a --message flag.
func tellScheduleVerb(
	c *command, use, short string, tell func(ctx context.Context, cl *client.Client, id, message string) error,
) *cobra.Command {
	var message string
	cmd := c.verb(use, short, argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		return tell(ctx, cl, id, message)
	})
	cmd.Flags().StringVar(&message, "message", "", "reason, stored with the schedule")
	return cmd
}

// ofSchedule replaces errors about an instance by errors about a schedule.
func ofSchedule(c *command, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return &exit{
			exitError,
			fmt.Sprintf("no build deployed to hub %q supports schedules; deploy functions of this release", c.hub),
		}
	case errors.Is(err, client.ErrNotFound):
		return &exit{
			exitError,
			fmt.Sprintf("schedule not found in hub %q; run perdure schedule list to see its schedules", c.hub),
		}
	case errors.Is(err, client.ErrEnded):
		return &exit{
			exitError,
			"schedule has ended; see perdure schedule show, or create it again with perdure schedule put",
		}
	default:
		return err
	}
}
