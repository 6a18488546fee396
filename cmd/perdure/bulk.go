package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/internal/days"
	"github.com/perdure/perdure/provider"
)

// bulkFlags select instances, for verbs that also take one by its id.
type bulkFlags struct {
	name, version, parent, olderThan, startedAfter, startedBefore string
	statuses, tags                                                []string
	all, dryRun, yes                                              bool
	now                                                           func() time.Time
}

// bulkFlagNames are the flags that select.
var bulkFlagNames = []string{"name", "version", "parent", "status", "tag", "older-than", "started-after", "started-before", "all"}

// The usage texts of flags that several commands have.
const (
	startedAfterUsage  = "earliest start time (inclusive), RFC 3339, such as 2006-01-02T15:04:05Z"
	startedBeforeUsage = "latest start time (exclusive), RFC 3339"
	yesUsage           = "no confirmation prompt"
)

// bulkText returns the help text about filters, with a verb in the third person.
func bulkText(verb string) string {
	return fmt.Sprintf(`

With a filter instead of an ID, the hub %s all matching instances that started before now. It does so in
the background, and perdure jobs shows the progress.`, verb)
}

// bulk makes a command accept a filter instead of an instance ID.
func (c *command) bulk(cmd *cobra.Command, op provider.Operation, complete func(b *admin.JobRequest)) {
	f := &bulkFlags{now: c.now}
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
	flags.StringVar(&f.startedAfter, "started-after", "", startedAfterUsage)
	flags.StringVar(&f.startedBefore, "started-before", "", startedBeforeUsage)
	flags.BoolVar(&f.all, "all", false, "all instances, if no other filter is set")
	flags.BoolVar(&f.dryRun, "dry-run", false, "preview of the matching instances, without changes")
	flags.BoolVar(&f.yes, "yes", false, yesUsage)

	one := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case !f.selects(cmd):
			return checkArgs(cmd, args, argID)
		case len(args) > 0:
			return fmt.Errorf("specify an ID or a filter, not both; see %s --help", cmd.CommandPath())
		default:
			return noneEmpty(cmd, bulkFlagNames...)
		}
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !f.selects(cmd) {
			if f.dryRun || f.yes {
				return errors.New("--dry-run and --yes require a filter such as --name")
			}
			return one(cmd, args)
		}
		h, err := c.open(cmd.Context(), c.hub)
		if err != nil {
			return &openError{err}
		}
		b := admin.JobRequest{Operation: op, All: f.all}
		complete(&b)
		if err := f.fill(&b); err != nil {
			return err
		}
		return c.runBulk(cmd.Context(), h.admin, b, f)
	}
}

// noneEmpty rejects a filter with an empty value, such as an unset variable of a script. Ignoring it would select more
// instances than intended.
func noneEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		flag := cmd.Flags().Lookup(name)
		if value := flag.Value.String(); flag.Changed && (value == "" || value == "[]") {
			return &provider.FieldError{Field: "--" + name, Problem: "must not be empty; set a value or omit the flag"}
		}
	}
	return nil
}

// onlyOfOne rejects a flag that applies to a single instance if a filter is used.
func onlyOfOne(cmd *cobra.Command, flag, instead string) {
	args := cmd.Args
	cmd.Args = func(cmd *cobra.Command, given []string) error {
		if len(given) == 0 && cmd.Flags().Changed(flag) {
			return fmt.Errorf("--%s requires an instance ID%s", flag, instead)
		}
		return args(cmd, given)
	}
}

func (f *bulkFlags) selects(cmd *cobra.Command) bool {
	for _, name := range bulkFlagNames {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// fill reads the flags into a filter.
func (f *bulkFlags) fill(b *admin.JobRequest) error {
	b.Filter.Orchestration = f.name
	b.Filter.Version = f.version
	b.Filter.ParentID = f.parent
	for _, s := range f.statuses {
		b.Filter.Statuses = append(b.Filter.Statuses, parseStatus(s))
	}
	var err error
	if b.Filter.Tags, err = parseTags(f.tags); err != nil {
		return err
	}
	if err := parseStarted(f.startedAfter, f.startedBefore, &b.Filter.StartedAfter, &b.Filter.StartedBefore); err != nil {
		return err
	}
	return f.fillAge(b)
}

// parseStarted reads the times of --started-after and --started-before; those that are not given stay.
func parseStarted(after, before string, intoAfter, intoBefore *time.Time) error {
	return parseTimes(timeFlag{"--started-after", after, intoAfter}, timeFlag{"--started-before", before, intoBefore})
}

// timeFlag is a flag that is a time, where it is given.
type timeFlag struct {
	flag, value string
	into        *time.Time
}

func parseTimes(flags ...timeFlag) error {
	for _, at := range flags {
		if at.value == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, at.value)
		if err != nil {
			problem := "must be an RFC 3339 time such as 2006-01-02T15:04:05Z"
			return &provider.FieldError{Field: at.flag, Problem: problem}
		}
		*at.into = t
	}
	return nil
}

func (f *bulkFlags) fillAge(b *admin.JobRequest) error {
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
func (c *command) runBulk(ctx context.Context, a *admin.Client, b admin.JobRequest, f *bulkFlags) error {
	if f.dryRun || !f.yes {
		p, err := a.PreviewJob(ctx, b)
		if err != nil {
			return err
		}
		if f.dryRun && c.json {
			return c.printJSON(p)
		}
		if f.dryRun {
			return c.print(previewText(b.Operation, p))
		}
		fmt.Fprintln(c.err, strings.TrimSuffix(previewText(b.Operation, p), "\n"))
		if !c.confirmed(b.Operation) {
			return errNotConfirmed
		}
		b.Filter.StartedBefore = p.StartedBefore // what has started since is not what was counted and confirmed
		b.All = false
	}

	j, err := a.StartJob(ctx, b)
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(httpapi.NewJob(j))
	}
	fmt.Fprintf(c.err, "job starts within minutes; perdure jobs shows its progress, perdure jobs cancel %s stops it\n",
		j.ID)
	return c.print(j.ID + "\n")
}

func previewText(op provider.Operation, p admin.JobPreview) string {
	var b strings.Builder
	more := ""
	if !p.Complete {
		more = " or more"
	}
	fmt.Fprintf(&b, "instances to %s: %d%s\n", op, p.Matched, more)
	for _, id := range p.Sample {
		fmt.Fprintf(&b, "  %s\n", clean(id))
	}
	if int64(len(p.Sample)) < p.Matched {
		b.WriteString("  …\n")
	}
	return b.String()
}

// errNotConfirmed is the error of a command that was not confirmed.
var errNotConfirmed = &exit{exitError, "not confirmed, nothing was changed; answer yes or set --yes"}

// confirmed asks the user on the terminal whether to run an operation.
func (c *command) confirmed(op provider.Operation) bool {
	fmt.Fprintf(c.err, "%s: continue? [yes/no] ", op)
	answer, _ := bufio.NewReader(c.in).ReadString('\n')
	fmt.Fprintln(c.err)
	return strings.TrimSpace(answer) == "yes"
}

func jobsVerb(c *command) *cobra.Command {
	cmd := c.operatorVerb("jobs", "List bulk jobs", "", func(ctx context.Context, a *admin.Client, _ string) error {
		jobs, err := client.Collect(a.Jobs(ctx))
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(httpapi.NewJobs(jobs))
		}
		return c.print(jobTable(jobs))
	})
	cmd.Long = cmd.Short + `.

A bulk job purges, cancels or terminates all instances that match a filter. The list has the jobs that are
running and those that ended in the last seven days.`
	cmd.Example = `  perdure purge --name fulfil --status Completed --older-than 30d
  perdure jobs
  perdure jobs cancel 01K0…`
	stop := c.operatorVerb("cancel JOB", "Stop a bulk job", "JOB",
		func(ctx context.Context, a *admin.Client, id string) error {
			j, err := a.CancelJob(ctx, id)
			if errors.Is(err, client.ErrNotFound) {
				return &exit{exitError, fmt.Sprintf("job %s not found; run perdure jobs to see all jobs", clean(id))}
			}
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(httpapi.NewJob(j))
			}
			return c.print(jobTable([]admin.Job{j}))
		})
	stop.Long = stop.Short + `.

Instances that the job has already processed are not restored.`
	stop.Example = "  perdure jobs cancel 01K0…"
	cmd.AddCommand(stop)
	return cmd
}

func jobTable(jobs []admin.Job) string {
	t := table{header: []string{
		"JOB", "OPERATION", "STATE", columnStarted, ">MATCHED", ">DONE", ">SKIPPED", ">FAILED", "LAST ERROR",
	}}
	for _, j := range jobs {
		last := ""
		if n := len(j.Errors); n > 0 {
			last = excerpt(j.Errors[n-1], 2*longestName)
		}
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		t.add(j.ID, string(j.Operation), string(j.State), moment(j.CreatedAt), number(j.Matched), number(j.Done), number(j.Skipped), number(j.Failed), last)
	}
	return t.String()
}
