// Package selftest tests perdure in an AWS account. It deploys a disposable stack, runs scenarios on it, and removes
// everything that it created.
//
// All resources of a run are in one stack, which has a tag, and in one bucket, whose name has the ID of the run. So a
// later run finds them after a crash. The ID has the start time, because a run removes only those of runs that have
// exceeded their time limit.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
)

// Time limits of a run. Together they are less than the announced limit.
const (
	freshness    = 30 * time.Second // maximum age of the ID at the start of the run
	testLimit    = 16 * time.Minute // of the deployment and the tests
	removalLimit = 8 * time.Minute
	runLimit     = 25 * time.Minute
)

// runner runs the self-test in an account.
type runner struct {
	account, region string
	stacks          deployment.StackAPI
	buckets         deployment.BucketAPI
	template        *deployment.Template
	// code returns a bucket, which it creates if it does not exist.
	code func(bucket string) deployment.CodeStore
	// build builds the functions for a CPU architecture.
	build func(ctx context.Context, architecture string) ([]deployment.Function, error)
	// test tests a deployed hub and records the results in the report.
	test func(ctx context.Context, d *deployed, report *Report) error

	progress io.Writer
	now      func() time.Time
	sleep    func(ctx context.Context, d time.Duration) error
	// signals returns the interruptions from now on.
	signals func() (signals <-chan os.Signal, stop func())
}

// options are the options of a run.
type options struct {
	architecture string
	short, keep  bool
	// given are parameters of the stack that replace those of the test.
	given map[string]string
}

// deployed is a hub that the run has deployed.
type deployed struct {
	run       runID
	resources []deployment.Resource
	outputs   map[string]string
	short     bool
}

// physical returns the name, the URL or the ARN of a resource.
func (d *deployed) physical(id string) string {
	for i := range d.resources {
		if d.resources[i].ID == id {
			return d.resources[i].Physical
		}
	}
	return ""
}

func (r *runner) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.progress, format+"\n", args...) // the run does not depend on its messages
}

// run deploys a hub, tests it and removes it. The error reports why the tests did not run to their end. Results and
// remaining resources are in the report.
func (r *runner) run(ctx context.Context, run runID, o options) (*Report, error) {
	report := &Report{
		Run: string(run), Account: r.account, Region: r.region, Architecture: o.architecture, Short: o.short,
		StartedAt: run.startedAt(),
	}
	err := r.deployAndTest(ctx, run, o, report)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	report.Minutes = r.now().Sub(report.StartedAt).Minutes()
	if o.keep {
		report.Remaining = []string{run.stack(), bucketPrefix(r.account, r.region) + string(run)}
		return report, err
	}
	if err != nil {
		r.printf("%v", err)
	}
	removal, stop := r.untilAbandoned(ctx)
	defer stop()
	failed := r.removeIf(removal, run, nil) // only this process knows the random ID
	if failed != nil {
		report.Remaining = []string{run.stack(), bucketPrefix(r.account, r.region) + string(run)}
		err = errors.Join(err, r.remains(run, failed))
	}
	report.Minutes = r.now().Sub(report.StartedAt).Minutes()
	return report, err
}

// errInterrupted reports that the user ended a run.
var errInterrupted = errors.New("interrupted")

// RemainsError reports that resources of a run may remain.
type RemainsError struct {
	Run, Account, Region string
	Cause                error
}

// Error implements error.
func (e *RemainsError) Error() string {
	return fmt.Sprintf("remove run %s: %v; resources remain in account %s, region %s and cost money; "+
		"remove them with perdure selftest --remove %s", e.Run, e.Cause, e.Account, e.Region, e.Run)
}

// Unwrap returns the cause.
func (e *RemainsError) Unwrap() error { return e.Cause }

func (r *runner) remains(run runID, cause error) *RemainsError {
	return &RemainsError{Run: string(run), Account: r.account, Region: r.region, Cause: cause}
}

// Errors of a run that is too slow.
var (
	errTimeLimit    = fmt.Errorf("the deployment and the test took more than %v", testLimit)
	errRemovalLimit = fmt.Errorf("the removal took more than %v", removalLimit)
)

func (r *runner) deployAndTest(ctx context.Context, run runID, o options, report *Report) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, testLimit, errTimeLimit)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	d := &deployment.Deployer{
		Stacks: r.stacks, Code: r.code(bucketPrefix(r.account, r.region) + string(run)), Progress: r.progress,
		Sleep: r.sleep,
	}
	began := r.now()
	result, err := d.Deploy(ctx, &deployment.Request{
		Stack: run.stack(), Hub: run.hub(), Template: r.template, Tags: map[string]string{Tag: string(run)},
		Parameters: o.parameters(), Functions: r.build,
		Confirm: func(context.Context, *deployment.ChangeSet) error { return nil }, // the plan was confirmed
	})
	if err != nil {
		return err
	}
	report.DeploySeconds = r.now().Sub(began).Seconds()
	resources, err := r.stacks.StackResources(ctx, run.stack())
	if err != nil {
		return err
	}
	return r.test(ctx, &deployed{
		run: run, resources: resources, outputs: result.Outputs, short: o.short,
	}, report)
}

// parameters returns the parameters of the stack. Timers over a minute get a schedule, which fires a minute early. The
// sweeper runs twice as often as by default, for the bulk job. The other timeouts are those of users.
func (o *options) parameters() map[string]string {
	p := map[string]string{
		"Architecture": o.architecture, "WorkTimeout": "60", "LogRetention": "1",
		"MaxTimerDelay": "62", "ScheduleLead": "60", "SweepRate": "rate(1 minute)",
	}
	if o.short {
		p["MaxTimerDelay"], p["ScheduleLead"] = "3", "1"
	}
	maps.Copy(p, o.given)
	return p
}

// untilAbandoned returns the context of a removal. It does not end with ctx, but with a further interruption. After the
// first one, the removal continues.
func (r *runner) untilAbandoned(ctx context.Context) (context.Context, context.CancelFunc) {
	interrupted := ctx.Err() != nil
	removal, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), removalLimit, errRemovalLimit)
	removal, abandon := context.WithCancelCause(removal)
	signals, stop := r.signals()
	go func() {
		for {
			select {
			case <-signals:
				if interrupted {
					abandon(errInterrupted)
					return
				}
				interrupted = true
				r.printf("removing everything; interrupt again to stop")
			case <-removal.Done():
				return
			}
		}
	}()
	return removal, func() {
		stop()
		abandon(nil)
		cancel()
	}
}

// remove removes the resources of an earlier run.
func (r *runner) remove(ctx context.Context, run runID) error {
	return r.removeIf(ctx, run, func(s *deployment.Stack) error {
		if owner, ok := runOfStack(s); !ok || owner != run { // it was in review until now, and is the stack of a hub
			return fmt.Errorf("stack %s was not created by the self-test: it lacks the tag %s=%s", s.Name, Tag, run)
		}
		return nil
	})
}

// removeIf removes the resources of a run unless check, which may be nil, returns an error for its stack.
func (r *runner) removeIf(ctx context.Context, run runID, check func(s *deployment.Stack) error) error {
	r.printf("removing run %s", run)
	remover := &deployment.Remover{
		Deployer: &deployment.Deployer{Stacks: r.stacks, Progress: r.progress, Sleep: r.sleep}, Buckets: r.buckets,
		Check: check,
	}
	stack := remover.RemoveStack(ctx, run.stack())
	return errors.Join(stack, remover.RemoveBucket(ctx, bucketPrefix(r.account, r.region)+string(run)))
}

// found returns the runs that have resources, the oldest first.
func (r *runner) found(ctx context.Context) (runs []runID, err error) {
	stacks, err := r.stacks.ListStacks(ctx)
	if err != nil {
		return nil, err
	}
	for i := range stacks {
		if run, ok := runOfStack(&stacks[i]); ok {
			runs = append(runs, run)
		}
	}
	before := bucketPrefix(r.account, r.region)
	buckets, err := r.buckets.ListBuckets(ctx, before)
	if err != nil {
		return nil, err
	}
	for _, name := range buckets {
		if run, err := parseRunID(strings.TrimPrefix(name, before)); err == nil {
			runs = append(runs, run)
		}
	}
	slices.Sort(runs)
	return slices.Compact(runs), nil
}

// isLeftover reports whether a run has exceeded its time limit.
func (r *runner) isLeftover(run runID) bool { return r.now().Sub(run.startedAt()) > runLimit }
