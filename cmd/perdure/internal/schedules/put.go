package schedules

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/schedule"
)

// scheduleFlags are the flags of schedule put.
type scheduleFlags struct {
	schedule.Schedule

	input, from, until, overlap, catchUp string
}

// read returns the schedule that the flags describe.
func (f *scheduleFlags) read(env *cli.Env, id string) (s schedule.Schedule, err error) {
	switch {
	case f.Orchestration == "":
		return s, errors.New("--orchestration is required")
	case f.Expression == "":
		return s, errors.New("--expression is required; see perdure schedule put --help")
	}
	s = f.Schedule
	s.ID, s.Overlap, s.CatchUp = id, schedule.OverlapPolicy(f.overlap), schedule.CatchUpPolicy(f.catchUp)
	err = cmp.Or(flagvalue.ParseTime("--from", f.from, &s.From), flagvalue.ParseTime("--until", f.until, &s.Until))
	if err != nil {
		return s, err
	}
	s.Input, err = env.ReadInput(f.input)
	return s, err
}

func putCommand(env *cli.Env) *cobra.Command {
	var f scheduleFlags
	put := func(ctx context.Context, cl *client.Client, id string) error {
		s, err := f.read(env, id)
		if err != nil {
			return err
		}
		return printAccepted(env, id, flagvalue.AsFlag(cl.Schedules().Put(ctx, s), "when", "--expression"))
	}
	cmd := env.ClientCommand("put SCHEDULE", "Create or replace a schedule", argSchedule, put)
	cmd.Long = cmd.Short + `.

The current run of a replaced schedule continues, and a pause remains in effect. Flags that are not set have
their defaults. The command does not check that the orchestration exists. If it does not exist, the first run
is Blocked.

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
	cli.CompleteFlag(cmd, "overlap",
		schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapCancel, schedule.OverlapAllow)
	cli.CompleteFlag(cmd, "catch-up", schedule.CatchUpNone, schedule.CatchUpLast, schedule.CatchUpAll)
	return cmd
}
