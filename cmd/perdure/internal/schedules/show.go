package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/schedule"
)

func showCommand(env *cli.Env) *cobra.Command {
	cmd := env.ClientCommand("show SCHEDULE", "Show a schedule", argSchedule,
		func(ctx context.Context, cl *client.Client, id string) error {
			s, err := cl.Schedules().Get(ctx, id)
			if err != nil {
				return scheduleError(env, err)
			}
			if env.JSON {
				return env.PrintJSON(s)
			}
			shown := shownSchedule{ScheduleStatus: s}
			if err := shown.readInstances(ctx, cl); err != nil {
				return err
			}
			return env.Print(shown.text())
		})
	cmd.Long = cmd.Short + `.

While the current run is Blocked or Paused, the overlap policy applies to the following times.`
	cmd.Example = "  perdure schedule show nightly"
	return cmd
}

// shownSchedule is a schedule with data of its instance and of its current run.
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
	s.runStatus, err = describe.ReadStatus(ctx, cl, s.CurrentRun.InstanceID)
	return err
}

const labelLastRun = "Last run"

// maxRunError is the maximum length of the error of a run.
const maxRunError = 200

func (s *shownSchedule) text() string {
	var b term.Labels
	b.Line("Schedule", s.Schedule.ID)
	b.Line("Instance", s.InstanceID)
	status := string(s.RuntimeStatus)
	if s.Deleting && !s.RuntimeStatus.Terminal() {
		status += " (deleted, ends after its current run)"
	}
	if p := s.Paused; p != nil {
		status += " " + describe.Pause(&history.Pause{At: p.At, Message: p.Message})
	}
	b.Line("Status", status)
	if p := s.instancePause; p != nil {
		b.Line("", "instance paused "+describe.Pause(p))
	}
	if s.Schedule.Expression == "" {
		b.Line("Definition", "unknown until the first turn of the instance")
		return b.String()
	}
	b.Line("Orchestration", strings.TrimSpace(s.Schedule.Orchestration+" "+s.Schedule.Version))
	b.Line("Expression", whenText(&s.ScheduleStatus))
	b.Line("Next run", term.TimeOrDash(s.NextDue))
	b.Line("Overlap", string(cmp.Or(s.Schedule.Overlap, schedule.OverlapSkip)))
	b.Line("Catch-up", string(cmp.Or(s.Schedule.CatchUp, schedule.CatchUpLast)))
	if r := s.CurrentRun; r != nil {
		label := "Current run"
		if s.RuntimeStatus.Terminal() {
			label = labelLastRun
		}
		b.Line(label, fmt.Sprintf("%s %s, started %s", r.InstanceID, s.runStatus, term.Time(r.StartedAt)))
	}
	if s.Queued > 0 {
		b.Line("Queued", strconv.Itoa(s.Queued))
	}
	for i, w := range s.Backfills {
		label := ""
		if i == 0 {
			label = "Backfills"
		}
		b.Line(label, fmt.Sprintf("%s to %s", term.Time(w.From), term.Time(w.To)))
	}
	if r := s.LastRun; r != nil && (s.CurrentRun == nil || !s.RuntimeStatus.Terminal()) {
		text := fmt.Sprintf("%s %s %s", r.InstanceID, r.Outcome, term.Excerpt(r.Error, maxRunError))
		b.Line(labelLastRun, strings.TrimSpace(text))
	}
	b.Line("Runs", fmt.Sprintf("%d started, %d failed, %d skipped, %d missed", s.Started, s.Failed, s.Skipped,
		s.Missed))
	return b.String()
}
