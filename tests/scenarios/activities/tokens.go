package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/tests/scenarios/internal/kit"
)

// holderOf returns the holder of the world. The default is its client.
func holderOf(w kit.World) kit.Holder {
	if w.Holder != nil {
		return w.Holder
	}
	return w.Client
}

// TokenFolder is a folder in which an activity stores the token of each attempt, and the unit of durations.
type TokenFolder struct {
	Folder string
	Tick   time.Duration
}

// tokenScenarios have activities that a token holder completes.
func tokenScenarios(tick time.Duration) []kit.Scenario {
	scenario := func(
		name string, register func(*perdure.Registry, string),
		drive func(context.Context, kit.World, string, TokenFolder) error, check kit.Check,
	) kit.Scenario {
		tokens := TokenFolder{filepath.Join(os.TempDir(), "perdure-tokens-"+rand.Text()), tick}
		return kit.Scenario{
			Name: name, Register: register, Input: tokens, Check: kit.All(check, removeFolder(tokens.Folder)),
			Drive: func(ctx context.Context, w kit.World, id string) error { return drive(ctx, w, id, tokens) },
		}
	}
	return []kit.Scenario{
		scenario("CompletedByHolder", kit.Run(callPending), completeByToken, kit.Returns("granted by ann")),
		scenario("FailedByHolder", kit.Run(retryPending), failByToken, kit.Returns("RefusedError: attempt 2 of 3")),
		scenario("HolderObservesCancel", kit.Run(cancelPending), heartbeatByToken,
			kit.All(kit.Returns("requested: enough, returned"), kit.CancelledBecause(storeTokenName, "requested"))),
	}
}

// removeFolder removes a folder.
func removeFolder(folder string) kit.Check {
	return func(context.Context, *client.Client, client.Status) error { return os.RemoveAll(folder) }
}

// storeTokenName is the name of the activity storeToken.
const storeTokenName = "HandOver"

// storeToken stores the token of its attempt in the folder, atomically, and returns ErrPending.
func storeToken(ctx context.Context, tokens TokenFolder) (string, error) {
	info := perdure.ActivityInfoFrom(ctx)
	if err := os.MkdirAll(tokens.Folder, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(tokens.Folder, "new-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(info.CompletionToken)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err := os.Rename(f.Name(), filepath.Join(tokens.Folder, strconv.Itoa(info.Attempt))); err != nil {
		return "", err
	}
	return "", perdure.ErrPending
}

// readToken waits until an attempt has stored its token.
func readToken(w kit.World, tokens TokenFolder, attempt int) (string, error) {
	var token []byte
	var err error
	if !w.Poll(func() bool {
		token, err = os.ReadFile(filepath.Join(tokens.Folder, strconv.Itoa(attempt)))
		return err == nil
	}) {
		return "", fmt.Errorf("attempt %d stored no token: %w", attempt, err)
	}
	return string(token), nil
}

func callPending(ctx *perdure.OrchestrationContext, tokens TokenFolder) (string, error) {
	return perdure.CallActivity(ctx, storeToken, tokens).Await(ctx)
}

// completeByToken completes the activity. A second completion has no effect.
func completeByToken(ctx context.Context, w kit.World, id string, tokens TokenFolder) error {
	token, err := readToken(w, tokens, 1)
	if err != nil {
		return err
	}
	if err := holderOf(w).CompleteActivity(ctx, token, "granted by ann"); err != nil {
		return err
	}
	if err := w.UntilEnded(ctx, id); err != nil {
		return err
	}
	return wantTokenError(holderOf(w).CompleteActivity(ctx, token, "granted by bob"), client.TokenExecutionEnded)
}

// retryPending returns the failure of the last attempt of an activity.
func retryPending(ctx *perdure.OrchestrationContext, tokens TokenFolder) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: tokens.Tick})
	_, err := perdure.CallActivity(ctx, storeToken, tokens, retried).Await(ctx)
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		return failed.Type + ": " + failed.Message, nil
	}
	return "", err
}

// failByToken fails the first attempt, which is retried, and the second one permanently. The token of the first attempt
// is then invalid.
func failByToken(ctx context.Context, w kit.World, _ string, tokens TokenFolder) error {
	first, err := readToken(w, tokens, 1)
	if err != nil {
		return err
	}
	if err := holderOf(w).FailActivity(ctx, first, &httpapi.ExternalError{Message: "attempt 1 of 3"}); err != nil {
		return err
	}
	second, err := readToken(w, tokens, 2)
	if err != nil {
		return err
	}
	if err := wantTokenError(holderOf(w).CompleteActivity(ctx, first, "too late"), client.TokenSuperseded); err != nil {
		return err
	}
	return holderOf(w).FailActivity(ctx, second, &httpapi.ExternalError{
		Type: "RefusedError", Message: "attempt 2 of 3", Permanent: true,
	})
}

// heartbeatTimeout is the heartbeat timeout in ticks, and heartbeats the number of heartbeats, one per tick.
const heartbeatTimeout, heartbeats = 20, 30

// cancelPending cancels an activity at an event, and returns the outcome.
func cancelPending(ctx *perdure.OrchestrationContext, tokens TokenFolder) (string, error) {
	work := perdure.CallActivity(ctx, storeToken, tokens, perdure.WithHeartbeatTimeout(heartbeatTimeout*tokens.Tick),
		perdure.WaitForCancellation())
	if _, err := perdure.WaitForExternalEvent[struct{}](ctx, "enough").Await(ctx); err != nil {
		return "", err
	}
	work.Cancel("enough")
	_, err := work.Await(ctx)
	c, ok := errors.AsType[*perdure.CancelledError](err)
	if !ok {
		return "", err
	}
	return fmt.Sprintf("%s: %s, %s", c.Reason, c.Message, c.CancelOutcome), nil
}

// heartbeatByToken sends heartbeats for longer than the heartbeat timeout, until a response reports the cancellation.
// It then completes the activity.
func heartbeatByToken(ctx context.Context, w kit.World, id string, tokens TokenFolder) error {
	token, err := readToken(w, tokens, 1)
	if err != nil {
		return err
	}
	for n := range heartbeats {
		if cancel, err := holderOf(w).HeartbeatActivity(ctx, token, n); err != nil || cancel.Requested {
			return errors.Join(fmt.Errorf("heartbeat %d: cancelled: %t", n, cancel.Requested), err)
		}
		w.Pass(w.Tick)
	}
	if err := w.Client.RaiseEvent(ctx, id, "enough", struct{}{}, client.WithEventID("enough")); err != nil {
		return err
	}
	for n := range kit.MaxPolls {
		cancel, err := holderOf(w).HeartbeatActivity(ctx, token, heartbeats+n)
		if err != nil {
			return err
		}
		if cancel.Requested {
			return errors.Join(wantCancelReason(cancel, "requested"), holderOf(w).CompleteActivity(ctx, token,
				"stopped"))
		}
		w.Pass(min(w.Tick/4, time.Second)) // the grace period is ten seconds for any tick
	}
	return errors.New("no heartbeat reports the cancellation")
}

func wantCancelReason(cancel provider.CancelInfo, want string) error {
	if cancel.Reason != want || cancel.Message != "enough" {
		return fmt.Errorf("heartbeat returns %+v", cancel)
	}
	return nil
}

// wantTokenError checks the reason for which a token is rejected.
func wantTokenError(err error, want client.TokenErrorReason) error {
	if e, ok := errors.AsType[*client.TokenError](err); !ok || e.Reason != want {
		return errors.Join(fmt.Errorf("token is accepted, want %s", want), err)
	}
	return nil
}
