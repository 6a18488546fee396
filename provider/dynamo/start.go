package dynamo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// StartOrchestration creates the instance item and h#0 in one transaction, then sends wake (R11). The wake may be lost with
// its sender: the watch finds the instance still pending.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	if err := p.builds.known(ctx, p, s.Name, s.Version); err != nil {
		p.poke(ctx)
		return provider.Instance{}, fmt.Errorf("dynamo: instance %q: %w", s.InstanceID, err)
	}
	now := p.now().UTC().Truncate(time.Millisecond)
	in := provider.Instance{
		InstanceID: s.InstanceID, ExecutionID: executionID(now, s.InstanceID, s.StartID), ExecutionNumber: 1, Name: s.Name, Version: s.Version,
		Status: provider.StatusPending, StartID: s.StartID, CreatedAt: now, UpdatedAt: now, Tags: s.Tags,
	}
	found, err := p.create(ctx, in, s.Input)
	if err != nil {
		return provider.Instance{}, err
	}
	wake := provider.Message{Kind: provider.MessageWake, InstanceID: found.InstanceID, ExecutionID: found.ExecutionID}
	return found, p.EnqueueForOrchestrator(ctx, wake)
}

// executionID is a ULID whose entropy derives from the start, so that two tries of one start differ in time alone (R10).
func executionID(now time.Time, instanceID, startID string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(instanceID), instanceID, startID))
	var id ulid.ULID
	// Neither fails: the year is below 10889, and the entropy has the right length.
	_ = id.SetTime(ulid.Timestamp(now))
	_ = id.SetEntropy(sum[:10])
	return id.String()
}

// create writes both items, or returns the instance that this very start created before.
func (p *Provider) create(ctx context.Context, in provider.Instance, input history.Payload) (provider.Instance, error) {
	it, err := instanceItem(in)
	if err != nil {
		return in, err
	}
	parts, err := encodeSegment(in.ExecutionID, rand.Text(), provider.Segment{Events: []history.Event{{
		ID: 1, Kind: history.OrchestrationStarted, Time: in.CreatedAt, Name: in.Name, Version: in.Version, Input: input,
		StartID: in.StartID, Number: in.ExecutionNumber, Tags: in.Tags,
	}}})
	if err != nil {
		return in, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, err)
	}
	writes := []types.TransactWriteItem{{Put: &types.Put{TableName: &p.hub.Table, Item: it}}}
	create(writes[0].Put)
	for _, part := range parts {
		writes = append(writes, types.TransactWriteItem{Put: &types.Put{TableName: &p.hub.Table, Item: part}})
	}
	err = p.transact(ctx, in.InstanceID, writes)
	if err == nil {
		return in, nil
	}
	old, refused := refusedItem(err, 0)
	switch {
	case !refused:
		return in, err
	case getString(old, "startId") == in.StartID:
		return decodeInstance(old)
	default:
		return in, fmt.Errorf("dynamo: instance %q: %w", in.InstanceID, provider.ErrAlreadyExists)
	}
}

// poke wakes no instance, but a function: one that was just deployed reports what it knows when it first runs. So a name
// that was refused for being newer than all reports is known moments later.
func (p *Provider) poke(ctx context.Context) {
	if !p.builds.mayPoke(p.now()) {
		return
	}
	if err := p.EnqueueForOrchestrator(ctx, provider.Message{Kind: provider.MessageWake, InstanceID: "perdure:report-build"}); err != nil {
		p.log.WarnContext(ctx, "the orchestrator could not be asked to report its build", "error", err)
	}
}
