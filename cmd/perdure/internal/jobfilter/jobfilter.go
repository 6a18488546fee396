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

// bulkFlags select instances, for verbs that also take one by its id.
type filter struct {
	name, version, parent, olderThan, startedAfter, startedBefore string
	statuses, tags                                                []string
	all, dryRun, yes                                              bool
	now                                                           func() time.Time
}

// bulkFlagNames are the flags that select.
var names = []string{"name", "version", "parent", "status", "tag", "older-than", "started-after", "started-before", "all"}

// bulkText returns the help text about filters, with a verb in the third person.
func Help(verb string) string {
	return fmt.Sprintf(`

With a filter instead of an ID, the hub %s all matching instances that started before now. It does so in
the background, and perdure jobs shows the progress.`, verb)
}

// bulk makes a command accept a filter instead of an instance ID.
func Add(c *cli.Env, cmd *cobra.Command, op provider.Operation, complete func(b *admin.JobRequest)) {
	f := &filter{now: c.Now}
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
			return flagvalue.RejectEmpty(cmd, names...)
		}
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.selects(cmd) {
			if f.dryRun || f.yes {
				return errors.New("--dry-run and --yes require a filter such as --name")
			}
			return one(cmd, args)
		}
		h, err := c.OpenHub(cmd.Context(), c.HubName)
		if err != nil {
			return &cli.OpenError{Cause: err}
		}
		b := admin.JobRequest{Operation: op, All: f.all}
		complete(&b)
		if err := f.fill(&b); err != nil {
			return err
		}
		return f.run(cmd.Context(), c, h.Admin, b)
	}
}

func (f *filter) selects(cmd *cobra.Command) bool {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// fill reads the flags into a filter.
func (f *filter) fill(b *admin.JobRequest) error {
	b.Filter.Orchestration = f.name
	b.Filter.Version = f.version
	b.Filter.ParentID = f.parent
	for _, s := range f.statuses {
		b.Filter.Statuses = append(b.Filter.Statuses, flagvalue.ParseStatus(s))
	}
	var err error
	if b.Filter.Tags, err = flagvalue.ParseTags(f.tags); err != nil {
		return err
	}
	if err := flagvalue.ParseStarted(f.startedAfter, f.startedBefore, &b.Filter.StartedAfter, &b.Filter.StartedBefore); err != nil {
		return err
	}
	return f.fillAge(b)
}

func (f *filter) fillAge(b *admin.JobRequest) error {
	if f.olderThan == "" {
		return nil
	}
	d, err := days.Parse(f.olderThan)
	if err != nil {
		return &provider.FieldError{Field: "--older-than", Problem: "is " + err.Error()}
	}
	before := f.now().Add(-d)
	if b.Operation == admin.OperationPurge {
		b.Filter.UpdatedBefore = before
	} else if b.Filter.StartedBefore.IsZero() || before.Before(b.Filter.StartedBefore) {
		b.Filter.StartedBefore = before
	}
	return nil
}

// runBulk shows what matches, asks for confirmation, and begins.
func (f *filter) run(ctx context.Context, c *cli.Env, a *admin.Client, b admin.JobRequest) error {
	if f.dryRun || !f.yes {
		p, err := a.PreviewJob(ctx, b)
		if err != nil {
			return err
		}
		if f.dryRun && c.JSON {
			return c.PrintJSON(p)
		}
		if f.dryRun {
			return c.Print(previewText(b.Operation, p))
		}
		fmt.Fprintln(c.Stderr, strings.TrimSuffix(previewText(b.Operation, p), "\n"))
		if !c.Confirm(b.Operation) {
			return cli.ErrNotConfirmed
		}
		b.Filter.StartedBefore = p.StartedBefore // what has started since is not what was counted and confirmed
		b.All = false
	}

	j, err := a.StartJob(ctx, b)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.PrintJSON(httpapi.NewJob(j))
	}
	fmt.Fprintf(c.Stderr, "job starts within minutes; perdure jobs shows its progress, perdure jobs cancel %s stops it\n",
		j.ID)
	return c.Print(j.ID + "\n")
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
