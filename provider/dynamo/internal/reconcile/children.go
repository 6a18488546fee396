package reconcile

import (
	"context"
	"errors"
	"sync"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/outbox"
	"github.com/perdure/perdure/provider/dynamo/internal/rejections"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// checkOldStarts checks the children of old starts. An existing child needs no action. A missing child may have been
// purged with an expired tombstone, so a new start could repeat ended work. checkOldStarts therefore makes the start
// impossible and notifies the parent. If another instance has the ID, checkOldStarts sends the start, which is rejected
// with a response.
func (rc *Reconciler) checkOldStarts(
	ctx context.Context, x outputs.Origin, u *outbox.SkippedOutputs, out *provider.ReconcileResult,
) error {
	var mu sync.Mutex
	return awscall.ForEach(len(u.OldStarts), func(i int) error {
		refused, lost, err := rc.checkOldStart(ctx, x, u.OldStarts[i])
		mu.Lock()
		defer mu.Unlock()
		if refused {
			delete(u.IDs, u.OldStarts[i].ID)
		}
		if lost {
			out.LostChildren++
			out.Sent++
		}
		return err
	})
}

func (rc *Reconciler) checkOldStart(
	ctx context.Context, x outputs.Origin, e *history.Event,
) (refused, lost bool, err error) {
	it, err := rc.Instances.GetRaw(ctx, e.InstanceID, provider.Strong)
	switch {
	case err != nil:
		return false, false, err
	case len(it) > 0 && !instances.IsTombstone(it):
		return table.GetString(it, table.AttrStartID) != e.StartID, false, nil
	case !instances.MustNotStart(it, e.StartID):
		err := rc.Rejections.PreventStart(ctx, &provider.Message{InstanceID: e.InstanceID, StartID: e.StartID})
		if errors.Is(err, provider.ErrConflict) {
			err = &provider.Error{Op: "DynamoDB.UpdateItem", InstanceID: e.InstanceID, Retryable: true, Err: err}
		}
		if err != nil {
			return false, false, err
		}
	}

	reply := outputs.ChildOutcome(
		e.InstanceID, &history.Parent{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID, EventID: e.ID},
	)
	reply.Error = rejections.LostOutcome(it, e.InstanceID, e.StartID)
	return false, true, rc.Inbox.Send(ctx, reply)
}
