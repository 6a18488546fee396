package perduretest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// idleCheck checks whether instances can continue, and describes their waits.
type idleCheck struct{ env *Env }

// maxSilence is the time without a heartbeat after which an activity counts as stuck. On Lambda, an activity runs for
// at most 15 minutes.
const maxSilence = 3 * time.Hour

// isIdle reports whether no work is due or running.
func (q idleCheck) isIdle() (idle bool) {
	if _, planned := q.env.agenda.next(); planned {
		return false
	}
	q.env.do(func() {
		_, due := q.env.hub.Cloud.NextDue()
		idle = !due && q.env.hub.Cloud.InFlight() == 0 && !q.env.hub.Sweeper.IsBusy()
	})
	return idle
}

// idle returns the error of a wait for an instance that will not end.
func (q idleCheck) idle(ctx context.Context, in *provider.Instance) *IdleError {
	return &IdleError{
		InstanceID: in.InstanceID, Status: in.Status, Diagnosis: in.Diagnosis,
		WaitingFor: q.waits(context.WithoutCancel(ctx), in.InstanceID, maxDepth),
	}
}

// hasStalled reports whether an instance waits only for events and stuck activities. It checks once in maxSilence of
// virtual time, counted from since.
func (q idleCheck) hasStalled(ctx context.Context, instanceID string, since *time.Time) bool {
	now := q.env.Now()
	if _, planned := q.env.agenda.next(); planned || now.Sub(*since) <= maxSilence || len(q.env.log.running()) == 0 {
		return false
	}
	*since = now
	return !q.mayContinue(context.WithoutCancel(ctx), instanceID)
}

// mayContinue reports whether an instance waits for work that does not depend on the test.
func (q idleCheck) mayContinue(ctx context.Context, instanceID string) bool {
	p, err := q.env.client.Pending(ctx, instanceID, "", 0)
	if err != nil || p.Total > len(p.Items) {
		return true
	}
	return slices.ContainsFunc(p.Items, func(x client.PendingItem) bool {
		switch x.Kind {
		case client.PendingExternalEvent, client.PendingUpdate: // the waits of a handler are listed separately
			return false
		case client.PendingSubOrchestration:
			return q.mayContinue(ctx, x.InstanceID)
		case client.PendingActivity:
			since := latest(x.ScheduledAt, x.NextAttemptAt, x.LastHeartbeatAt)
			return p.ReadAt.Sub(since) <= maxSilence+q.env.stubs.takes(x.Name)
		default:
			return true
		}
	})
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// maxDepth limits the depth of described sub-orchestrations.
const maxDepth = 3

// waits describes the waits of an instance and its sub-orchestrations.
func (q idleCheck) waits(ctx context.Context, instanceID string, depth int) []string {
	p, err := q.env.client.Pending(ctx, instanceID, "", 0)
	if err != nil {
		return nil
	}
	texts := q.describeStatus(ctx, instanceID)
	for i := range p.Items {
		x := &p.Items[i]
		texts = append(texts, q.describeWait(ctx, instanceID, x))
		if x.Kind != client.PendingSubOrchestration || depth == 0 {
			continue
		}
		for _, deeper := range q.waits(ctx, x.InstanceID, depth-1) {
			texts = append(texts, "  "+deeper)
		}
	}
	return texts
}

// describeStatus describes the reason why a paused instance or an instance without a first turn cannot continue.
func (q idleCheck) describeStatus(ctx context.Context, instanceID string) []string {
	s, err := q.env.client.Status(ctx, instanceID)
	switch {
	case err != nil:
		return nil
	case s.Paused != nil:
		return []string{fmt.Sprintf("Client.Resume: paused since %v (%q)", s.Paused.At, s.Paused.Message)}
	case s.Status == client.StatusPending && q.env.deployed == nil && !s.StartAt.After(q.env.Now()):
		return []string{"its start: call Wake of the prepared start of PrepareStart, or let the sweeper start it " +
			"with Advance or perduretest.RunSweeper"}
	default:
		return nil
	}
}

// describeWait describes a wait.
func (q idleCheck) describeWait(ctx context.Context, instanceID string, x *client.PendingItem) string {
	switch x.Kind {
	case client.PendingExternalEvent:
		return fmt.Sprintf("external event %q, which was not raised%s", x.Name, q.otherEvents(ctx, instanceID))
	case client.PendingSubOrchestration:
		return fmt.Sprintf("sub-orchestration %q, instance %q%s",
			x.Name, x.InstanceID, q.describeChild(ctx, x.InstanceID)+describeAttempts(x))
	case client.PendingSentEvent:
		return fmt.Sprintf("response to event %q, raised in instance %q%s",
			x.Name, x.InstanceID, q.describeChild(ctx, x.InstanceID))
	case client.PendingSentUpdate:
		return fmt.Sprintf("response to update %q, sent to instance %q%s",
			x.Name, x.InstanceID, q.describeChild(ctx, x.InstanceID))
	case client.PendingUpdate:
		return fmt.Sprintf("handler of update %q (%s), which has not returned", x.Name, x.UpdateID)
	case client.PendingTimer:
		return fmt.Sprintf("timer, due at %v", x.DueAt)
	case client.PendingActivity:
		return fmt.Sprintf("activity %q%s", x.Name, q.describeActivity(instanceID, x))
	default:
		return fmt.Sprintf("%s %q", x.Kind, x.Name)
	}
}

func (q idleCheck) describeActivity(instanceID string, x *client.PendingItem) string {
	for _, c := range q.env.log.running() {
		if c.InstanceID == instanceID && c.ActivityID == x.ID {
			var where string
			q.env.do(func() { where = q.env.watchdog.userCodeOf(c.goroutine) })
			ran := q.env.Now().Sub(q.env.log.began.Add(c.StartedAt))
			return fmt.Sprintf(", which has been running for %v: %s", ran, where)
		}
	}
	if !x.ResultPendingSince.IsZero() {
		return fmt.Sprintf(", which returned ErrPending in attempt %d; complete it with Client.CompleteActivity or "+
			"Client.FailActivity", x.Attempt)
	}
	if !x.UnregisteredAt.IsZero() {
		if q.env.deployed != nil {
			return fmt.Sprintf(", which build %s does not have", x.UnregisteredBuildID)
		}
		return fmt.Sprintf(", which is not registered; the registry has %s; register it or use Env.Stub",
			quoted(q.env.stubs.code.Names().Activities))
	}
	if x.NoWorker {
		return fmt.Sprintf("; no worker serves the queue %q", x.Queue)
	}
	return describeAttempts(x)
}

// describeAttempts describes the failed attempts of a task that is retried.
func describeAttempts(x *client.PendingItem) string {
	if x.LastError == nil || x.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(", which has failed %d times, last at %v: %s; attempt %d is due at %v",
		x.Attempt-1, x.FailedAt, failureText(x.LastError), x.Attempt, x.NextAttemptAt)
}

// failureText describes a failure in one line.
func failureText(f *history.Failure) string {
	return cmp.Or(f.Message, f.Reason, f.Type)
}

func (q idleCheck) describeChild(ctx context.Context, instanceID string) string {
	s, err := q.env.client.Status(ctx, instanceID)
	switch {
	case err != nil:
		return ", which does not exist"
	case s.Failure != nil:
		return fmt.Sprintf(", which is %s: %s", s.Status, s.Failure.Message)
	default:
		return fmt.Sprintf(", which is %s", s.Status)
	}
}

// otherEvents lists the events that were raised and not awaited. Their names may be misspelled.
func (q idleCheck) otherEvents(ctx context.Context, instanceID string) string {
	events, err := client.Collect(q.env.client.History(ctx, instanceID))
	if err != nil {
		return ""
	}
	awaited := map[string]bool{}
	var raised []string
	for i := range events {
		switch ev := &events[i]; ev.Kind { //nolint:exhaustive // the others are not about events
		case history.ExternalEventSubscribed:
			awaited[ev.Name] = true
		case history.ExternalEventRaised:
			raised = append(raised, ev.Name)
		}
	}
	raised = slices.DeleteFunc(raised, func(name string) bool { return awaited[name] })
	if len(raised) == 0 {
		return ""
	}
	slices.Sort(raised)
	return fmt.Sprintf(" (raised but not awaited: %s)", quoted(slices.Compact(raised)))
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
