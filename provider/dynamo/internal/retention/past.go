package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

const (
	// maxPastRead is the number of past executions that are read before the first of them is erased.
	maxPastRead = 100
	// searchInterval is the number of executions after which a search for the oldest one stores its position.
	searchInterval = 200
)

// erasePast erases past executions that ended long enough ago, the oldest first, so that the remaining ones are always
// a chain without a gap. The instance names the oldest execution, and the end of each execution names the next one.
func (rn *Retention) erasePast(ctx context.Context, it table.Item) (erased int, err error) {
	in, err := instances.Decode(it)
	if err != nil {
		return 0, err
	}
	keep := time.Duration(table.GetNumber(it, table.AttrRetain)) * time.Second
	if keep <= 0 {
		return 0, rn.setDue(ctx, it, "REMOVE due", table.Item{}) // the code now keeps past executions forever
	}

	before := rn.now().Add(-instances.PastRetention(keep))
	oldest := table.GetString(it, table.AttrOldest)
	if oldest == "" {
		if oldest, err = rn.findOldest(ctx, &in, table.GetString(it, table.AttrOldestSearch)); err != nil {
			return 0, err
		}
	}

	for {
		links, err := rn.endedChain(ctx, &in, oldest, before)
		if errors.Is(err, errMissing) {
			return erased, rn.resetOldest(ctx, &in, oldest)
		}
		if err != nil {
			return erased, err
		}

		some := unreferencedPast(links)
		for _, l := range some {
			if _, err := rn.Eraser.Erase(ctx, in.InstanceID, l.id, l.next, nil); err != nil {
				return erased, err
			}
			oldest = l.next
			erased++
		}

		if len(some) < maxPastRead {
			return erased, rn.setNextDue(ctx, it, &in, oldest, links[len(some)])
		}
		if err := rn.storeProgress(
			ctx, &in, "SET oldest = :oldest REMOVE seeking", table.Item{":oldest": table.Str(oldest)},
		); err != nil {
			return erased, err
		}
	}
}

// pastExecution is a past execution, with the next execution and the oldest execution to which it refers. The current
// execution has no next execution.
type pastExecution struct{ id, next, refs string }

// endedChain reads a chain of executions, up to the first one that must be kept, has not ended, or exceeds maxPastRead.
// That execution is the last element.
func (rn *Retention) endedChain(
	ctx context.Context, in *provider.Instance, from string, before time.Time,
) (links []pastExecution, err error) {
	for at := from; ; {
		l, err := rn.readPast(ctx, in, at)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
		// an execution ended when the next one started
		if l.next == "" || len(links) > maxPastRead || !segments.StartedBefore(l.next, before) {
			return links, nil
		}
		at = l.next
	}
}

// unreferencedPast returns the links before the last one to which no kept execution refers. References become only more
// recent along the chain.
func unreferencedPast(links []pastExecution) []pastExecution {
	kept := len(links) - 1
	refs := links[kept].refs
	for kept > 0 && refs != "" && links[kept-1].id >= refs {
		kept--
		if r := links[kept].refs; r != "" && r < refs {
			refs = r
		}
	}
	return links[:kept]
}

// errMissing means that neither the execution nor its stub exists.
var errMissing = errors.New("dynamo: oldest execution is missing")

// readPast reads the start and the end of an execution. The start of a partly erased one is a stub, which names the
// next execution.
func (rn *Retention) readPast(ctx context.Context, in *provider.Instance, id string) (pastExecution, error) {
	l := pastExecution{id: id}
	start, err := rn.Table.GetExecutionItem(ctx, id, table.SegmentSK(0, 0))
	switch {
	case err != nil:
		return l, err
	case len(start) == 0:
		return l, errMissing
	case table.IsStub(start):
		if l.next = table.GetString(start, table.AttrNext); l.next == "" {
			return l, errMissing
		}
		return l, nil
	}
	l.refs = table.GetString(start, table.AttrRefs)
	if id == in.ExecutionID {
		return l, nil
	}

	end, err := rn.Segments.ReadTerminalEvent(ctx, id)
	if err != nil {
		return l, err
	}
	if end.Kind != history.OrchestrationContinuedAsNew || end.ExecutionID == "" {
		return l, fmt.Errorf("execution %s ends with %s, but must continue as new: %w", id, end.Kind,
			provider.ErrCorrupt)
	}
	l.next = end.ExecutionID
	return l, nil
}

// findOldest searches backwards from the current execution, or from the position of an earlier search.
func (rn *Retention) findOldest(ctx context.Context, in *provider.Instance, from string) (string, error) {
	at := from
	if at == "" {
		at = in.ExecutionID
	}
	for n := 1; ; n++ {
		start, err := rn.Table.GetExecutionItem(ctx, at, table.SegmentSK(0, 0))
		if err != nil {
			return "", err
		}
		previous := table.GetString(start, table.AttrPrevious)
		if previous == "" || table.IsStub(start) {
			return at, nil
		}
		before, err := rn.Table.GetExecutionItem(ctx, previous, table.SegmentSK(0, 0))
		if err != nil {
			return "", err
		}
		if len(before) == 0 || table.IsStub(before) {
			return at, nil
		}
		if at = previous; n%searchInterval == 0 {
			if err := rn.storeProgress(
				ctx, in, "SET seeking = :seeking", table.Item{":seeking": table.Str(at)},
			); err != nil {
				return "", err
			}
		}
	}
}

// resetOldest makes the next call for this instance search for the oldest execution from the current one.
func (rn *Retention) resetOldest(ctx context.Context, in *provider.Instance, oldest string) error {
	rn.log.WarnContext(ctx, "oldest execution missing, searching again", "event", logevent.ExecutionMissing,
		"instance", in.InstanceID, "execution", oldest)
	return rn.storeProgress(ctx, in, "REMOVE oldest, seeking", table.Item{})
}

// storeProgress stores the progress of a trim for the incarnation that was read, unless it is being deleted.
func (rn *Retention) storeProgress(ctx context.Context, in *provider.Instance, update string, values table.Item) error {
	values[":start"] = table.Str(in.StartID)
	_, updated, err := rn.Table.UpdateIf(ctx, in.InstanceID, &dynamodb.UpdateItemInput{
		Key:                       table.InstanceKey(in.InstanceID),
		UpdateExpression:          &update,
		ConditionExpression:       aws.String("startId = :start AND attribute_not_exists(deleting)"),
		ExpressionAttributeValues: values,
	})
	if err == nil && !updated {
		return &provider.Error{
			Op:         "ApplyRetention",
			InstanceID: in.InstanceID,
			Retryable:  true,
			Err:        provider.ErrConflict,
		}
	}
	return err
}

// setNextDue stores the next due date of a past execution. It assumes that the first kept execution ends now if it has
// not ended. If the instance has ended in the meantime, its end has stored another due date.
func (rn *Retention) setNextDue(
	ctx context.Context, it table.Item, in *provider.Instance, oldest string, kept pastExecution,
) error {
	ends := rn.now()
	if kept.next != "" {
		ends = provider.ExecutionStartedAt(kept.next) // zero if it is unknown, so due again tomorrow
	}
	keep := time.Duration(table.GetNumber(it, table.AttrRetain)) * time.Second
	due := rn.now().Add(time.Second) // due executions with references are checked again tomorrow
	if at := ends.Add(instances.PastRetention(keep)); at.After(due) {
		due = at
	}
	return rn.setDue(
		ctx, it, "SET due = :again, oldest = :oldest REMOVE seeking",
		table.Item{":again": table.Str(instances.DueKey(in.InstanceID, due)), ":oldest": table.Str(oldest)},
	)
}

func (rn *Retention) setDue(ctx context.Context, it table.Item, update string, values table.Item) error {
	values[":due"] = it[table.AttrDue]
	_, _, err := rn.Table.UpdateIf(ctx, table.InstanceIDOf(it), &dynamodb.UpdateItemInput{
		Key:                       table.KeyOf(it),
		UpdateExpression:          &update,
		ConditionExpression:       aws.String("due = :due AND attribute_not_exists(deleting)"),
		ExpressionAttributeValues: values,
	})
	return err
}
