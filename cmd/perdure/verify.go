package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// verifyFlags say what is replayed, and by what.
type verifyFlags struct {
	binary, name string
	most         int
	timeout      time.Duration
	allowUnread  string
	allowed      allowance // what allowUnread says
}

func verifyVerb(c *command) *cobra.Command {
	var f verifyFlags
	cmd := c.verb("verify", "Replay what is under way against code that is not deployed yet", "",
		func(ctx context.Context, cl *client.Client, _ string) error { return verify(ctx, c, cl, &f) })
	cmd.Long = cmd.Short + `.

It starts an orchestrator's binary, which is built for this machine, and has it replay the histories of
instances that are not over. Where its code would not take the decisions that are recorded, deploying it
would block the instance: such are named, with the event and what the code asked for. Nothing is written,
no turn is run, and no activity: the binary gets neither the hub's settings nor your AWS credentials. What
its code takes from the bucket for large payloads is read for it.

Of many instances it replays --most, chosen by their ids, so that a repetition takes the same: as many of
each orchestration and version as there are, up to an equal share. The table says how many are open.

Exit codes: 0 when all that was replayed goes on, 2 when an instance would block, 4 when --timeout was
over first, 1 on any other error, also when an instance could not be replayed, since its history, or what
that refers to, cannot be read: more of them than --allow-unread says, or all. What is blocked today and
would stay so is shown, and is no failure; neither are inputs that differ from those recorded, which stand.`
	cmd.Example = `  go build -o dist/orchestrator ./functions/orchestrator
  perdure verify --binary dist/orchestrator --hub production
  perdure verify --binary dist/orchestrator --name fulfil --most 10000 --json
  perdure verify --binary dist/orchestrator --allow-unread 1%`
	cmd.Flags().StringVar(&f.binary, "binary", "", "the orchestrator's binary, for this machine (required)")
	cmd.Flags().StringVar(&f.name, "name", "", "only instances of this orchestration")
	cmd.Flags().IntVar(&f.most, "most", 1000, "replay at most this many instances")
	cmd.Flags().StringVar(&f.allowUnread, "allow-unread", "0", "go on as if this many instances, or this share of them (such as 1%), that cannot be replayed were not there")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "give up after this time")
	cobra.CheckErr(cmd.MarkFlagFilename("binary"))
	return cmd
}

func verify(ctx context.Context, c *command, cl *client.Client, f *verifyFlags) error {
	switch {
	case f.binary == "":
		return errors.New("--binary is missing: the orchestrator's binary, built for this machine")
	case f.most < 1:
		return fmt.Errorf("--most must be 1 or more, is %d", f.most)
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
	err = v.run(limited, f.name, f.most)
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

// verified is what verify prints with --json.
type verified struct {
	Orchestrations []verifiedCount `json:"orchestrations"`
	// Findings are the instances that do not go on as they are, the 1,000 worst at the most.
	Findings []finding `json:"findings"`
	// Open are the instances that are not over, Chosen those of them that were to be replayed. Replayed are fewer where some were over by then.
	Open     int `json:"open"`
	Chosen   int `json:"chosen"`
	Replayed int `json:"replayed"`

	waits string // for what it was waiting at the end
}

// verifiedCount counts instances of one version.
type verifiedCount struct {
	Orchestration string `json:"orchestration"`
	Version       string `json:"version"` // empty for instances that have none yet
	Open          int    `json:"open"`
	Replayed      int    `json:"replayed"`
	WouldBlock    int    `json:"wouldBlock"`
	StayBlocked   int    `json:"stayBlocked"`
	OtherInputs   int    `json:"otherInputs"`
	Unread        int    `json:"unread"`
}

// outcome is what an instance comes to with the code.
type outcome string

const (
	outcomeGoesOn      outcome = "goesOn"
	outcomeWouldBlock  outcome = "wouldBlock"
	outcomeStaysBlock  outcome = "staysBlocked"
	outcomeOtherInputs outcome = "otherInputs"
	outcomeUnread      outcome = "unread"
)

// finding is an instance that does not go on as it is.
type finding struct {
	InstanceID    string  `json:"instanceId"`
	ExecutionID   string  `json:"executionId"`
	Orchestration string  `json:"orchestration"`
	Version       string  `json:"version"`
	Outcome       outcome `json:"outcome"`
	EventID       int64   `json:"eventId,omitempty"` // where history and code differ
	Problem       string  `json:"problem"`
}

// exit is how the tool ends: a gate of CI must not open by itself.
func (v *verified) exit(f *verifyFlags, overdue bool) error {
	blocked := 0
	for i := range v.Orchestrations {
		blocked += v.Orchestrations[i].WouldBlock
	}
	switch {
	case blocked > 0:
		return &exit{exitFailed, fmt.Sprintf("%d of %d replayed instances would be blocked by this code: do not deploy it, or keep the old code beside it under another version", blocked, v.Replayed)}
	case overdue:
		return &exit{exitTimeout, fmt.Sprintf("%d of %d instances were replayed after %s%s: --timeout gives more time, a lower --most asks for less", v.Replayed, v.Chosen, f.timeout, v.waits)}
	case !f.allowed.allows(v.unread(), v.Replayed):
		return &exit{exitError, v.unreadText()}
	}
	return nil
}
