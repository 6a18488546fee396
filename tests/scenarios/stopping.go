package scenarios

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
)

// stopping is what the seeds want of cancellation, row by row: each decision is history, and is seen where the work is done.
func stopping(tick time.Duration) []Scenario {
	mark := filepath.Join(os.TempDir(), "perdure-told-"+rand.Text())
	return []Scenario{
		{
			Name: "SelectTimeoutCancelsLosingActivity", Register: body(outwaited), Input: tick,
			Check: all(gives("gave up"), decided(watchName, "select_loser")), Calm: heard("select_loser"),
		},
		{
			Name: "SelectTwoActivitiesLoserSeesReason", Register: body(outrun), Input: tick,
			Check: all(gives("rested"), decided(watchName, "select_loser")), Calm: heard("select_loser"),
		},
		{
			Name: "RetryStartToCloseTimeoutCancelsTheAttempt", Register: body(slowFirst, slowAtFirst), Input: Slow{tick, mark},
			Check: all(gives("attempt 2, after the first was told"), swept(mark)),
		},
		{
			Name: "CancelInstanceCancelsOutstandingActivities", Register: body(watchesThree), Input: tick, Drive: cancelsWhen("waiting"),
			Check: all(cancelled, decided(watchName, "requested"), decided(watchName, "requested"), decided(watchName, "requested")), Calm: heard("requested"),
		},
		{
			Name: "OrchestrationFailureCancelsOutstanding", Register: body(failsBeside), Input: tick,
			Check: all(fails("error", "enough"), decided(watchName, "orchestration_terminal_failed")), Calm: ended(watchName),
		},
		{
			Name: "ContinueAsNewCancelsPreviousExecution", Register: body(leavesWatch), Input: Saying{first, tick},
			Check: all(gives(second), executions(2), decidedBefore(watchName, "orchestration_terminal_continued_as_new")), Calm: endedBefore(watchName),
		},
		{
			Name: "CancelledActivityResumesOrchestration", Register: body(forgiving), Input: tick, Drive: cancelsActivity,
			Check: all(gives("went on: requested: "+because), decided(watchName, "requested")), Calm: heard("requested"),
		},
		{
			Name: "CancelTimerNeverFires", Register: body(cancelsTimer), Input: tick,
			Check: all(gives("timer: requested, then all was quiet"), neverFires),
		},
		{
			Name: "CancelChild", Register: body(cancelsChild), Input: tick, Drive: seesCancelling,
			Check: all(gives("dropped_future"), decided("UnwindsSlowly", "dropped_future"), answered(history.SubOrchestrationFailed, history.TypeCancelled), cancelledBeside("/c", "dropped_future"), askedByParent("/c")),
		},
		{
			Name: "ChildReachesCancelled", Register: body(cancelsChild), Input: tick,
			Check: all(gives("dropped_future"), cancelledBeside("/c", "dropped_future")),
		},
		{
			Name: "CancelChildNotFound", Register: body(cancelsStranger), Input: tick, Drive: withStranger,
			Check: all(gives("requested"), neverBegan, strangerLives),
		},
	}
}

// addStopping adds what these scenarios call.
func addStopping(r *perdure.Registry) {
	perdure.AddActivity(r, watchName, watch)
	perdure.AddOrchestration(r, "UnwindsSlowly", unwindsSlowly)
}

// watchName is what watch is called.
const watchName = "Watch"

// watch is over when it is told why.
func watch(ctx context.Context, _ struct{}) (string, error) {
	<-ctx.Done()
	cause := context.Cause(ctx)
	if c, ok := errors.AsType[*perdure.CancelledError](cause); ok && c.Reason != perdure.ReasonDeadline && c.Reason != perdure.ReasonLockLost && c.Reason != perdure.ReasonShutdown {
		return string(c.Reason), nil
	}
	return "", cause
}

// linger is how long an orchestration stays for what cancelled activities have to say: several times the poll interval.
const linger = 16

func outwaited(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if first, err := perdure.Select(ctx, perdure.CallActivity(ctx, watch, struct{}{}), perdure.CreateTimer(ctx, 2*tick)); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the activity has ended"))
	}
	return "gave up", perdure.Sleep(ctx, linger*tick)
}

func outrun(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	rest := perdure.CallActivity(ctx, nap, 2*tick)
	if first, err := perdure.Select(ctx, perdure.CallActivity(ctx, watch, struct{}{}), rest); err != nil || first == 0 {
		return "", errors.Join(err, errors.New("the activity has ended"))
	}
	if err := perdure.Sleep(ctx, linger*tick); err != nil {
		return "", err
	}
	return rest.Await(ctx)
}

// Slow is how long the attempts of an activity may take, in ticks, and the file that the first makes when it is told that it took too long:
// the second may be in another process.
type Slow struct {
	Tick time.Duration
	Mark string
}

// slowFirst gives each attempt of an activity a while. The first takes longer, and must be told so.
func slowFirst(ctx *perdure.OrchestrationContext, s Slow) (string, error) {
	retried := perdure.WithRetry(perdure.RetryPolicy{MaxAttempts: 2, InitialInterval: s.Tick, NonRetryable: []string{"DeafError"}})
	return perdure.CallActivityByName[string](ctx, "SlowAtFirst", s, perdure.WithStartToClose(4*s.Tick), retried).Await(ctx)
}

// DeafError is that of an attempt which was not told that its time is over.
type DeafError struct{ Cause string }

func (e *DeafError) Error() string { return "told " + e.Cause }

func slowAtFirst(r *perdure.Registry) {
	perdure.AddActivity(r, "SlowAtFirst", func(ctx context.Context, s Slow) (string, error) {
		if n := perdure.ActivityInfoFrom(ctx).Attempt; n > 1 {
			_, err := os.Stat(s.Mark)
			return fmt.Sprintf("attempt %d, after the first was told", n), err
		}
		<-ctx.Done()
		if late, ok := errors.AsType[*perdure.TimeoutError](context.Cause(ctx)); ok {
			return "", errors.Join(late, os.WriteFile(s.Mark, nil, 0o600))
		}
		return "", &DeafError{context.Cause(ctx).Error()}
	})
}

// swept removes a file.
func swept(file string) Check {
	return func(context.Context, *client.Client, client.Status) error { return os.Remove(file) }
}

func watchesThree(ctx *perdure.OrchestrationContext, tick time.Duration) (struct{}, error) {
	ctx.SetCustomStatus("waiting")
	var all []perdure.Awaitable
	for range 3 {
		all = append(all, perdure.CallActivity(ctx, watch, struct{}{}))
	}
	err := perdure.WhenAll(ctx, all...)
	safe := perdure.WithoutCancel(ctx)
	return struct{}{}, errors.Join(err, perdure.Sleep(safe, linger*tick))
}

func failsBeside(ctx *perdure.OrchestrationContext, tick time.Duration) (struct{}, error) {
	perdure.CallActivity(ctx, watch, struct{}{})
	return struct{}{}, errors.Join(perdure.Sleep(ctx, 2*tick), errors.New("enough"))
}

func leavesWatch(ctx *perdure.OrchestrationContext, s Saying) (string, error) {
	if s.Text == second {
		return second, perdure.Sleep(ctx, linger*s.After)
	}
	perdure.CallActivity(ctx, watch, struct{}{})
	if err := perdure.Sleep(ctx, 2*s.After); err != nil {
		return "", err
	}
	return perdure.ContinueAsNew[string](ctx, Saying{second, s.After})
}

// forgiving goes on when its activity is cancelled, and says why it was.
func forgiving(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	ctx.SetCustomStatus("waiting")
	_, err := perdure.CallActivity(ctx, watch, struct{}{}).Await(ctx)
	c, ok := errors.AsType[*perdure.CancelledError](err)
	if !ok {
		return "", err
	}
	return fmt.Sprintf("went on: %s: %s", c.Reason, c.Message), perdure.Sleep(ctx, linger*tick)
}

// cancelsActivity cancels the one that the instance waits for, twice.
func cancelsActivity(ctx context.Context, w World, id string) error {
	if err := w.untilStatus(ctx, id, "waiting"); err != nil {
		return err
	}
	for e, err := range w.Client.History(ctx, id) {
		if err != nil {
			return err
		}
		if e.Kind != history.ActivityScheduled {
			continue
		}
		for range 2 {
			err = w.Client.CancelActivity(ctx, id, e.ID, because)
			if err != nil && !errors.Is(err, client.ErrNotCancellable) { // the first may have been heard already
				return err
			}
		}
		return nil
	}
	return errors.New("the instance has no activity")
}

func cancelsTimer(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	timer := perdure.CreateTimer(ctx, 4*tick)
	if err := perdure.Sleep(ctx, tick); err != nil {
		return "", err
	}
	timer.Cancel("not needed")
	_, err := timer.Await(ctx)
	return fmt.Sprintf("timer: %s, then all was quiet", reasonOf(err)), perdure.Sleep(ctx, 8*tick)
}

// unwindsSlowly is Cancelling for a while.
func unwindsSlowly(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if word, err := waits(ctx, struct{}{}); err == nil {
		return word, nil
	}
	safe := perdure.WithoutCancel(ctx)
	return "", errors.Join(ctx.Err(), perdure.Sleep(safe, 24*tick))
}

// cancelsChild leaves the scope of a child that waits, and stays until that has unwound.
func cancelsChild(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	scope, leave := perdure.WithCancel(ctx)
	below := perdure.CallSubOrchestrationByName[string](scope, "UnwindsSlowly", tick, perdure.WithInstanceID(ctx.InstanceID()+"/c"))
	if err := perdure.Sleep(ctx, 8*tick); err != nil {
		return "", err
	}
	leave()
	_, err := below.Await(ctx)
	return string(reasonOf(err)), perdure.Sleep(ctx, 60*tick)
}

// seesCancelling waits until the child is.
func seesCancelling(ctx context.Context, w World, id string) error {
	return w.until(ctx, id+"/c", func(s client.Status) bool { return s.Status == client.StatusCancelling })
}

// askedByParent: both histories tell who wanted the child to end: the parent's code, and to the child the parent.
func askedByParent(suffix string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for id, want := range map[string]history.Event{
			s.InstanceID:          {Kind: history.SubOrchestrationCancelRequested, RequestedBy: history.RequestedByBody},
			s.InstanceID + suffix: {Kind: history.CancelRequested, RequestedBy: "parent:" + s.InstanceID},
		} {
			var by []string
			for e, err := range c.History(ctx, id) {
				if err != nil {
					return err
				}
				if e.Kind == want.Kind {
					by = append(by, e.RequestedBy)
				}
			}
			if len(by) != 1 || by[0] != want.RequestedBy {
				return fmt.Errorf("%s has %s requested by %q, want it by %q", id, want.Kind, by, want.RequestedBy)
			}
		}
		return nil
	}
}

// cancelsStranger asks for a child of an id that is somebody else's, and cancels it at once. The cancel does not find its child:
// whoever has the id is of another start.
func cancelsStranger(ctx *perdure.OrchestrationContext, tick time.Duration) (string, error) {
	if _, err := waits(ctx, struct{}{}); err != nil {
		return "", err
	}
	below := perdure.CallSubOrchestrationByName[string](ctx, "Waits", struct{}{}, perdure.WithInstanceID(ctx.InstanceID()+"/other"))
	below.Cancel("never mind")
	_, err := below.Await(ctx)
	return string(reasonOf(err)), perdure.Sleep(ctx, 60*tick)
}

// withStranger starts the other instance before the first asks for it.
func withStranger(ctx context.Context, w World, id string) error {
	if _, err := w.Client.Start(ctx, "Waits", nil, client.WithInstanceID(id+"/other"), client.WithIdempotencyKey("other")); err != nil {
		return err
	}
	if err := w.Client.Raise(ctx, id, "go", "on"); err != nil {
		return err
	}
	if _, err := w.Client.Wait(ctx, id); err != nil {
		return err
	}
	return w.Client.Raise(ctx, id+"/other", "go", "still here")
}

func strangerLives(ctx context.Context, c *client.Client, s client.Status) error {
	other, err := c.Wait(ctx, s.InstanceID+"/other")
	if err != nil {
		return err
	}
	return gives("still here")(ctx, c, other)
}

// decided: all that was cancelled under this name was cancelled for this reason, and something was.
func decided(name, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		return decidedIn(ctx, c, s, "", name, reason)
	}
}

// decidedBefore: the same of the instance's first execution.
func decidedBefore(name, reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		first, err := firstExecution(ctx, c, s.InstanceID)
		if err != nil {
			return err
		}
		return decidedIn(ctx, c, s, first, name, reason)
	}
}

// firstExecution is the instance's: the last of the list.
func firstExecution(ctx context.Context, c *client.Client, instanceID string) (first string, err error) {
	for x, err := range c.Executions(ctx, instanceID) {
		if err != nil {
			return "", err
		}
		first = x.ExecutionID
	}
	return first, nil
}

func decidedIn(ctx context.Context, c *client.Client, s client.Status, execution, name, reason string) error {
	found, err := c.Cancellations(ctx, s.InstanceID, execution)
	if err != nil {
		return err
	}
	n := 0
	for _, x := range found.Items {
		if x.Name != name {
			continue
		}
		if n++; x.Reason != reason {
			return fmt.Errorf("%s #%d was cancelled for %s, want %s", name, x.ID, x.Reason, reason)
		}
	}
	if n == 0 {
		return fmt.Errorf("nothing called %s was cancelled: %+v", name, found.Items)
	}
	return nil
}

// ended: it is known what became of the activities of this name that were cancelled, and none was left to itself.
func ended(name string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		return endedIn(ctx, c, s.InstanceID, "", name)
	}
}

// endedBefore: the same of the instance's first execution.
func endedBefore(name string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		first, err := firstExecution(ctx, c, s.InstanceID)
		if err != nil {
			return err
		}
		return endedIn(ctx, c, s.InstanceID, first, name)
	}
}

func endedIn(ctx context.Context, c *client.Client, instanceID, execution, name string) error {
	found, err := c.Cancellations(ctx, instanceID, execution)
	if err != nil {
		return err
	}
	for _, x := range found.Items {
		if x.Name == name && (x.SeenAt.IsZero() || x.End != client.EndFinished && x.End != client.EndNeverStarted) {
			return fmt.Errorf("%s #%d: seen %v, end %q", name, x.ID, x.SeenAt, x.End)
		}
	}
	return nil
}

// heard: the watches that were cancelled ended so, and those that ran have told history that they saw the reason.
func heard(reason string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		found, err := c.Cancellations(ctx, s.InstanceID, "")
		if err != nil {
			return err
		}
		said := map[int64]string{}
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil {
				return err
			}
			if e.Kind == history.ActivityCompleted {
				doc, _ := e.Result.Document()
				said[e.SourceEventID] = string(doc)
			}
		}
		want, err := json.Marshal(reason)
		if err != nil {
			return err
		}
		for _, x := range found.Items {
			if x.Name == watchName && x.End == client.EndFinished && said[x.ID] != string(want) {
				return fmt.Errorf("%s #%d said %s, want %s", watchName, x.ID, said[x.ID], want)
			}
		}
		return ended(watchName)(ctx, c, s)
	}
}

// answered: somebody who was asked to end has answered so.
func answered(kind history.Kind, failureType string) Check {
	return func(ctx context.Context, c *client.Client, s client.Status) error {
		for e, err := range c.History(ctx, s.InstanceID) {
			if err != nil {
				return err
			}
			if e.Kind == kind && e.Error != nil && e.Error.Type == failureType {
				return nil
			}
		}
		return fmt.Errorf("history has no %s with %s", kind, failureType)
	}
}

// neverBegan: the start was refused; or, where its sender died and only the cancel was sent again, that found nobody.
func neverBegan(ctx context.Context, c *client.Client, s client.Status) error {
	if answered(history.SubOrchestrationFailed, history.TypeAlreadyExists)(ctx, c, s) == nil {
		return nil
	}
	return answered(history.SubOrchestrationCancelFailed, history.TypeNotFound)(ctx, c, s)
}

// neverFires: no timer that was cancelled has fired.
func neverFires(ctx context.Context, c *client.Client, s client.Status) error {
	gone := map[int64]bool{}
	for e, err := range c.History(ctx, s.InstanceID) {
		if err != nil {
			return err
		}
		switch {
		case e.Kind == history.TimerCancelled:
			for _, id := range e.Sources() {
				gone[id] = true
			}
		case e.Kind == history.TimerFired && gone[e.SourceEventID]:
			return fmt.Errorf("timer #%d has fired", e.SourceEventID)
		}
	}
	if len(gone) != 1 {
		return fmt.Errorf("%d timers were cancelled", len(gone))
	}
	return nil
}
