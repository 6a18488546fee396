package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/perdure/perdure"
)

// Files that the orchestration "holding" creates in its folder. Each contains a process ID.
const (
	Began = "began" // the activity has locked the folder
	Saw   = "saw"   // the activity has observed its cancel
	Freed = "freed" // the undo has completed
)

// held is the name of the locked file. The lock ends with its process, even if the process is killed.
const held = "held"

// holding calls an activity that locks a folder until it is cancelled, and undoes it. The custom status is the outcome
// of the cancel.
func holding(ctx *perdure.OrchestrationContext, folder string) (_ string, err error) {
	h := perdure.CallActivity(ctx, holds, folder, perdure.WaitForCancellation())
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		undone := perdure.CallActivity(ctx, letsGo, folder) // called before this code waits for the end of the activity
		_, why := h.Await(ctx)
		if c, ok := errors.AsType[*perdure.CancelledError](why); ok {
			ctx.SetCustomStatus(c.CancelOutcome)
		}
		_, err := undone.Await(ctx)
		return err
	})
	return h.Await(ctx)
}

// holds locks a folder. If a client cancels it, it never returns and exceeds its grace period. If its context ends for
// another reason, it returns and releases the lock, so that another attempt can start.
func holds(ctx context.Context, folder string) (string, error) {
	f, err := lock(folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written
	if err := note(folder, Began); err != nil {
		return "", err
	}
	<-ctx.Done()
	c, ok := errors.AsType[*perdure.CancelledError](context.Cause(ctx))
	if !ok || c.Reason != perdure.ReasonRequested {
		return "", context.Cause(ctx)
	}
	if err := note(folder, Saw); err != nil {
		return "", err
	}
	select {} // until the process is killed, or the grace period ends
}

// letsGo undoes holds. It fails if holds still has the lock.
func letsGo(_ context.Context, folder string) (string, error) {
	f, err := lock(folder)
	if err != nil {
		return "", perdure.NonRetryable(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	return "", note(folder, Freed)
}

func lock(folder string) (*os.File, error) {
	name := filepath.Join(folder, held)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // the folder of a test
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("somebody holds %s: %w", folder, err), f.Close())
	}
	return f, nil
}

// note atomically writes the ID of this process into a file.
func note(folder, name string) error {
	unfinished := filepath.Join(folder, name+".unfinished")
	if err := os.WriteFile(unfinished, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(folder, name))
}
