package schedules

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

func listCommand(env *cli.Env) *cobra.Command {
	var p client.Paging
	cmd := env.ClientCommand("list", "List schedules", "",
		func(ctx context.Context, cl *client.Client, _ string) error {
			if err := flagvalue.CheckLimit(p.Limit); err != nil {
				return err
			}
			page, err := cl.Schedules().ListPage(ctx, p)
			if err != nil {
				return err
			}
			return env.PrintPage(httpapi.NewSchedulePage(page), scheduleTable(page.Items), page.NextCursor)
		})
	flagvalue.AddPaging(cmd, &p, 100)
	cmd.Example = "  perdure schedule list --limit 1000"
	return cmd
}

func scheduleTable(all []client.ScheduleStatus) string {
	t := term.Table{Header: []string{
		"SCHEDULE", term.ColumnStatus, term.ColumnOrchestration, "EXPRESSION", "NEXT RUN", "LAST RUN",
		">STARTED", ">FAILED", ">SKIPPED", ">MISSED",
	}}
	for i := range all {
		s := &all[i]
		t.Add(term.Clean(s.Schedule.ID), string(s.RuntimeStatus),
			term.Excerpt(s.Schedule.Orchestration, term.MaxName), whenText(s), term.TimeOrDash(s.NextDue), lastText(s),
			term.Number(s.Started), term.Number(s.Failed), term.Number(s.Skipped), term.Number(s.Missed))
	}
	return t.String()
}

func whenText(s *client.ScheduleStatus) string {
	return term.OrDash(strings.TrimSpace(term.Clean(s.Schedule.Expression + " " + s.Schedule.TimeZone)))
}

// lastText returns the start time of the current run, or the outcome of the last run.
func lastText(s *client.ScheduleStatus) string {
	switch {
	case s.CurrentRun != nil && s.RuntimeStatus.Terminal():
		return "started " + term.Time(s.CurrentRun.StartedAt)
	case s.CurrentRun != nil:
		return "running since " + term.Time(s.CurrentRun.StartedAt)
	case s.LastRun != nil && s.LastRun.Outcome != "":
		return fmt.Sprintf("%s %s", s.LastRun.Outcome, term.Time(s.LastRun.EndedAt))
	case s.LastRun != nil:
		return "started " + term.Time(s.LastRun.StartedAt)
	default:
		return term.OrDash("")
	}
}
