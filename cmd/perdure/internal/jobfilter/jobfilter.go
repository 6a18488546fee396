// Package jobfilter makes commands accept a filter instead of an instance ID, and start bulk jobs with it.
package jobfilter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/flagvalue"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/provider"
)

// filter contains the flags that select the instances of a job.
type filter struct {
	name, version, parent, olderThan, startedAfter, startedBefore string
	statuses, tags                                                []string
	all, dryRun, yes                                              bool
	now                                                           func() time.Time
}

// filterFlags are the flags that select instances.
var filterFlags = []string{
	"name", "version", "parent", "status", "tag", "older-than", "started-after", "started-before", "all",
}

// Help returns the help text about filters, with a verb in the third person.
func Help(verb string) string {
	return fmt.Sprintf(`

With a filter instead of an ID, the hub %s all matching instances that started before now. The job runs in
the background, and perdure jobs shows its progress.`, verb)
}

// Add makes a command accept a filter instead of an instance ID. The function complete sets the fields of the request
// that depend on other flags of the command.
func Add(env *cli.Env, cmd *cobra.Command, op provider.Operation, complete func(r *admin.JobRequest)) {
	f := &filter{now: env.Now}
	flags := cmd.Flags()
	age := "minimum age since the start, such as 30d or 12h"
	if op == admin.OperationPurge {
		age = "minimum age since the end, such as 30d or 12h"
	}
	flags.StringVar(&f.name, "name", "", "orchestration of the instances")
	flags.StringVar(&f.version, "version", "", "orchestration version of the instances")
	flags.StringVar(&f.parent, "parent", "", "ID of the parent instance that waits for them")
	flags.StringSliceVar(&f.statuses, "status", nil, "statuses of the instances, comma-separated")
	flags.StringArrayVar(&f.tags, "tag", nil, "tag of the instances as KEY=VALUE; repeatable")
	flags.StringVar(&f.olderThan, "older-than", "", age)
	flags.StringVar(&f.startedAfter, "started-after", "", flagvalue.StartedAfterUsage)
	flags.StringVar(&f.startedBefore, "started-before", "", flagvalue.StartedBeforeUsage)
	flags.BoolVar(&f.all, "all", false, "all instances, if no other filter is set")
	flags.BoolVar(&f.dryRun, "dry-run", false, "preview of the matching instances, without changes")
	flags.BoolVar(&f.yes, "yes", false, flagvalue.YesUsage)

	one := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case !f.selects(cmd):
			return cli.CheckArgs(cmd, args, cli.ArgID)
		case len(args) > 0:
			return fmt.Errorf("specify an ID or a filter, not both; see %s --help", cmd.CommandPath())
		default:
			return flagvalue.RejectEmpty(cmd, filterFlags...)
		}
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.selects(cmd) {
			if f.dryRun || f.yes {
				return errors.New("--dry-run and --yes require a filter such as --name")
			}
			return one(cmd, args)
		}
		h, err := env.Open(cmd.Context())
		if err != nil {
			return err
		}
		r := admin.JobRequest{Operation: op, All: f.all}
		complete(&r)
		if err := f.fill(&r); err != nil {
			return err
		}
		return f.run(cmd.Context(), env, h.Admin, r)
	}
}

func (f *filter) selects(cmd *cobra.Command) bool {
	for _, name := range filterFlags {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// fill sets the filter of a request.
func (f *filter) fill(r *admin.JobRequest) error {
	r.Filter.Orchestration = f.name
	r.Filter.Version = f.version
	r.Filter.ParentID = f.parent
	for _, s := range f.statuses {
		r.Filter.Statuses = append(r.Filter.Statuses, flagvalue.ParseStatus(s))
	}
	var err error
	if r.Filter.Tags, err = flagvalue.ParseTags(f.tags); err != nil {
		return err
	}
	err = flagvalue.ParseStarted(f.startedAfter, f.startedBefore, &r.Filter.StartedAfter, &r.Filter.StartedBefore)
	if err != nil {
		return err
	}
	return f.fillAge(r)
}

func (f *filter) fillAge(r *admin.JobRequest) error {
	if f.olderThan == "" {
		return nil
	}
	d, err := days.Parse(f.olderThan)
	if err != nil {
		return &provider.FieldError{Field: "--older-than", Problem: "is " + err.Error()}
	}
	before := f.now().Add(-d)
	if r.Operation == admin.OperationPurge {
		r.Filter.UpdatedBefore = before
	} else if r.Filter.StartedBefore.IsZero() || before.Before(r.Filter.StartedBefore) {
		r.Filter.StartedBefore = before
	}
	return nil
}

// run prints a preview, asks for confirmation, and starts the job.
func (f *filter) run(ctx context.Context, env *cli.Env, a *admin.Client, r admin.JobRequest) error {
	if f.dryRun || !f.yes {
		p, err := a.PreviewJob(ctx, r)
		if err != nil {
			return err
		}
		text := previewText(r.Operation, p)
		if f.dryRun {
			return env.PrintResult(p, text)
		}
		_, _ = fmt.Fprint(env.Stderr, text)
		if err := env.Confirm(ctx, r.Operation); err != nil {
			return err
		}
		r.Filter.StartedBefore = p.StartedBefore // instances that started since the preview were not confirmed
		r.All = false
	}

	j, err := a.StartJob(ctx, r)
	if err != nil {
		return err
	}
	if env.JSON {
		return env.PrintJSON(httpapi.NewJob(j))
	}
	fmt.Fprintf(env.Stderr, "job starts within minutes; perdure jobs shows its progress, "+
		"perdure jobs cancel %s stops it\n", j.ID)
	return env.Print(j.ID + "\n")
}

func previewText(op provider.Operation, p admin.JobPreview) string {
	var b strings.Builder
	more := ""
	if !p.Complete {
		more = " or more"
	}
	fmt.Fprintf(&b, "instances to %s: %d%s\n", op, p.Matched, more)
	for _, id := range p.Sample {
		fmt.Fprintf(&b, "  %s\n", term.Clean(id))
	}
	if int64(len(p.Sample)) < p.Matched {
		b.WriteString("  …\n")
	}
	return b.String()
}
