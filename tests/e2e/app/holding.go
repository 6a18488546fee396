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

// What holding writes into its folder.
const (
	Began = "began" // the process that holds, once it does
	Saw   = "saw"   // the same, once it has seen that it is cancelled
	Freed = "freed" // once it is undone
)

// held is the file that is locked while something holds: the lock ends with the process, however that ends.
const held = "held"

// holding has an activity hold a folder until it is cancelled, and undoes that. Its custom status is how the activity
// ended.
func holding(ctx *perdure.OrchestrationContext, folder string) (_ string, err error) {
	h := perdure.CallActivity(ctx, holds, folder, perdure.WaitForCancellation())
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		undone := perdure.CallActivity(ctx, letsGo, folder) // before anything waits here for the end of what it undoes
		_, why := h.Await(ctx)
		if c, ok := errors.AsType[*perdure.CancelledError](why); ok {
			ctx.SetCustomStatus(c.CancelOutcome)
		}
		_, err := undone.Await(ctx)
		return err
	})
	return h.Await(ctx)
}

// holds keeps a folder locked until it is cancelled, and then for the whole of its grace, and longer. One that cannot
// go on in its process lets go: it is begun again.
func holds(ctx context.Context, folder string) (string, error) {
	f, err := lock(folder)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was written to by nobody
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
	select {} // until it is killed, or given up
}

// letsGo undoes what held the folder. Should that still be at it, it fails.
func letsGo(_ context.Context, folder string) (string, error) {
	f, err := lock(folder)
	if err != nil {
		return "", perdure.NonRetryable(err)
	}
	defer func() { _ = f.Close() }() // it was written to by nobody
	return "", note(folder, Freed)
}

func lock(folder string) (*os.File, error) {
	name := filepath.Join(folder, held)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a test's own folder
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("somebody holds %s: %w", folder, err), f.Close())
	}
	return f, nil
}

// note writes the number of this process into a file, whole or not at all.
func note(folder, name string) error {
	unfinished := filepath.Join(folder, name+".unfinished")
	if err := os.WriteFile(unfinished, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, filepath.Join(folder, name))
}
