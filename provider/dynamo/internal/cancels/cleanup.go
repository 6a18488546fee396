package cancels

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// DeleteUncommitted deletes cancel decisions of turns that an execution's history does not contain. In a table that was
// copied item by item, the cancel decisions of a turn can exist without its segment. Workers would then skip these
// activities, and no turn would record their cancellation.
func (cs *Store) DeleteUncommitted(ctx context.Context, o *provider.Orchestration, settled func(int64) bool) error {
	if !awaitsActivity(o, settled) {
		return nil
	}
	in := table.RangeQuery(
		table.ExecutionPK(o.Head.ExecutionID), table.CancelDecisionsSK(o.Head.Segment+1), table.SKCancelDecisions+"~",
		provider.Strong,
	)
	in.ProjectionExpression = aws.String(table.AttrPK + ", " + table.AttrSK)
	items, err := cs.table.QueryAll(ctx, o.InstanceID, in)
	if err != nil {
		return err
	}

	of := map[int64][]table.Item{}
	for _, it := range items {
		sequence := table.SequenceOf(it, table.SKCancelDecisions)
		of[sequence] = append(of[sequence], it)
	}
	for sequence, record := range of {
		if err := cs.deleteTurn(ctx, o, sequence, record); err != nil {
			return err
		}
	}
	return nil
}

// deleteTurn deletes the cancel decisions of a turn, unless the turn has been committed.
func (cs *Store) deleteTurn(ctx context.Context, o *provider.Orchestration, sequence int64, record []table.Item) error {
	key := func(sk string) table.Item {
		return table.ExecutionKey(o.Head.ExecutionID, sk)
	}
	writes := []types.TransactWriteItem{ // the first one deletes nothing and is only the condition
		{
			Delete: &types.Delete{
				Key:                 key(table.SegmentSK(sequence, 0)),
				ConditionExpression: aws.String(table.NotExists),
			},
		},
		{Delete: &types.Delete{Key: key(table.CancelBlockSK(sequence))}},
	}
	for _, it := range record {
		writes = append(
			writes, types.TransactWriteItem{Delete: &types.Delete{Key: key(table.GetString(it, table.AttrSK))}},
		)
	}
	if err := cs.table.Transact(ctx, o.InstanceID, writes); err != nil && !table.ConditionFailed(err) {
		return err
	}
	return nil
}

// awaitsActivity reports whether an execution waits for an activity.
func awaitsActivity(o *provider.Orchestration, settled func(int64) bool) bool {
	for i := range o.Segments {
		for j := range o.Segments[i].Events {
			if e := &o.Segments[i].Events[j]; e.Kind == history.ActivityScheduled && !settled(e.ID) {
				return true
			}
		}
	}
	return false
}
