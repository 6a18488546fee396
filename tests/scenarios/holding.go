package scenarios

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
)

// Holder is whoever holds tokens of activities: a *client.Client is one.
type Holder interface {
	CompleteActivity(ctx context.Context, token string, result any) error
	FailActivity(ctx context.Context, token string, err error) error
	HeartbeatActivity(ctx context.Context, token string, details any) (provider.CancelInfo, error)
}

// holder is that of the world: its client, where it has none of its own.
func (w World) holder() Holder {
	if w.Holder != nil {
		return w.Holder
	}
	return w.Client
}

// Handing is a folder in which an activity leaves the token of each attempt, for whoever completes it, and the unit of
// its times.
type Handing struct {
	Folder string
	Tick   time.Duration
}

// handing are activities that are completed from outside.
func handing(tick time.Duration) []Scenario {
	scenario := func(
		name string, register func(*perdure.Registry, string),
		drive func(context.Context, World, string, Handing) error, check Check,
	) Scenario {
		hand := Handing{filepath.Join(os.TempDir(), "perdure-tokens-"+rand.Text()), tick}
		return Scenario{
			Name: name, Register: register, Input: hand, Check: all(check, removed(hand.Folder)),
			Drive: func(ctx context.Context, w World, id string) error { return drive(ctx, w, id, hand) },
		}
	}
	return []Scenario{
		scenario("CompletedByItsHolder", body(waitsForHolder), completesByToken, gives("granted by ann")),
		scenario("FailedByItsHolder", body(waitsForHolderAgain), failsByToken, gives("RefusedError: attempt 2 of 3")),
		scenario("HolderHearsItsCancel", body(cancelsHolder), beatsByToken,
			all(gives("requested: enough, returned"), decided(handOverName, "requested"))),
	}
}

// removed removes a folder.
func removed(folder string) Check {
	return func(context.Context, *client.Client, client.Status) error { return os.RemoveAll(folder) }
}

// handOverName is what handOver is called.
const handOverName = "HandOver"

// addHanding adds what these scenarios call.
func addHanding(r *perdure.Registry) {
	perdure.AddActivity(r, handOverName, handOver)
}

// handOver leaves the token of its attempt in the folder, whole or not at all, and is pending then.
func handOver(ctx context.Context, hand Handing) (string, error) {
	info := perdure.ActivityInfoFrom(ctx)
	if err := os.MkdirAll(hand.Folder, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(hand.Folder, "new-")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(info.CompletionToken)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err := os.Rename(f.Name(), filepath.Join(hand.Folder, strconv.Itoa(info.Attempt))); err != nil {
		return "", err
	}
	return "", perdure.ErrPending
}

// token waits until an attempt has left its token.
func (w World) token(hand Handing, attempt int) (string, error) {
	for range looks {
		token, err := os.ReadFile(filepath.Join(hand.Folder, strconv.Itoa(attempt)))
		if err == nil {
			return string(token), nil
		}
		w.Pass(w.Tick / 4)
	}
	return "", fmt.Errorf("attempt %d has left no token", attempt)
}

func waitsForHolder(ctx *perdure.OrchestrationContext, hand Handing) (string, error) {
	return perdure.CallActivity(ctx, handOver, hand).Await(ctx)
}

// completesByToken completes the activity, and a second time, which does nothing.
func completesByToken(ctx context.Context, w World, id string, hand Handing) error {
	token, err := w.token(hand, 1)
	if err != nil {
		return err
	}
	if err := w.holder().CompleteActivity(ctx, token, "granted by ann"); err != nil {
		return err
	}
	if err := w.until(ctx, id, func(s client.Status) bool { return s.Status.Terminal() }); err != nil {
		return err
	}
	return wantProblem(w.holder().CompleteActivity(ctx, token, "granted by bob"), client.TokenExecutionEnded)
}

// waitsForHolderAgain tells how the last attempt of an activity failed.
func waitsForHolderAgain(ctx *perdure.OrchestrationContext, hand Handing) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 3, InitialInterval: hand.Tick})
	_, err := perdure.CallActivity(ctx, handOver, hand, retried).Await(ctx)
	if failed, ok := errors.AsType[*perdure.ActivityError](err); ok {
		return failed.Type + ": " + failed.Message, nil
	}
	return "", err
}

// failsByToken fails the first attempt, which the policy tries again, and the second for good. The token of the first
// is worth nothing then.
func failsByToken(ctx context.Context, w World, _ string, hand Handing) error {
	first, err := w.token(hand, 1)
	if err != nil {
		return err
	}
	if err := w.holder().FailActivity(ctx, first, &httpapi.ExternalError{Message: "attempt 1 of 3"}); err != nil {
		return err
	}
	second, err := w.token(hand, 2)
	if err != nil {
		return err
	}
	if err := wantProblem(w.holder().CompleteActivity(ctx, first, "too late"), client.TokenSuperseded); err != nil {
		return err
	}
	return w.holder().FailActivity(ctx, second, &httpapi.ExternalError{
		Type: "RefusedError", Message: "attempt 2 of 3", Permanent: true,
	})
}

// patienceForHolder is how many ticks a holder may be silent; it takes beats of them.
const patienceForHolder, beats = 20, 30

// cancelsHolder cancels an activity when it is told, and tells how that ended.
func cancelsHolder(ctx *perdure.OrchestrationContext, hand Handing) (string, error) {
	work := perdure.CallActivity(ctx, handOver, hand, perdure.WithHeartbeatTimeout(patienceForHolder*hand.Tick),
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

// beatsByToken sends heartbeats for longer than it may be silent, until it hears that it is cancelled, and says that it
// has come to an end.
func beatsByToken(ctx context.Context, w World, id string, hand Handing) error {
	token, err := w.token(hand, 1)
	if err != nil {
		return err
	}
	for n := range beats {
		if cancel, err := w.holder().HeartbeatActivity(ctx, token, n); err != nil || cancel.Requested {
			return errors.Join(fmt.Errorf("heartbeat %d: it is cancelled: %t", n, cancel.Requested), err)
		}
		w.Pass(w.Tick)
	}
	if err := w.Client.RaiseEvent(ctx, id, "enough", struct{}{}, client.WithEventID("enough")); err != nil {
		return err
	}
	for n := range looks {
		cancel, err := w.holder().HeartbeatActivity(ctx, token, beats+n)
		if err != nil {
			return err
		}
		if cancel.Requested {
			return errors.Join(wantReason(cancel, "requested"), w.holder().CompleteActivity(ctx, token, "stopped"))
		}
		w.Pass(min(w.Tick/4, time.Second)) // it has ten seconds from the cancel on, whatever a tick is
	}
	return errors.New("no heartbeat is answered with the cancel")
}

func wantReason(cancel provider.CancelInfo, want string) error {
	if cancel.Reason != want || cancel.Message != "enough" {
		return fmt.Errorf("a heartbeat is answered with %+v", cancel)
	}
	return nil
}

// wantProblem checks why a token does nothing.
func wantProblem(err error, want client.TokenErrorReason) error {
	if e, ok := errors.AsType[*client.TokenError](err); !ok || e.Reason != want {
		return errors.Join(fmt.Errorf("a token does something, want %s", want), err)
	}
	return nil
}
