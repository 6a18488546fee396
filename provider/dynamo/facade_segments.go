package dynamo

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// ReadDocument implements provider.Orchestrations.
func (p *Provider) ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error) {
	return p.documents.ReadDocument(ctx, instanceID, ref)
}

// ReadWorkItem implements provider.WorkItems.
func (p *Provider) ReadWorkItem(ctx context.Context, instanceID, executionID string, segment, activityID int64) (provider.WorkItem, error) {
	return p.workItems.ReadWorkItem(ctx, instanceID, executionID, segment, activityID)
}

// ReadOrchestration implements provider.Orchestrations.
func (p *Provider) ReadOrchestration(ctx context.Context, it *provider.OrchestrationItem, c provider.Consistency) (*provider.Orchestration, error) {
	return p.segments.ReadOrchestration(ctx, it, c)
}

// ReadHistory implements provider.Instances.
func (p *Provider) ReadHistory(ctx context.Context, instanceID, executionID string, after int64) iter.Seq2[history.Event, error] {
	return p.segments.ReadHistory(ctx, instanceID, executionID, after)
}

// ListExecutions implements provider.Instances.
func (p *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return p.segments.ListExecutions(ctx, instanceID)
}

// ReadTerminalEvent implements provider.Instances.
func (p *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	return p.segments.ReadTerminalEvent(ctx, executionID)
}

// ReadSettled implements provider.WorkItems.
func (p *Provider) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	return p.segments.ReadSettled(ctx, executionID, from)
}
