// Package retention deletes ended instances and past executions whose retention has passed.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/deletion"
	"github.com/perdure/perdure/provider/dynamo/internal/erasure"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/segments"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Stores are the stores that Retention reads and writes.
type Stores struct {
	Table     *table.Table
	Instances *instances.Store
	Segments  *segments.Store
	Eraser    *erasure.Eraser
	Deleter   *deletion.Deleter
}

// Retention applies the retention of instances. It is safe for concurrent use.
type Retention struct {
	Stores

	now func() time.Time
	log *slog.Logger
}

// New returns the retention of a hub.
func New(s Stores, now func() time.Time, log *slog.Logger) *Retention {
	return &Retention{Stores: s, now: now, log: log}
}

// ApplyRetention deletes an ended instance or past executions of a running one, if their retention has passed.
func (rn *Retention) ApplyRetention(ctx context.Context, instanceID string) (provider.RetentionResult, error) {
	it, err := rn.Instances.Get(ctx, instanceID, provider.Strong)
	if err != nil {
		return provider.RetentionResult{}, deletion.IgnoreNotFound(err)
	}
	switch {
	case instances.IsDeleting(it) || !instances.IsDue(table.GetString(it, table.AttrDue), rn.now()):
		return provider.RetentionResult{}, nil // another process deletes the instance, or the index is stale
	case provider.RuntimeStatus(table.GetString(it, table.AttrStatus)).Terminal():
		if err := rn.Deleter.DeleteEnded(ctx, it); err != nil {
			return provider.RetentionResult{}, rn.postpone(ctx, it,
				fmt.Errorf("dynamo: instance %q: delete after retention: %w", instanceID, err))
		}
		return provider.RetentionResult{Instance: true}, nil
	default:
		n, err := rn.erasePast(ctx, it)
		if err != nil {
			err = rn.postpone(ctx, it, fmt.Errorf("dynamo: instance %q: past executions: %w", instanceID, err))
		}
		return provider.RetentionResult{Executions: n}, err
	}
}

// postpone moves an instance whose deletion failed and should not be repeated soon to tomorrow. Searches would
// otherwise start at its due day each time. It returns the failure.
func (rn *Retention) postpone(ctx context.Context, it table.Item, failure error) error {
	if e, ok := errors.AsType[*provider.Error](failure); ok && e.Retryable || ctx.Err() != nil {
		return failure
	}
	tomorrow := instances.DueKey(table.InstanceIDOf(it), rn.now().Add(time.Second))
	return errors.Join(failure, rn.setDue(ctx, it, "SET due = :again", table.Item{":again": table.Str(tomorrow)}))
}
