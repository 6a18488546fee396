package development

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/cmd/perdure/internal/verification"
)

// replayFlags are the flags of commands that replay histories with a binary.
type replayFlags struct {
	binary  string
	timeout time.Duration
}

func (f *replayFlags) add(cmd *cobra.Command, limited string) {
	cmd.Flags().StringVar(&f.binary, "binary", "", "path of the orchestrator binary for this machine (required)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "time limit of the "+limited)
	cobra.CheckErr(cmd.MarkFlagFilename("binary"))
}

func (f *replayFlags) check() error {
	switch {
	case f.binary == "":
		return errors.New("--binary is required: the path of an orchestrator binary for this machine")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout must be more than 0, is %v", f.timeout)
	default:
		return nil
	}
}

type verifyFlags struct {
	replayFlags

	name, allowUnread string
	maxInstances      int
}

// Verify returns the command verify.
func Verify(env *cli.Env) *cobra.Command {
	var f verifyFlags
	cmd := env.ClientCommand("verify", "Replay instances with a new build", "",
		func(ctx context.Context, cl *client.Client, _ string) error { return verify(ctx, env, cl, &f) })
	cmd.Long = cmd.Short + `.

An orchestrator binary, built for this machine, replays the histories of instances that have not ended. The
command lists the instances that the new build would block, with the event and the difference. Nothing is
written and no activity runs. The binary receives no hub settings and no AWS credentials, and the command
reads large payloads for the binary. If there are more than --max-instances, each orchestration and version
gets an equal share, and repeated runs replay the same instances. OTHER INPUTS counts instances whose code
passes other inputs to activities or sub-orchestrations than recorded. These instances continue with the
recorded inputs.

Exit codes:
  0  all replayed instances would continue; different inputs and instances that stay blocked are only shown
  1  error, or more instances than --allow-unread (or all) cannot be read
  2  an instance would be blocked
  4  --timeout expired`
	cmd.Example = `  go build -o dist/orchestrator-local ./functions/orchestrator
  perdure verify --binary dist/orchestrator-local --hub production
  perdure verify --binary dist/orchestrator-local --name fulfil --max-instances 10000 --json
  perdure verify --binary dist/orchestrator-local --allow-unread 1%`
	f.add(cmd, "command")
	cmd.Flags().StringVar(&f.name, "name", "", "orchestration of the instances")
	cmd.Flags().IntVar(&f.maxInstances, "max-instances", 1000, "maximum number of instances to replay")
	cmd.Flags().StringVar(&f.allowUnread, "allow-unread", "0",
		"number or share (such as 1%) of instances that may be unreadable")
	return cmd
}

func verify(ctx context.Context, env *cli.Env, cl *client.Client, f *verifyFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.maxInstances < 1 {
		return fmt.Errorf("--max-instances must be 1 or more, is %d", f.maxInstances)
	}
	allowed, err := verification.ParseAllowance(f.allowUnread)
	if err != nil {
		return fmt.Errorf("--allow-unread %w", err)
	}

	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	v := verification.New(env, cl, f.binary)
	err = v.Run(limited, f.name, f.maxInstances)
	overdue := ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded)
	if err != nil && !overdue {
		return err
	}

	found := v.Result()
	if err := verification.Print(env, &found); err != nil {
		return err
	}
	return found.ExitError(allowed, f.timeout, overdue)
}
