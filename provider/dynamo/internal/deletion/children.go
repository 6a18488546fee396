package deletion

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// attrChildSearch is an attribute of a deleting instance whose history was too large to read before its end. It stores
// the progress of cancelling the outstanding children. The terminal segment alone prevents further turns, and the
// cancels of children are not urgent. The calls of a deletion therefore stay short, even for a large history.
const attrChildSearch = "untold"

// ChildSearch is the position of a search through a history from its end to its beginning.
type ChildSearch struct {
	// Before is the segment before which the search continues.
	Before int64 `json:"before"`
	// Settled holds the IDs of earlier events that the searched segments have settled. At each position, it contains
	// only the work that was running at that position.
	Settled cancels.Decision `json:"settled,omitzero"`
}

// maxSettled is the maximum number of IDs in a stored position. It exceeds the work that runs at the same time in any
// execution, and limits the memory for a damaged position.
const maxSettled = 4 << 20

// decodeSearch decodes the position that encodeSearch has encoded.
func decodeSearch(doc string) (before int64, settled map[int64]bool, err error) {
	var at ChildSearch
	if err := json.Unmarshal([]byte(doc), &at); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", attrChildSearch, err)
	}
	settled = map[int64]bool{}
	for _, r := range at.Settled.Cancel().IDs {
		if r.First < 1 || r.Last < r.First || r.Last-r.First >= maxSettled-int64(len(settled)) {
			return 0, nil, fmt.Errorf("%s: %w: events %d to %d are not settled work, or exceed the limit of %d",
				attrChildSearch, provider.ErrCorrupt, r.First, r.Last, maxSettled)
		}
		for id := range r.Last - r.First + 1 {
			settled[r.First+id] = true
		}
	}
	return at.Before, settled, nil
}

// searchInterval is the interval at which a search stores its position.
const searchInterval = 3 * time.Second

// cancelOutstandingChildren cancels the outstanding children of an instance, unless its terminal segment contains the
// cancels (R17). It sends the cancels before it stores the position. Cancels can be sent twice.
func (dl *Deleter) cancelOutstandingChildren(ctx context.Context, in *provider.Instance, it table.Item) error {
	doc := table.GetString(it, attrChildSearch)
	if doc == "" {
		return nil
	}
	before, settled, err := decodeSearch(doc)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	release, err := dl.history.acquireLarge(ctx)
	if err != nil {
		return err
	}
	defer release()

	noted := dl.now()
	for s, err := range dl.history.segmentsBefore(ctx, in, before) {
		if err != nil {
			return err
		}
		if err := dl.cancelChildren(
			ctx, in, append(unsettledChildren(s.Events, settled), responseToCallers(s.Events)...),
		); err != nil {
			return err
		}
		if dl.now().Sub(noted) < searchInterval || s.Sequence == 0 {
			continue
		}
		noted = dl.now()
		if err := dl.storeSearch(ctx, in, s.Sequence, settled); err != nil {
			return err
		}
	}
	return nil
}

// unsettledChildren returns the children that the events have started and that no later event has settled. It updates
// settled for the earlier events.
func unsettledChildren(events []history.Event, settled map[int64]bool) (children []history.Event) {
	for _, e := range slices.Backward(events) {
		for i := range e.Inputs { // parked inputs have settled their events
			addSettled(&e.Inputs[i], settled)
		}
		addSettled(&e, settled)
		if e.Kind == history.SubOrchestrationScheduled && !settled[e.ID] {
			children = append(children, history.Event{
				Kind:          history.SubOrchestrationCancelRequested,
				SourceEventID: e.ID,
				InstanceID:    e.InstanceID,
				Reason:        history.ReasonInstanceDeleted,
			})
		}
		delete(settled, e.ID)
	}
	return children
}

// responseToCallers returns an end that responds to all callers that waited for updates in a segment. Callers drop a
// second response.
func responseToCallers(events []history.Event) []history.Event {
	end := history.Event{Kind: history.OrchestrationTerminated}
	for e := range awaitedUpdates(events) {
		end.Callers = append(end.Callers, *e.Parent)
	}
	if len(end.Callers) == 0 {
		return nil
	}
	return []history.Event{end}
}

// awaitedUpdates yields the events about orchestrations that wait for updates, including parked inputs.
func awaitedUpdates(events []history.Event) iter.Seq[*history.Event] {
	waits := func(e *history.Event) bool { return e.Kind == history.UpdateAwaited && e.Parent != nil }
	return func(yield func(*history.Event) bool) {
		for i := range events {
			if e := &events[i]; waits(e) && !yield(e) {
				return
			}
			for j := range events[i].Inputs {
				if e := &events[i].Inputs[j]; waits(e) && !yield(e) {
					return
				}
			}
		}
	}
}

func addSettled(e *history.Event, settled map[int64]bool) {
	for _, id := range e.Settles() {
		settled[id] = true
	}
}

// cancelChildren sends the cancels of these events.
func (dl *Deleter) cancelChildren(ctx context.Context, in *provider.Instance, cancels []history.Event) error {
	if len(cancels) == 0 {
		return nil
	}
	out := outputs.Of(
		outputs.Origin{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Ended: true},
		provider.Segment{Events: cancels}, nil,
	)
	refused, err := dl.Outbox.SendOutputs(ctx, &out)
	for i := range refused {
		dl.log.WarnContext(ctx, "sub-orchestration of a deleted instance not cancelled",
			"event", logevent.DeletionCancelRejected, "instance", in.InstanceID, "error", refused[i].Failure.Message)
	}
	return err
}

func (dl *Deleter) storeSearch(ctx context.Context, in *provider.Instance, before int64, settled map[int64]bool) error {
	at, err := encodeSearch(before, settled)
	if err != nil {
		return err
	}
	_, updated, err := dl.Table.UpdateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		Key:              table.InstanceKey(in.InstanceID),
		UpdateExpression: aws.String("SET updated = :moved, untold = :untold"),
		ConditionExpression: aws.String(
			"execution = :x AND attribute_exists(deleting) AND attribute_not_exists(erasing)",
		),
		ExpressionAttributeValues: table.Item{
			":moved":  table.Str(table.FormatTime(dl.now())),
			":untold": table.Str(at),
			":x":      table.Str(in.ExecutionID),
		},
	})
	if err == nil && !updated {
		return errChanged
	}
	return err
}

func encodeSearch(before int64, settled map[int64]bool) (string, error) {
	var c provider.ActivityCancel
	for _, id := range slices.Sorted(maps.Keys(settled)) {
		c.IDs = history.AppendID(c.IDs, id)
	}
	doc, err := json.Marshal(ChildSearch{Before: before, Settled: cancels.NewDecision(&c)})
	if err != nil {
		return "", fmt.Errorf("dynamo: %s: %w", attrChildSearch, err)
	}
	return string(doc), nil
}
