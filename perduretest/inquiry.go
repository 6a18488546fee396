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

// inquiry finds out what instances wait for.
type inquiry struct{ env *Env }

// longestRun is how long an activity may run, without a heartbeat, before an instance that waits for nothing else counts as stuck. On Lambda it is
// 15 minutes.
const longestRun = 3 * time.Hour

// isIdle reports whether nothing can happen any more.
func (q inquiry) isIdle() (idle bool) {
	if _, planned := q.env.agenda.next(); planned {
		return false
	}
	q.env.do(func() {
		_, due := q.env.hub.Cloud.NextDue()
		idle = !due && q.env.hub.Cloud.InFlight() == 0 && !q.env.hub.Sweeper.IsBusy()
	})
	return idle
}

// idle is the error of an instance that nothing can end.
func (q inquiry) idle(ctx context.Context, in *provider.Instance) *IdleError {
	return &IdleError{InstanceID: in.InstanceID, Status: in.Status, Diagnosis: in.Diagnosis, WaitingFor: q.waits(context.WithoutCancel(ctx), in.InstanceID, mostDepth)}
}

// hasStalled reports whether an instance waits for nothing but events, and for activities that have run for too long. It looks once in longestRun of
// virtual time, counted from since.
func (q inquiry) hasStalled(ctx context.Context, instanceID string, since *time.Time) bool {
	now := q.env.Now()
	if _, planned := q.env.agenda.next(); planned || now.Sub(*since) <= longestRun || len(q.env.log.running()) == 0 {
		return false
	}
	*since = now
	return !q.mayGoOn(context.WithoutCancel(ctx), instanceID)
}

// mayGoOn reports whether an instance waits for something that comes by itself.
func (q inquiry) mayGoOn(ctx context.Context, instanceID string) bool {
	p, err := q.env.client.Pending(ctx, instanceID, "", 0)
	if err != nil || p.Total > len(p.Items) {
		return true
	}
	return slices.ContainsFunc(p.Items, func(x client.PendingItem) bool {
		switch x.Kind {
		case client.PendingExternalEvent, client.PendingUpdate: // of what a handler waits for, the rest is listed, too
			return false
		case client.PendingSubOrchestration:
			return q.mayGoOn(ctx, x.InstanceID)
		case client.PendingActivity:
			return p.ReadAt.Sub(latest(x.ScheduledAt, x.NextAttemptAt, x.LastHeartbeatAt)) <= longestRun+q.env.stubs.takes(x.Name)
		default:
			return true
		}
	})
}

func latest(times ...time.Time) time.Time {
	return slices.MaxFunc(times, time.Time.Compare)
}

// mostDepth bounds how deep sub-orchestrations are described.
const mostDepth = 3

// waits describes what an instance waits for, and its sub-orchestrations to a depth.
func (q inquiry) waits(ctx context.Context, instanceID string, depth int) []string {
	p, err := q.env.client.Pending(ctx, instanceID, "", 0)
	if err != nil {
		return nil
	}
	texts := q.describeStanding(ctx, instanceID)
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

// describeStanding describes what an instance waits for before all else: one that is paused, and one that was never begun.
func (q inquiry) describeStanding(ctx context.Context, instanceID string) []string {
	s, err := q.env.client.Status(ctx, instanceID)
	switch {
	case err != nil:
		return nil
	case s.Paused != nil:
		return []string{fmt.Sprintf("Client.Resume: paused since %v (%q)", s.Paused.At, s.Paused.Message)}
	case s.Status == client.StatusPending && q.env.deployed == nil && !s.StartAt.After(q.env.Now()):
		return []string{"its start: call Wake of the prepared start of PrepareStart, or let the sweeper start it with " +
			"Advance or perduretest.RunSweeper"}
	default:
		return nil
	}
}

// describeWait describes one thing that is waited for.
func (q inquiry) describeWait(ctx context.Context, instanceID string, x *client.PendingItem) string {
	switch x.Kind {
	case client.PendingExternalEvent:
		return fmt.Sprintf("external event %q, which was not raised%s", x.Name, q.otherEvents(ctx, instanceID))
	case client.PendingSubOrchestration:
		return fmt.Sprintf("sub-orchestration %q, instance %q%s",
			x.Name, x.InstanceID, q.describeChild(ctx, x.InstanceID)+describeTries(x))
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

func (q inquiry) describeActivity(instanceID string, x *client.PendingItem) string {
	for _, c := range q.env.log.running() {
		if c.InstanceID == instanceID && c.ActivityID == x.ID {
			var where string
			q.env.do(func() { where = q.env.watch.whereabouts(c.goroutine) })
			return fmt.Sprintf(", which has been running for %v: %s", q.env.Now().Sub(q.env.log.began.Add(c.StartedAt)), where)
		}
	}
	if !x.ResultPendingSince.IsZero() {
		return fmt.Sprintf(", which returned ErrPending in attempt %d; complete it with Client.CompleteActivity or Client.FailActivity",
			x.Attempt)
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
	return describeTries(x)
}

// describeTries says how often something was tried that is to be tried again, and why it failed.
func describeTries(x *client.PendingItem) string {
	if x.LastError == nil || x.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf(", which has failed %d times, last at %v: %s; attempt %d is due at %v",
		x.Attempt-1, x.FailedAt, failureText(x.LastError), x.Attempt, x.NextAttemptAt)
}

// failureText is a failure on one line.
func failureText(f *history.Failure) string {
	return cmp.Or(f.Message, f.Reason, f.Type)
}

func (q inquiry) describeChild(ctx context.Context, instanceID string) string {
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

// otherEvents lists the events that an instance was sent and has not waited for: their names may be wrong.
func (q inquiry) otherEvents(ctx context.Context, instanceID string) string {
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
