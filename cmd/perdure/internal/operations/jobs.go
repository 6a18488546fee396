package operations

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
)

// Jobs returns the command jobs.
func Jobs(env *cli.Env) *cobra.Command {
	cmd := env.AdminCommand("jobs", "List bulk jobs", "", func(ctx context.Context, a *admin.Client, _ string) error {
		jobs, err := client.Collect(a.Jobs(ctx))
		if err != nil {
			return err
		}
		return env.PrintResult(httpapi.NewJobs(jobs), jobTable(jobs))
	})
	cmd.Long = cmd.Short + `.

A bulk job purges, cancels or terminates all instances that match a filter. The list has running jobs, and
jobs that ended in the last seven days.`
	cmd.Example = `  perdure purge --name fulfil --status Completed --older-than 30d
  perdure jobs
  perdure jobs cancel 01K0…`
	stop := env.AdminCommand("cancel JOB", "Stop a bulk job", "JOB",
		func(ctx context.Context, a *admin.Client, id string) error {
			j, err := a.CancelJob(ctx, id)
			if errors.Is(err, client.ErrNotFound) {
				return cli.Exitf(cli.CodeError, "job %s not found; run perdure jobs to see all jobs", term.Clean(id))
			}
			if err != nil {
				return err
			}
			return env.PrintResult(httpapi.NewJob(j), jobTable([]admin.Job{j}))
		})
	stop.Long = stop.Short + `.

Instances that the job has already processed are not restored.`
	stop.Example = "  perdure jobs cancel 01K0…"
	cmd.AddCommand(stop)
	return cmd
}

func jobTable(jobs []admin.Job) string {
	t := term.Table{Header: []string{
		"JOB", "OPERATION", "STATE", term.ColumnStarted, ">MATCHED", ">DONE", ">SKIPPED", ">FAILED", "LAST ERROR",
	}}
	for _, j := range jobs {
		last := ""
		if n := len(j.Errors); n > 0 {
			last = term.Excerpt(j.Errors[n-1], 2*term.MaxName)
		}
		t.Add(j.ID, string(j.Operation), string(j.State), term.Time(j.CreatedAt), term.Number(j.Matched),
			term.Number(j.Done), term.Number(j.Skipped), term.Number(j.Failed), last)
	}
	return t.String()
}
