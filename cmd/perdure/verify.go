package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	binary, name string
	maxInstances int
	timeout      time.Duration
	allowUnread  string
	allowed      allowance // parsed allowUnread
}

func verifyVerb(c *command) *cobra.Command {
	var f verifyFlags
	cmd := c.verb("verify", "Replay instances with a new build", "",
		func(ctx context.Context, cl *client.Client, _ string) error { return verify(ctx, c, cl, &f) })
	cmd.Long = cmd.Short + `.

An orchestrator binary, built for this machine, replays the histories of instances that have not ended. The
command lists the instances that the new build would block, with the event and the difference. Nothing is
written and no activity runs. The binary gets no hub settings and no AWS credentials, and the command reads
large payloads for it. If there are more than --max-instances, each orchestration and version gets an equal
share, and repeated runs replay the same instances. OTHER INPUTS counts instances for which the code passes
other inputs to activities or sub-orchestrations than recorded. They continue, and the recorded calls count.

Exit codes:
  0  all replayed instances would continue; different inputs and instances that stay blocked are only shown
  1  error, or more instances than --allow-unread (or all) cannot be read
  2  an instance would be blocked
  4  --timeout expired`
	cmd.Example = `  go build -o dist/orchestrator-local ./functions/orchestrator
  perdure verify --binary dist/orchestrator-local --hub production
  perdure verify --binary dist/orchestrator-local --name fulfil --max-instances 10000 --json
  perdure verify --binary dist/orchestrator-local --allow-unread 1%`
	cmd.Flags().StringVar(&f.binary, "binary", "", "path of the orchestrator binary for this machine (required)")
	cmd.Flags().StringVar(&f.name, "name", "", "orchestration of the instances")
	cmd.Flags().IntVar(&f.maxInstances, "max-instances", 1000, "maximum number of instances to replay")
	cmd.Flags().StringVar(&f.allowUnread, "allow-unread", "0",
		"number or share (such as 1%) of instances that may be unreadable")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "time limit of the command")
	cobra.CheckErr(cmd.MarkFlagFilename("binary"))
	return cmd
}

func verify(ctx context.Context, c *command, cl *client.Client, f *verifyFlags) error {
	switch {
	case f.binary == "":
		return errors.New("--binary is required: the path of an orchestrator binary for this machine")
	case f.maxInstances < 1:
		return fmt.Errorf("--max-instances must be 1 or more, is %d", f.maxInstances)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout must be more than 0, is %v", f.timeout)
	}
	var err error
	if f.allowed, err = parseAllowance(f.allowUnread); err != nil {
		return fmt.Errorf("--allow-unread %w", err)
	}

	limited, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	v := newVerification(c, cl, f.binary)
	err = v.run(limited, f.name, f.maxInstances)
	overdue := ctx.Err() == nil && errors.Is(limited.Err(), context.DeadlineExceeded)
	if err != nil && !overdue {
		return err
	}

	found := v.result()
	if err := printVerified(c, &found); err != nil {
		return err
	}
	return found.exit(f, overdue)
}

// verified is the --json output of verify.
type verified struct {
	Orchestrations []verifiedCount `json:"orchestrations"`
	// Findings are the instances that would not continue unchanged: at most 1,000, the worst first.
	Findings []finding `json:"findings"`
	// Open is the number of instances that have not ended. Chosen is the size of the sample. Replayed is smaller if
	// instances ended during the run.
	Open     int `json:"open"`
	Chosen   int `json:"chosen"`
	Replayed int `json:"replayed"`

	waits string // the retry that was in progress at the end
}

// verifiedCount counts instances of one version.
type verifiedCount struct {
	Orchestration string `json:"orchestration"`
	Version       string `json:"version"` // empty for instances that have no version yet
	Open          int    `json:"open"`
	Replayed      int    `json:"replayed"`
	WouldBlock    int    `json:"wouldBlock"`
	StayBlocked   int    `json:"stayBlocked"`
	OtherInputs   int    `json:"otherInputs"`
	Unread        int    `json:"unread"`
}

// outcome is the result of replaying an instance.
type outcome string

const (
	outcomeGoesOn      outcome = "goesOn"
	outcomeWouldBlock  outcome = "wouldBlock"
	outcomeStaysBlock  outcome = "staysBlocked"
	outcomeOtherInputs outcome = "otherInputs"
	outcomeUnread      outcome = "unread"
)

// finding is an instance that would not continue unchanged.
type finding struct {
	InstanceID    string  `json:"instanceId"`
	ExecutionID   string  `json:"executionId"`
	Orchestration string  `json:"orchestration"`
	Version       string  `json:"version"`
	Outcome       outcome `json:"outcome"`
	EventID       int64   `json:"eventId,omitempty"` // the first event at which history and code differ
	Problem       string  `json:"problem"`
}

// exit returns the error for the exit code.
func (v *verified) exit(f *verifyFlags, overdue bool) error {
	blocked := 0
	for i := range v.Orchestrations {
		blocked += v.Orchestrations[i].WouldBlock
	}
	switch {
	case blocked > 0:
		return &exit{exitFailed, fmt.Sprintf("%d of %d replayed instances would be blocked by this build; "+
			"do not deploy it, or keep the old code under another version", blocked, v.Replayed)}
	case overdue:
		return &exit{
			exitTimeout,
			fmt.Sprintf("%d of %d instances replayed after %s%s; increase --timeout or reduce --max-instances",
				v.Replayed, v.Chosen, f.timeout, v.waits),
		}
	case !f.allowed.allows(v.unread(), v.Replayed):
		return &exit{exitError, v.unreadText()}
	}
	return nil
}
