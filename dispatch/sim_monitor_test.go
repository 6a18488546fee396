package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/wire"
)

// monitor observes every call of a simulated hub after it was made. It records the real order of reads and writes, and
// the processes that crashed in between.
type monitor struct {
	h          *hub
	limit      int // Options.MaxCrashes
	deliveries *deliveries
	inline     *inlineMonitor

	mu sync.Mutex
	// instances maps the key of an execution to its instance.
	instances  map[string]string
	executions map[string]*executionState
	// cancelReads contains the cancels that were committed when each invocation first read a cancel record, by its name
	// and the execution.
	cancelReads map[[2]string]provider.Cancels
	// marks contains the invocations with a crash marker, by its key and their names, with a function that reports
	// whether they have crashed.
	marks map[[2]string]map[string]func() bool
	// began counts the activities whose code started.
	began int
	// verdicts counts the poison records. poison contains the names of their activities, and blocked contains the
	// instances of their turns.
	verdicts        int
	poison, blocked map[string]bool
	errs            []error
}

// executionState is the state of an execution.
type executionState struct {
	last    int64 // sequence number of its last segment
	dead    bool  // the last segment ends it
	deleted bool  // its start is a stub
	named   bool  // an instance item refers to it
}

// defaultLimit is the default of Options.MaxCrashes.
const defaultLimit = 10

// on sets the hub of the witness.
func (w *monitor) on(h *hub) { w.h, w.deliveries.h = h, h }

// limited sets Options.MaxCrashes of the hub.
func (w *monitor) limited(maxAttempts int) {
	if maxAttempts > 0 {
		w.limit = maxAttempts
	}
}

func newMonitor() *monitor {
	w := &monitor{
		limit:      defaultLimit,
		deliveries: newDeliveries(),
		executions: map[string]*executionState{}, cancelReads: map[[2]string]provider.Cancels{},
		marks:   map[[2]string]map[string]func() bool{},
		blocked: map[string]bool{}, poison: map[string]bool{}, instances: map[string]string{},
	}
	w.inline = newInlineMonitor(w)
	return w
}

func (w *monitor) wrongf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, fmt.Errorf(format, args...))
}

// intercept observes all calls after they were made.
func (w *monitor) intercept(ctx context.Context, c simaws.Call, next func() error) error {
	if err := w.interceptOrder(ctx, c, next); err != nil {
		return err
	}
	if isQueryCall(ctx) && !readsStrongly(c) && !isRollupCall(c) {
		w.wrongf("a query made a call of %s: %+v", c.Operation, c.Input)
	}
	w.inline.see(ctx, c)
	return nil
}

// interceptOrder observes all calls except those of inline activities and queries.
func (w *monitor) interceptOrder(ctx context.Context, c simaws.Call, next func() error) error {
	if err := w.interceptPoison(ctx, c, next); err != nil {
		return err
	}
	for _, it := range itemsPut(c) {
		w.put(it)
	}
	for _, it := range itemsPut(c) {
		w.names(it)
	}
	if readsCancels(c) {
		in, _ := c.Input.(*dynamodb.QueryInput)
		w.read(ctx, text(in.ExpressionAttributeValues, ":pk"))
	}
	return nil
}

// interceptPoison observes only calls that concern poison, which does not need an order of all calls.
func (w *monitor) interceptPoison(ctx context.Context, c simaws.Call, next func() error) error {
	w.deliveries.see(c)
	if err := next(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, it := range itemsPut(c) {
		if text(it, "sk") == "h#0000000000" && text(it, "instance") != "" {
			w.instances[text(it, "pk")] = text(it, "instance")
		}
	}
	switch in := c.Input.(type) {
	case *dynamodb.UpdateItemInput:
		w.update(ctx, in)
	case *sqs.SendMessageBatchInput:
		for i := range in.Entries {
			w.recordDeadLetter(*in.QueueUrl, &in.Entries[i])
		}
	default:
	}
	return nil
}

// itemsPut returns the items that a call puts.
func itemsPut(c simaws.Call) (items []map[string]ddbtypes.AttributeValue) {
	switch in := c.Input.(type) {
	case *dynamodb.PutItemInput:
		return append(items, in.Item)
	case *dynamodb.TransactWriteItemsInput:
		for i := range in.TransactItems {
			if put := in.TransactItems[i].Put; put != nil {
				items = append(items, put.Item)
			}
		}
	default:
	}
	return items
}

// names observes a new instance item. It refers to an execution that has started and belongs to no other instance (I1).
func (w *monitor) names(it map[string]ddbtypes.AttributeValue) {
	id := text(it, "execution")
	if text(it, "sk") != "i" || id == "" {
		return
	}
	x := w.executions[id]
	if x == nil || x.named {
		w.wrongf("I1: an instance refers to execution %s without a first segment, or of another instance: %+v", id, x)
		return
	}
	x.named = true
}

// put observes a segment: the next one of a running execution, or a stub that replaces a segment (I1, I8).
func (w *monitor) put(it map[string]ddbtypes.AttributeValue) {
	id, ofExecution := strings.CutPrefix(text(it, "pk"), "x#")
	number, isSegment := strings.CutPrefix(text(it, "sk"), "h#")
	sequence, err := strconv.ParseInt(number, 10, 64)
	if !ofExecution || !isSegment || err != nil { // later parts have longer keys
		return
	}
	x := w.executions[id]
	if x == nil {
		x = &executionState{last: -1}
		w.executions[id] = x
	}
	switch stub := text(it, "stub") != ""; {
	case stub && sequence > x.last:
		w.wrongf("I8: execution %s has a stub %d after its last segment %d", id, sequence, x.last)
	case stub:
		x.deleted = x.deleted || sequence == 0
	case x.dead:
		w.wrongf("I8: ended execution %s gained segment %d", id, sequence)
	// a start is written again in the transaction of its instance, even after its first segment was abandoned
	case sequence == 0 && x.last == 0 && !x.named:
		x.deleted = false
	case sequence != x.last+1:
		w.wrongf("I1: execution %s gained segment %d after %d", id, sequence, x.last)
	default:
		x.last = sequence
		_, err := w.h.Provider.ReadTerminalEvent(context.Background(), id)
		x.dead = err == nil
	}
}

// read records the committed cancels when an invocation first reads a cancel record.
func (w *monitor) read(ctx context.Context, pk string) {
	name, _ := simhub.Process(ctx)
	id, ofExecution := strings.CutPrefix(pk, "x#")
	if name == "" || !ofExecution {
		return
	}
	read := [2]string{name, id}
	if _, before := w.cancelReads[read]; before {
		return
	}
	w.cancelReads[read] = w.decided(id)
}

// decided returns the committed cancels of an execution.
func (w *monitor) decided(id string) provider.Cancels {
	if x := w.executions[id]; x == nil || x.deleted {
		return provider.Cancels{{All: true, Reason: history.ReasonInstanceDeleted}}
	}
	var events []history.Event
	for e, err := range w.h.Provider.ReadHistory(context.Background(), w.instances["x#"+id], id, 0) {
		if err != nil {
			w.wrongf("the history of %s: %w", id, err)
			break
		}
		events = append(events, e)
	}
	return provider.CancelsOf(events)
}

// update observes crash markers that are written or removed.
func (w *monitor) update(ctx context.Context, in *dynamodb.UpdateItemInput) {
	key := [2]string{text(in.Key, "pk"), text(in.Key, "sk")}
	name, _ := simhub.Process(ctx)
	if name == "" || !strings.HasPrefix(key[1], "p#") {
		return
	}
	if w.marks[key] == nil {
		w.marks[key] = map[string]func() bool{}
	}
	if strings.Contains(*in.UpdateExpression, "ADD") {
		w.marks[key][name] = func() bool {
			_, dead := simhub.Process(ctx)
			return dead
		}
	} else {
		delete(w.marks[key], name)
	}
}

// crashCount returns the largest number of dead deliveries with a crash marker of one message.
func (w *monitor) crashCount(executionID string, activityID int64) (most int) {
	prefix := fmt.Sprintf("p#%d#", activityID)
	for key, by := range w.marks {
		died := 0
		for _, dead := range by {
			if dead() {
				died++
			}
		}
		if key[0] == "x#"+executionID && strings.HasPrefix(key[1], prefix) {
			most = max(most, died)
		}
	}
	return most
}

// crashesOfTurns is like deaths for the turns of an instance in all executions.
func (w *monitor) crashesOfTurns(instanceID string) (most int) {
	for pk, instance := range w.instances {
		if instance == instanceID {
			most = max(most, w.crashCount(strings.TrimPrefix(pk, "x#"), 0))
		}
	}
	return most
}

// begins is called first by activities. An activity must not start if its cancel was committed before its invocation
// read the cancel record (I6).
func (w *monitor) begins(ctx context.Context) {
	name, _ := simhub.Process(ctx)
	a := perdure.ActivityInfoFrom(ctx)
	w.mu.Lock()
	w.began++
	cancels, looked := w.cancelReads[[2]string{name, a.ExecutionID}]
	w.mu.Unlock()
	switch c := cancels.Of(a.ActivityID); {
	case !looked:
		w.wrongf("I6: activity #%d of %s started without a read of the cancel record", a.ActivityID, a.ExecutionID)
	case c.Requested:
		w.wrongf("I6: activity #%d of %s started, but was cancelled (%s) before its invocation read the cancel record",
			a.ActivityID, a.ExecutionID, c.Reason)
	}
}

// crashesWhenBlocked is the number of crashes that prove poison for a message to an instance that is already blocked as
// poison. Other messages need MaxCrashes crashes of marked deliveries.
const crashesWhenBlocked = 1

// recordDeadLetter observes a poison record that becomes a dead letter, and checks the proof (R13).
func (w *monitor) recordDeadLetter(url string, e *sqstypes.SendMessageBatchRequestEntry) {
	why, ok := e.MessageAttributes["error"]
	if !ok || !strings.Contains(url, "-dead") || !strings.HasPrefix(*why.StringValue, history.TypePoison) {
		return
	}
	w.verdicts++
	died, wanted := 0, w.limit
	if item, err := wire.DecodeWorkItem(*e.MessageBody); err == nil && item.ActivityID > 0 {
		died, w.poison[item.Name] = w.crashCount(item.ExecutionID, item.ActivityID), true
	} else if m, err := wire.DecodeMessage(*e.MessageBody); err == nil {
		died = w.crashesOfTurns(m.InstanceID)
		if w.blocked[m.InstanceID] {
			wanted = crashesWhenBlocked
		}
		w.blocked[m.InstanceID] = true
	}
	if died < wanted {
		w.errs = append(w.errs,
			fmt.Errorf("R13: only %d marked deliveries crashed before this record became poison: %s",
				died, *e.MessageBody))
	}
}

// found returns the number of poison records, and the errors so far.
func (w *monitor) found() (verdicts int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verdicts, errors.Join(slices.Concat(w.errs, w.deliveries.errs)...)
}

// check returns the errors of all executions.
func (w *monitor) check(ctx context.Context) error {
	errs := slices.Concat(w.errs, w.deliveries.errs)
	for _, id := range slices.Sorted(maps.Keys(w.executions)) {
		errs = append(errs, w.checkExecution(ctx, id, w.instances["x#"+id]))
	}
	return errors.Join(errs...)
}

func (w *monitor) checkExecution(ctx context.Context, id, instanceID string) error {
	out, err := w.h.Cloud.Table.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
		ConsistentRead:            aws.Bool(true),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":pk": textValue("x#" + id)},
	})
	if err != nil {
		return err
	}
	for _, it := range out.Items {
		switch {
		case text(it, "sk") != "h#0000000000":
		case text(it, "stub") != "":
			return w.checkDeleted(id, out.Items)
		case !w.executions[id].named && text(it, "previous") == "" && len(out.Items) == 1:
			return nil // its starter has crashed, and no instance refers to it (R11)
		}
	}
	if _, err := w.h.Provider.ReadInstance(ctx, instanceID); err != nil {
		return fmt.Errorf("execution %s exists without its instance %q: %w", id, instanceID, err)
	}
	var events []history.Event
	for e, err := range w.h.Provider.ReadHistory(ctx, instanceID, id, 0) {
		if err != nil {
			return fmt.Errorf("execution %s: %w", id, err)
		}
		events = append(events, e)
	}
	return errors.Join(simhub.CheckLog(events), w.checkPoison(id, events), checkSettled(id, events))
}

// checkDeleted checks that only stubs with a TTL remain of a deleted execution.
func (w *monitor) checkDeleted(id string, items []map[string]ddbtypes.AttributeValue) (err error) {
	for _, it := range items {
		switch sk := text(it, "sk"); {
		case it["ttl"] == nil:
			err = errors.Join(err, fmt.Errorf("deleted execution %s: %s never expires", id, sk))
		// a late delivery may still write a crash marker or note with a TTL
		case sk == "c" || strings.HasPrefix(sk, "b#") || strings.HasPrefix(sk, "f#") || strings.HasPrefix(sk, "p#") ||
			strings.HasPrefix(sk, "o#"):
		case strings.HasPrefix(sk, "h#") && text(it, "stub") != "" && it["events"] == nil:
		default:
			err = errors.Join(err, fmt.Errorf("deleted execution %s: %s remains", id, sk))
		}
	}
	return err
}

// checkSettled checks that each scheduled ID settles once (I7): at most one outcome, at most one cancel, and no cancel
// after an outcome. If the execution has ended, each ID has one of the two.
func checkSettled(id string, events []history.Event) (err error) {
	outcomes, cancels := map[int64]int{}, map[int64]int{}
	for i := range events {
		e := &events[i]
		switch e.Kind {
		case history.ActivityCompleted, history.ActivityFailed, history.TimerFired, history.SubOrchestrationCompleted,
			history.SubOrchestrationFailed:
			if outcomes[e.SourceEventID]++; outcomes[e.SourceEventID] > 1 {
				err = errors.Join(err, fmt.Errorf("I7: execution %s: %s is a second outcome", id, e.String()))
			}
		case history.ActivityCancelRequested, history.TimerCancelled, history.SubOrchestrationCancelRequested:
			for _, of := range e.Sources() {
				if cancels[of]++; cancels[of] > 1 || outcomes[of] > 0 {
					err = errors.Join(err, fmt.Errorf("I7: execution %s: %s cancels a settled ID", id, e.String()))
				}
			}
		default:
		}
	}
	state := history.NewState(history.TrackOpen, events...)
	if !state.Ended() {
		return err
	}
	anew := events[len(events)-1].Kind == history.OrchestrationContinuedAsNew
	for _, e := range state.CancelOutstanding("") {
		// the next execution has the waiting updates, like in checkUpdates of simhub
		if anew && e.Kind == history.UpdateCompleted {
			continue
		}
		err = errors.Join(err, fmt.Errorf("I7: execution %s ended with open %v", id, e.Sources()))
	}
	return err
}

// checkPoison checks that a poison failure in history has a dead letter (R13).
func (w *monitor) checkPoison(id string, events []history.Event) error {
	for i := range events {
		if e := &events[i]; e.Error != nil && e.Error.Type == history.TypePoison && w.verdicts == 0 {
			return fmt.Errorf("R13: execution %s: %s without a dead letter", id, e.String())
		}
	}
	return nil
}
