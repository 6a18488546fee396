package main

import (
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

// argSchedule is the id of a schedule, which no shell completes.
const argSchedule = "SCHEDULE"

func scheduleVerb(c *command) *cobra.Command {
	cmd := choice(&cobra.Command{
		Use: "schedule", Short: "Start orchestrations by the clock",
		Long: `Start orchestrations by the clock.

A schedule is an instance itself, schedule:ID: its history says what it started when, and why shows what it
waits for. Its runs are the instances ID@TIME.`,
		Example: `  perdure schedule put nightly --orchestration report --when "0 2 * * *" --time-zone Europe/Berlin
  perdure schedule list
  perdure schedule pause nightly --message "for the migration"
  perdure list --parent schedule:nightly`,
	})
	cmd.AddCommand(putScheduleVerb(c), listSchedulesVerb(c), showScheduleVerb(c), runScheduleVerb(c), backfillVerb(c), deleteScheduleVerb(c),
		tellScheduleVerb(c, "pause SCHEDULE", "Have a schedule start no runs by its times; the one that is under way goes on, and perdure schedule run starts one", func(ctx context.Context, cl *client.Client, id, message string) error {
			if err := cl.PauseSchedule(ctx, id, message); err != nil {
				return ofSchedule(c, err)
			}
			return c.accepted(schedule.InstanceID(id))
		}),
		tellScheduleVerb(c, "resume SCHEDULE", "Let a paused schedule go on: what it missed is made up for as it was put", func(ctx context.Context, cl *client.Client, id, message string) error {
			return ofSchedule(c, resumed(c, schedule.InstanceID(id), cl.ResumeSchedule(ctx, id, message)))
		}))
	return cmd
}

// scheduleFlags are what put takes beside the id.
type scheduleFlags struct {
	schedule.Schedule

	input, from, until, overlap, catchUp string
}

// read returns the schedule that the flags say.
func (f *scheduleFlags) read(c *command, id string) (s schedule.Schedule, err error) {
	switch {
	case f.Orchestration == "":
		return s, errors.New("--orchestration is missing: it says what is started")
	case f.When == "":
		return s, errors.New("--when is missing: see perdure schedule put --help")
	}
	s = f.Schedule
	s.ID, s.Overlap, s.CatchUp = id, schedule.Overlap(f.overlap), schedule.CatchUp(f.catchUp)
	if err := parseTimes(timeFlag{"--from", f.from, &s.From}, timeFlag{"--until", f.until, &s.Until}); err != nil {
		return s, err
	}
	s.Input, err = readInput(c, f.input)
	return s, err
}

func putScheduleVerb(c *command) *cobra.Command {
	var f scheduleFlags
	cmd := c.verb("put SCHEDULE", "Make a schedule, or change the one of that id", argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		s, err := f.read(c, id)
		if err != nil {
			return err
		}
		if err := cl.PutSchedule(ctx, s); err != nil {
			return ofSchedule(c, err)
		}
		return c.accepted(schedule.InstanceID(id))
	})
	cmd.Long = cmd.Short + `.

What it runs, runs on, and a pause stays. What is not said is as for a new one.

--when is one of
  rate(5 minutes)      minutes, hours or days
  cron(0 2 * * ? *)    as in EventBridge Scheduler: minute, hour, day, month, day of week (1 is Sunday), year
  0 2 * * MON-FRI      as in crontab (0 and 7 are Sunday)
  @daily               @hourly, @weekly, @monthly, @yearly`
	cmd.Example = `  perdure schedule put nightly --orchestration report --when "0 2 * * *" --time-zone Europe/Berlin
  perdure schedule put poll --orchestration poll --when "rate(5 minutes)" --overlap cancel --input @poll.json`
	flags := cmd.Flags()
	flags.StringVar(&f.Orchestration, "orchestration", "", "what is started")
	flags.StringVar(&f.Version, "version", "", "its version (default: the highest by then)")
	flags.StringVar(&f.When, "when", "", "when it is")
	flags.StringVar(&f.TimeZone, "time-zone", "", "of a cron expression, such as Europe/Berlin (default: UTC)")
	flags.StringVar(&f.input, "input", "null", "the input of each run: JSON, @FILE, or - for stdin")
	flags.StringVar(&f.from, "from", "", "not before: RFC 3339, such as 2006-01-02T15:04:05Z")
	flags.StringVar(&f.until, "until", "", "not after")
	flags.StringVar(&f.overlap, "overlap", "", "what becomes of a time that comes while a run is under way: skip (default), queue, cancel or allow")
	flags.StringVar(&f.catchUp, "catch-up", "", "what becomes of times that were missed: none, last (default) or all")
	completeWith(cmd, "overlap", schedule.Skip, schedule.Queue, schedule.Cancel, schedule.Allow)
	completeWith(cmd, "catch-up", schedule.CatchUpNone, schedule.CatchUpLast, schedule.CatchUpAll)
	return cmd
}

func listSchedulesVerb(c *command) *cobra.Command {
	var p client.Paging
	cmd := c.verb("list", "List schedules, by their ids", "", func(ctx context.Context, cl *client.Client, _ string) error {
		if err := checkLimit(p.Limit); err != nil {
			return err
		}
		page, err := cl.SchedulesPage(ctx, p)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(httpapi.NewSchedules(page))
		}
		if err := c.print(scheduleTable(page.Items)); err != nil {
			return err
		}
		c.more(page.NextCursor)
		return nil
	})
	cmd.Flags().IntVar(&p.Limit, "limit", 100, "show at most this many, up to 1000")
	cmd.Flags().StringVar(&p.Cursor, "cursor", "", "go on where a list ended")
	return cmd
}

func scheduleTable(all []client.ScheduleStatus) string {
	t := table{header: []string{"SCHEDULE", "STATUS", columnOrchestration, "WHEN", "NEXT", "LAST", ">STARTED", ">FAILED", ">SKIPPED", ">MISSED"}}
	for i := range all {
		s := &all[i]
		t.add(clean(s.Schedule.ID), string(s.RuntimeStatus), excerpt(s.Schedule.Orchestration, longestName), whenText(s), momentOr(s.Next), lastText(s),
			number(s.Started), number(s.Failed), number(s.Skipped), number(s.Missed))
	}
	return t.String()
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// momentOr is a time that there may not be.
func momentOr(t time.Time) string {
	if t.IsZero() {
		return dash("")
	}
	return moment(t)
}

func whenText(s *client.ScheduleStatus) string {
	return dash(strings.TrimSpace(clean(s.Schedule.When + " " + s.Schedule.TimeZone)))
}

// lastText is the run that is under way, or how the last one ended.
func lastText(s *client.ScheduleStatus) string {
	switch {
	case s.Running != nil:
		return "runs since " + moment(s.Running.StartedAt)
	case s.Last != nil && s.Last.Outcome != "":
		return fmt.Sprintf("%s %s", s.Last.Outcome, moment(s.Last.EndedAt))
	case s.Last != nil:
		return "started " + moment(s.Last.StartedAt)
	default:
		return dash("")
	}
}

func showScheduleVerb(c *command) *cobra.Command {
	return c.verb("show SCHEDULE", "Show a schedule: when it is due, what it runs, what it has done", argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		s, err := cl.Schedule(ctx, id)
		if err != nil {
			return ofSchedule(c, err)
		}
		if c.json {
			return c.printJSON(s)
		}
		return c.print(scheduleText(&s))
	})
}

func scheduleText(s *client.ScheduleStatus) string {
	var b labelled
	b.line("Schedule", s.Schedule.ID)
	b.line("Instance", s.InstanceID)
	status := string(s.RuntimeStatus)
	if s.Ending && !s.RuntimeStatus.Terminal() {
		status += ": it was deleted, and ends when its run is over"
	}
	if p := s.Paused; p != nil {
		status += " " + pausedText(&history.Pause{At: p.At, Message: p.Message})
	}
	b.line("Status", status)
	b.line("Orchestration", strings.TrimSpace(s.Schedule.Orchestration+" "+s.Schedule.Version))
	b.line("When", whenText(s))
	b.line("Next", momentOr(s.Next))
	b.line("Overlap", string(s.Schedule.Overlap))
	b.line("Catch-up", string(s.Schedule.CatchUp))
	if r := s.Running; r != nil {
		b.line("Running", fmt.Sprintf("%s since %s", r.InstanceID, moment(r.StartedAt)))
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
	if r := s.Last; r != nil {
		b.line("Last", strings.TrimSpace(fmt.Sprintf("%s %s %s", r.InstanceID, r.Outcome, excerpt(r.Error, 200))))
	}
	b.line("Runs", fmt.Sprintf("%d started, %d failed, %d times skipped, %d missed", s.Started, s.Failed, s.Skipped, s.Missed))
	return b.String()
}

func runScheduleVerb(c *command) *cobra.Command {
	cmd := c.verb("run SCHEDULE", "Start a run now, as if it had come due, and print its id", argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		run, err := cl.RunSchedule(ctx, id)
		if err != nil {
			return ofSchedule(c, err)
		}
		if c.json {
			return c.accepted(run)
		}
		return c.print(clean(run) + "\n")
	})
	cmd.Long = cmd.Short + `.

It begins behind the run that is under way, or as the schedule's overlap policy has it, also while the schedule
is paused. Where the instance of the schedule is paused, by perdure pause schedule:ID, it begins when that is
resumed.`
	return cmd
}

func backfillVerb(c *command) *cobra.Command {
	var from, to string
	cmd := c.verb("backfill SCHEDULE", "Start the runs that a schedule would have had in a part of the past", argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		var w schedule.Window
		if err := parseTimes(timeFlag{"--from", from, &w.From}, timeFlag{"--to", to, &w.To}); err != nil {
			return err
		}
		if err := cl.BackfillSchedule(ctx, id, w.From, w.To); err != nil {
			return ofSchedule(c, err)
		}
		return c.accepted(schedule.InstanceID(id))
	})
	cmd.Long = cmd.Short + `.

Each time that has a run already is left alone, so it may be asked for again. The runs go one after the other,
or beside each other where the schedule allows that; what comes due meanwhile goes before them. perdure schedule
show says what is left.`
	cmd.Example = `  perdure schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z`
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "the first time, as in RFC 3339")
	flags.StringVar(&to, "to", "", "the last time, which may be now at most")
	completeWith[string](cmd, "from")
	completeWith[string](cmd, "to")
	return cmd
}

func deleteScheduleVerb(c *command) *cobra.Command {
	cmd := c.verb("delete SCHEDULE", "End a schedule once its run is over", argSchedule, func(ctx context.Context, cl *client.Client, id string) error {
		if err := cl.DeleteSchedule(ctx, id); err != nil {
			return ofSchedule(c, err)
		}
		return c.accepted(schedule.InstanceID(id))
	})
	cmd.Long = cmd.Short + `.

It ends a minute later, when no put can be on its way that revokes it. To cancel its run as well, cancel the
instance: perdure cancel schedule:ID. One that is over already is purged.`
	return cmd
}

// tellScheduleVerb is a verb that takes a reason.
func tellScheduleVerb(c *command, use, short string, tell func(ctx context.Context, cl *client.Client, id, message string) error) *cobra.Command {
	var message string
	cmd := c.verb(use, short, argSchedule, func(ctx context.Context, cl *client.Client, id string) error { return tell(ctx, cl, id, message) })
	cmd.Flags().StringVar(&message, "message", "", "why, for those who find it so")
	return cmd
}

// ofSchedule says of a schedule what would be said of an instance.
func ofSchedule(c *command, err error) error {
	switch {
	case errors.Is(err, client.ErrUnknownOrchestration):
		return &exit{exitError, fmt.Sprintf("no build deployed to hub %q knows schedules: deploy functions of this release", c.hub)}
	case errors.Is(err, client.ErrNotFound):
		return &exit{exitError, fmt.Sprintf("no such schedule in hub %q: perdure schedule list shows those there are", c.hub)}
	case errors.Is(err, client.ErrTerminal):
		return &exit{exitError, "the schedule is over: perdure schedule show says how it ended, and put makes it anew"}
	default:
		return err
	}
}
