package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/deployment"
	"github.com/perdure/perdure/cmd/perdure/internal/term"
)

// Exit codes, in addition to 0 and 1.
const (
	codeFailed  = 2
	codeRemains = 3
)

// flags are the flags of selftest.
type flags struct {
	options

	yes        bool
	remove     string
	binaries   string
	parameters []string
}

// Command returns the command selftest.
func Command(env *cli.Env) *cobra.Command {
	return command(env, func(ctx context.Context) (*runner, error) { return connect(ctx, env) })
}

func command(env *cli.Env, open func(ctx context.Context) (*runner, error)) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use: "selftest", Short: "Test perdure in your AWS account",
		Long: `Test perdure in the account and the region of the AWS credentials.

The command deploys a disposable hub, runs scenarios on it, measures latencies and costs, checks assumptions
about AWS, prints a report, and removes everything. First it prints what it creates and limits of cost and
time, and asks for confirmation. It needs Go, and permissions to create and delete all these resources.

An interruption ends the test and removes everything; a second one also ends the removal. After a crash, the
next run removes what is left. Runs of the last 25 minutes are not changed, because they may be in progress.

Exit codes:
  0  all scenarios and checks passed
  1  the test did not run to its end; everything was removed
  2  a scenario or a check failed; everything was removed
  3  resources remain; the message states how to remove them`,
		Example: `  AWS_PROFILE=sandbox AWS_REGION=eu-west-1 perdure selftest
  perdure selftest --yes --json > report.json`,
		Args: func(cmd *cobra.Command, args []string) error { return cli.CheckArgs(cmd, args, "") },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), env, open)
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	flags := cmd.Flags()
	flags.StringVar(&f.architecture, "architecture", "arm64", "CPU architecture of the functions: arm64 or x86_64")
	flags.StringVar(&f.binaries, "binaries", "", "directory with orchestrator/bootstrap, … to deploy without a build")
	flags.BoolVar(&f.short, "short", false, "one scenario for each concept, and short timers")
	flags.BoolVar(&f.keep, "keep", false, "keep the stack and the bucket until a later run, for diagnosis")
	flags.StringArrayVar(&f.parameters, "parameter", nil, "template parameter as NAME=VALUE; repeatable")
	flags.StringVar(&f.remove, "remove", "", "ID of a run to remove, instead of a test")
	flags.BoolVar(&f.yes, "yes", false, "do not ask for confirmation")
	for _, other := range []string{"keep", "short", "binaries", "architecture", "parameter"} {
		cmd.MarkFlagsMutuallyExclusive(other, "remove")
	}
	return cmd
}

func (f *flags) run(ctx context.Context, env *cli.Env, open func(ctx context.Context) (*runner, error)) error {
	if f.architecture != "arm64" && f.architecture != "x86_64" {
		return fmt.Errorf("--architecture: must be arm64 or x86_64, is %q", f.architecture)
	}
	var err error
	if f.given, err = deployment.ParsePairs("--parameter", f.parameters); err != nil {
		return err
	}
	var removed runID
	if f.remove != "" {
		if removed, err = parseRunID(f.remove); err != nil {
			return fmt.Errorf("--remove: %w", err)
		}
	}
	ctx, stop := untilHangup(ctx)
	defer stop()
	r, err := open(ctx)
	if err != nil {
		return err
	}
	if f.binaries != "" {
		r.build = func(context.Context, string) ([]deployment.Function, error) {
			return deployment.ReadBinaries(f.binaries)
		}
	}
	if f.remove != "" {
		return f.removeOne(ctx, r, removed)
	}
	return f.test(ctx, env, r)
}

// untilHangup returns a context that ends when the terminal closes. By default, that signal would end the process
// before the removal, and so would the progress if its reader has ended, such as tee after Ctrl-C.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	if signal.Ignored(syscall.SIGHUP) { // by nohup
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// removeOne removes the run that the user chose. The run may be in another account or region, and the name of a hub's
// stack may have the form of a run's.
func (f *flags) removeOne(ctx context.Context, r *runner, run runID) error {
	found, err := r.found(ctx)
	if err != nil {
		return cli.Exitf(codeRemains, "%s", r.remains(run, err).Error())
	}
	if !slices.Contains(found, run) {
		return fmt.Errorf("--remove: no resources of run %s in account %s, region %s; check AWS_PROFILE and AWS_REGION",
			run, r.account, r.region)
	}
	return f.removeAll(ctx, r, []runID{run})
}

// removeAll removes runs.
func (f *flags) removeAll(ctx context.Context, r *runner, runs []runID) error {
	for _, run := range runs {
		limited, cancel := context.WithTimeoutCause(ctx, removalLimit, errRemovalLimit)
		err := r.remove(limited, run)
		cancel()
		if err != nil {
			return cli.Exitf(codeRemains, "%s", r.remains(run, err).Error())
		}
	}
	return nil
}

// test shows the plan, removes leftovers and runs the test.
func (f *flags) test(ctx context.Context, env *cli.Env, r *runner) error {
	run := newRunID(env.Now())
	p, err := r.plan(ctx, run)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%s", p.text(r))
	if !f.yes {
		if err := cli.Ask(ctx, env.Stdin, env.Stderr, "continue?", "nothing was created"); err != nil {
			return err
		}
	}
	if err := f.removeAll(ctx, r, p.leftovers); err != nil {
		return err
	}
	// Others remove a run by the age of its ID, which the prompt or the leftovers may have made too old.
	if env.Now().Sub(run.startedAt()) > freshness {
		run = newRunID(env.Now())
		fmt.Fprintf(env.Stderr, "the self-test continues as run %s\n", run)
	}
	report, err := r.run(ctx, run, f.options)
	if err != nil {
		report.Error = env.ErrorText(err)
	}
	if printed := env.PrintResult(report, report.text()); printed != nil {
		return errors.Join(verdict(report, err), printed)
	}
	return verdict(report, err)
}

// verdict returns the exit code of a run.
func verdict(report *Report, err error) error {
	remains, ok := errors.AsType[*RemainsError](err)
	switch {
	case ok:
		return cli.Exitf(codeRemains, "%s", remains.Error())
	case len(report.Remaining) > 0:
		return cli.Exitf(codeRemains, "kept run %s, which costs money; remove it with perdure selftest --remove %s",
			report.Run, report.Run)
	case errors.Is(err, errInterrupted):
		return cli.Exitf(cli.CodeError, "interrupted; everything was removed")
	case err != nil:
		return err
	case report.failed():
		return &cli.ExitError{Code: codeFailed}
	default:
		return nil
	}
}

// connect connects to the account of the default AWS credentials.
func connect(ctx context.Context, env *cli.Env) (*runner, error) {
	account, err := deployment.Connect(ctx, env)
	if err != nil {
		return nil, err
	}
	template, err := deployment.Disposable(probeAdditions())
	if err != nil {
		return nil, err
	}
	b := &builder{environ: os.Environ(), output: env.Stderr}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.version = releaseOf(info)
	}
	return &runner{
		account: account.ID, region: account.Region, stacks: account.Stacks, buckets: account.Buckets,
		template: template, code: account.Code, build: b.build, progress: term.LineWriter{Writer: env.Stderr},
		now: env.Now, sleep: env.Sleep,
		signals: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 1)
			signal.Notify(c, os.Interrupt, syscall.SIGTERM)
			return c, func() { signal.Stop(c) }
		},
		test: func(ctx context.Context, d *deployed, report *Report) error {
			h, err := openHub(ctx, env, d)
			if err != nil {
				return err
			}
			return h.test(ctx, d, report)
		},
	}, nil
}
