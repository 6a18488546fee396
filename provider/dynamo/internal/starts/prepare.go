package starts

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/unwrap"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/instances"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Prepared is a start whose writes the caller commits in a transaction.
type Prepared struct {
	starts   *Starts
	instance provider.Instance
	writes   []types.TransactWriteItem
}

// TransactItems returns the writes of a prepared start, or nil if another provider has prepared it.
func TransactItems(s provider.PreparedStart) []types.TransactWriteItem {
	if p, ok := unwrap.As[*Prepared](s); ok {
		return p.writes
	}
	return nil
}

// Prepare implements provider.StartPreparer. The provider cannot determine when the caller commits the transaction, or
// whether Wake follows. The commit can be hours after the creation time in the item, when the sweeper has already
// searched that time. The item is therefore in the attention index from the beginning, and the first turn removes it
// from the index.
func (ss *Starts) Prepare(ctx context.Context, s provider.Start) (provider.PreparedStart, error) {
	b, err := ss.prepareInstance(ctx, &s)
	if err != nil {
		return nil, err
	}
	old, err := ss.Instances.GetRaw(ctx, s.InstanceID, provider.Strong)
	if err != nil {
		return nil, err
	}

	it, err := instances.Encode(b.Instance)
	if err != nil {
		return nil, err
	}
	it[table.AttrAttention] = table.Str(table.AttentionPending)
	checkAt := instances.FirstTurnAt(&b.Instance).Add(instances.MinWakeInterval)
	it[table.AttrUpdated] = table.Str(table.FormatTime(checkAt))

	put := &types.Put{Item: it}
	table.RequireAbsent(put)
	first := b.segment()
	if len(old) > 0 {
		if err := rejectionOf(old, &b.Instance); err != nil {
			return nil, err
		}
		instances.ReplaceTombstone(put, old)
		first.Watermark = instances.WatermarkOf(old)
	}

	writes, err := ss.creationWrites(put, &b.Instance, first)
	if err != nil {
		return nil, err
	}
	return &Prepared{
		starts:   ss,
		instance: b.Instance,
		writes:   ss.Table.SetTableName(writes),
	}, ss.sendStartTimer(ctx, &b.Instance)
}

// InstanceID implements provider.PreparedStart.
func (s *Prepared) InstanceID() string { return s.instance.InstanceID }

// Wake implements provider.PreparedStart.
func (s *Prepared) Wake(ctx context.Context) error {
	return s.starts.wake(ctx, &s.instance)
}

// StartError implements provider.PreparedStart.
func (s *Prepared) StartError(err error) error {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return nil
	}
	key := table.InstanceKey(s.instance.InstanceID)
	for _, reason := range cancelled.CancellationReasons {
		there := reason.Item
		mine := table.GetString(there, table.AttrPK) == table.GetString(key, table.AttrPK) &&
			table.GetString(there, table.AttrSK) == table.GetString(key, table.AttrSK)
		if mine && aws.ToString(reason.Code) == table.ConditionFailedCode {
			return s.startError(there)
		}
	}
	return nil
}

// startError returns the reason for which the existing item rejects the instance. A tombstone that does not reject it
// has changed since the start was prepared.
func (s *Prepared) startError(there table.Item) error {
	if err := rejectionOf(there, &s.instance); err != nil {
		return err
	}
	return fmt.Errorf("dynamo: instance %q: the instance was purged after the start was prepared: %w",
		s.instance.InstanceID, provider.ErrConflict)
}

// rejectionOf returns the reason for which an instance cannot replace an existing instance or tombstone, or nil if it
// can.
func rejectionOf(there table.Item, in *provider.Instance) error {
	switch {
	case instances.IsTombstone(there) && !instances.MustNotStart(there, in.StartID):
		return nil
	case table.GetString(there, table.AttrStartID) == in.StartID && !instances.IsTombstone(there) &&
		!instances.IsDeleting(there):
		return fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, provider.ErrAlreadyStarted)
	default:
		holder := instances.HolderOf(there)
		return fmt.Errorf(
			"dynamo: %w", provider.NewAlreadyExistsError(in.InstanceID, &holder, provider.ErrAlreadyExists),
		)
	}
}
