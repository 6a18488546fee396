package simhub

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// ServeFor lets the functions run for d, and returns after the last invocation has ended.
func (h *Hub) ServeFor(ctx context.Context, d time.Duration) {
	ctx, stop := context.WithCancel(ctx)
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.Cloud.Serve(ctx)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	stop()
	<-served
}

// CheckIdle returns the errors of a hub at rest: an instance that has not ended, an execution with an invalid history,
// a remaining message or schedule.
func (h *Hub) CheckIdle(ctx context.Context) error {
	h.Cloud.Table.Lag(0)
	return errors.Join(h.checkInstances(ctx), h.checkQueues(ctx))
}

func (h *Hub) checkInstances(ctx context.Context) error {
	q := provider.ListQuery{Limit: 1000}
	var errs []error
	for {
		page, err := h.Provider.ListInstances(ctx, q)
		if err != nil {
			return fmt.Errorf("simhub: list instances: %w", err)
		}
		for _, in := range page.Instances {
			if !in.Status.Terminal() {
				errs = append(errs, fmt.Errorf("instance %q has not ended, its status is %s", in.InstanceID, in.Status))
			}
			errs = append(errs, h.checkExecutions(ctx, in))
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return errors.Join(errs...)
		}
	}
}

func (h *Hub) checkExecutions(ctx context.Context, in provider.Instance) error {
	var errs []error
	left := in.ExecutionNumber
	for x, err := range h.Provider.ListExecutions(ctx, in.InstanceID) {
		if err != nil {
			return fmt.Errorf("instance %q: list executions: %w", in.InstanceID, err)
		}
		if x.Number != left {
			errs = append(errs, fmt.Errorf("instance %q: execution %d found, want %d", in.InstanceID, x.Number, left))
		}
		left--
		errs = append(errs, h.checkHistory(ctx, in.InstanceID, x.ExecutionID))
	}
	if left != 0 {
		errs = append(errs,
			fmt.Errorf("instance %q: %d executions of %d are missing", in.InstanceID, left, in.ExecutionNumber))
	}
	return errors.Join(errs...)
}

func (h *Hub) checkHistory(ctx context.Context, instanceID, executionID string) error {
	var events []history.Event
	for e, err := range h.Provider.ReadHistory(ctx, instanceID, executionID, 0) {
		if err != nil {
			return fmt.Errorf("instance %q: read history: %w", instanceID, err)
		}
		events = append(events, e)
	}
	err := errors.Join(CheckLog(events), checkUpdates(ctx, h, instanceID, executionID, events),
		h.options.Tasks.check(executionID, events))
	if err == nil && !events[len(events)-1].Kind.Terminal() {
		err = fmt.Errorf("the history ends with %s", events[len(events)-1].String())
	}
	if err != nil {
		return fmt.Errorf("instance %q, execution %s: %w", instanceID, executionID, err)
	}
	return nil
}

// checkUpdates returns the errors of updates: an accepted one that has not ended, or a result that differs from the
// history.
func checkUpdates(ctx context.Context, h *Hub, instanceID, executionID string, events []history.Event) error {
	var errs []error
	open := map[int64]bool{}
	for i := range events {
		switch e := &events[i]; e.Kind { //nolint:exhaustive // the others concern no update
		case history.UpdateAccepted:
			open[e.ID] = true
		case history.UpdateRejected, history.UpdateCompleted:
			delete(open, e.SourceEventID)
			want := outputs.UpdateResultOf(outputs.Origin{
				InstanceID: instanceID, ExecutionID: executionID, StartID: events[0].StartID,
			}, e)
			switch a, err := h.Provider.ReadUpdate(ctx, instanceID, e.EventID); {
			case err != nil:
				errs = append(errs, fmt.Errorf("update %q (%s) has no response: %w", e.EventID, e.String(), err))
			case !reflect.DeepEqual(a, want):
				errs = append(errs, fmt.Errorf("update %q has the response %+v, want %+v", e.EventID, a, want))
			}
		}
	}
	// after continue-as-new, the next execution has the waiting updates
	if len(open) > 0 && events[len(events)-1].Kind != history.OrchestrationContinuedAsNew {
		errs = append(errs, fmt.Errorf("%d accepted updates have not ended: %v", len(open), open))
	}
	return errors.Join(errs...)
}

// arrivedAs identifies an external event, a command or an update by its ID. It returns an empty string for other
// events.
func arrivedAs(e *history.Event) string {
	switch {
	case e.EventID == "" || !e.IsInput():
		return ""
	case e.Kind == history.UpdateReceived, e.Kind == history.UpdateAccepted && e.SourceEventID == 0,
		e.Kind == history.UpdateRejected && e.SourceEventID == 0:
		return history.UpdateIDPrefix + e.EventID
	case e.Kind == history.UpdateAccepted, e.Kind == history.UpdateRejected, e.Kind == history.UpdateAwaited:
		return "" // it arrived in another event
	default:
		return e.EventID
	}
}

// CheckLog returns the errors of a history. An error is a gap, an event after the end, a task that is settled twice, or
// an external event or an update that occurs twice.
func CheckLog(events []history.Event) error {
	var errs []error
	settled, raised := map[int64]bool{}, map[string]bool{}
	for i := range events {
		e := &events[i]
		if e.IsInput() && e.Kind.HasSource() && !requestsCancel(e.Kind) { // an outcome after a cancel request is valid
			if settled[e.SourceEventID] {
				errs = append(errs, fmt.Errorf("#%d settled twice, the second time by %s", e.SourceEventID, e.String()))
			}
			settled[e.SourceEventID] = true
		}
		if id := arrivedAs(e); id != "" {
			if raised[id] {
				errs = append(errs, fmt.Errorf("%q occurs twice, the second time as %s", id, e.String()))
			}
			raised[id] = true
		}
		if e.Kind == history.UpdateCompleted {
			if settled[e.SourceEventID] {
				errs = append(errs, fmt.Errorf("update #%d ended twice, the second time by %s", e.SourceEventID,
					e.String()))
			}
			settled[e.SourceEventID] = true
		}
	}
	_, err := history.Concat(events)
	return errors.Join(append(errs, err)...)
}

func requestsCancel(k history.Kind) bool {
	return k == history.ActivityCancelRequested || k == history.SubOrchestrationCancelRequested
}

// checkQueues checks for visible messages, and then for messages that are not visible.
func (h *Hub) checkQueues(ctx context.Context) error {
	where := h.Provider.Config()
	urls := []string{where.InboxURL, where.TimersURL}
	for _, url := range where.WorkQueues {
		urls = append(urls, url)
	}
	for _, url := range where.DeadLetters {
		urls = append(urls, url)
	}
	var errs []error
	if at, some := h.Cloud.NextDue(); some {
		errs = append(errs, fmt.Errorf("a message is left, visible from %v", at))
	}
	for _, url := range urls {
		left, err := leftMessages(ctx, h.Cloud.Queues, url)
		if err != nil {
			return fmt.Errorf("simhub: receive from queue %s: %w", url, err)
		}
		if n := len(left); n > 0 {
			errs = append(errs, fmt.Errorf("%d messages are left in %s, such as %s", n, url, *left[0].Body))
		}
	}
	if n := h.Cloud.Schedules.Count(); n > 0 {
		errs = append(errs, fmt.Errorf("%d schedules are left", n))
	}
	return errors.Join(errs...)
}

// leftMessages receives the messages of a queue, except copies of recovered dead letters, which wait for an operator.
func leftMessages(ctx context.Context, queues *simaws.Queues, url string) (left []types.Message, err error) {
	for {
		out, err := queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{attrReason},
			VisibilityTimeout: 60,
		})
		if err != nil || len(out.Messages) == 0 {
			return left, err
		}
		for _, m := range out.Messages {
			why, annotated := m.MessageAttributes[attrReason]
			if !annotated || !strings.HasPrefix(*why.StringValue, provider.ReasonRecovered) {
				left = append(left, m)
			}
		}
	}
}

// attrReason is the message attribute with the reason of a dead letter.
const attrReason = "error"
