package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// forgetUndecided deletes cancel decisions of turns that an execution's history does not contain. In a table that was
// copied item by item, the cancel decisions of a turn can exist without its segment. Workers would then skip these
// activities, and no turn would record their cancellation.
func (p *Provider) forgetUndecided(ctx context.Context, o *provider.Orchestration, settled func(int64) bool) error {
	if !awaitsActivity(o, settled) {
		return nil
	}
	in := p.between(o.Head.ExecutionID, decidedSK(o.Head.Segment+1), skDecided+"~")
	in.ProjectionExpression = aws.String(attrPK + ", " + attrSK)
	items, err := p.queryAll(ctx, o.InstanceID, in)
	if err != nil {
		return err
	}

	of := map[int64][]item{}
	for _, it := range items {
		sequence := sequenceOf(it, skDecided)
		of[sequence] = append(of[sequence], it)
	}
	for sequence, record := range of {
		if err := p.forgetRecord(ctx, o, sequence, record); err != nil {
			return err
		}
	}
	return nil
}

// forgetRecord deletes the cancel decisions of a turn, unless the turn has been committed.
func (p *Provider) forgetRecord(ctx context.Context, o *provider.Orchestration, sequence int64, record []item) error {
	key := func(sk string) item { return item{attrPK: str(executionPK(o.Head.ExecutionID)), attrSK: str(sk)} }
	writes := []types.TransactWriteItem{ // the first one deletes nothing and is only the condition
		{Delete: &types.Delete{TableName: &p.hub.Table, Key: key(segmentSK(sequence, 0)), ConditionExpression: aws.String(notExists)}},
		{Delete: &types.Delete{TableName: &p.hub.Table, Key: key(blockSK(sequence))}},
	}
	for _, it := range record {
		writes = append(writes, types.TransactWriteItem{Delete: &types.Delete{TableName: &p.hub.Table, Key: key(getString(it, attrSK))}})
	}
	if err := p.transact(ctx, o.InstanceID, writes); err != nil && !conditionFailed(err) {
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
