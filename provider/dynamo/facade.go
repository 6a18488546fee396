package dynamo

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/identity"
	"github.com/perdure/perdure/provider/dynamo/internal/starts"
)

// Provider implements provider.Provider with DynamoDB and SQS, and the optional interfaces DeadLetters, Poller,
// Querier, Reconciler, StartPreparer and PayloadStoreProvider. It is safe for concurrent use. Its only state is caches
// of builds, keys and segments.
type Provider struct {
	stores

	hub    HubConfig
	caller *identity.Caller
}

var (
	_ provider.Provider             = (*Provider)(nil)
	_ provider.DeadLetters          = (*Provider)(nil)
	_ provider.Poller               = (*Provider)(nil)
	_ provider.Querier              = (*Provider)(nil)
	_ provider.Reconciler           = (*Provider)(nil)
	_ provider.StartPreparer        = (*Provider)(nil)
	_ provider.PayloadStoreProvider = (*Provider)(nil)
)

// New returns a provider for a hub. It makes no calls. It returns an error if the hub or the clients are incomplete.
func New(hub HubConfig, clients Clients, opts ...Option) (*Provider, error) {
	if err := hub.validate(); err != nil {
		return nil, err
	}
	s := defaults()
	for _, opt := range opts {
		opt(&s)
	}
	if hub.PayloadBucket != "" && clients.Bucket == nil {
		return nil, fmt.Errorf("dynamo: hub %q has the payload store %s, but there is no S3 client", hub.Name,
			hub.PayloadBucket)
	}
	p := &Provider{stores: newStores(&hub, adapt(clients), &s), hub: hub, caller: identity.New(s.Now, s.Log)}
	if err := p.timers.CheckTiming(); err != nil {
		return nil, fmt.Errorf("dynamo: hub %q: %w", hub.Name, err)
	}
	return p, nil
}

// Config returns the names and URLs of the hub's resources.
func (p *Provider) Config() HubConfig { return p.hub }

// Caller returns the ARN of the provider's credentials, for a provider from Open. It calls STS once, with a time limit
// of two seconds and without a required permission. It returns an empty string if the identity is unknown. Other calls
// do not fail because the identity is unknown.
func (p *Provider) Caller(ctx context.Context) string { return p.caller.Name(ctx) }

// Payloads implements provider.PayloadStoreProvider.
func (p *Provider) Payloads() provider.PayloadStore {
	if p.payloads == nil {
		return nil
	}
	return p.payloads
}

// SweepPayloads implements provider.PayloadStoreProvider.
func (p *Provider) SweepPayloads(ctx context.Context, after string) (next string, deleted int, err error) {
	return p.payloads.Sweep(ctx, after, p.segments.Exists)
}

// PutBuild implements provider.Provider.
func (p *Provider) PutBuild(ctx context.Context, b provider.Build) error {
	return p.builds.PutBuild(ctx, b)
}

// ReadBuild implements provider.Provider.
func (p *Provider) ReadBuild(ctx context.Context, id string) (provider.Build, error) {
	return p.builds.ReadBuild(ctx, id)
}

// LatestBuild reads the build that reported last, which is the deployed one. It returns provider.ErrNotFound if no
// build has reported.
func (p *Provider) LatestBuild(ctx context.Context) (provider.Build, error) {
	return p.builds.LatestBuild(ctx)
}

// TransactItems returns the two writes of a start that client.PrepareStart prepared. Add them to the TransactItems of
// your TransactWriteItems call, in the hub's account and region. AWS allows 100 items and 4 MB per transaction. The
// caller requires dynamodb:PutItem on the hub's table.
//
// It returns nil for a start of another provider. A wrapper of a PreparedStart must have the method Unwrap()
// provider.PreparedStart.
func TransactItems(s provider.PreparedStart) []types.TransactWriteItem {
	return starts.TransactItems(s)
}

// ReadCancels implements provider.Provider.
func (p *Provider) ReadCancels(
	ctx context.Context, executionID string, from int64,
) (cancels provider.Cancels, next int64, err error) {
	return p.cancels.ReadCancels(ctx, executionID, from)
}

// PollCancels implements provider.Provider.
func (p *Provider) PollCancels(
	ctx context.Context, executionID string, from int64,
) (cancels provider.Cancels, next int64, err error) {
	return p.cancels.PollCancels(ctx, executionID, from)
}

// TerminateCorrupt implements provider.Provider.
func (p *Provider) TerminateCorrupt(ctx context.Context, m *provider.InboxMessage) error {
	return p.deletion.TerminateCorrupt(ctx, m)
}

// DeleteInstance implements provider.Provider.
func (p *Provider) DeleteInstance(ctx context.Context, instanceID string, force bool) error {
	return p.deletion.DeleteInstance(ctx, instanceID, force)
}

// DeleteIncarnation implements provider.Provider.
func (p *Provider) DeleteIncarnation(ctx context.Context, instanceID, startID string, force bool) error {
	return p.deletion.DeleteIncarnation(ctx, instanceID, startID, force)
}

// Annotate implements provider.Provider.
func (p *Provider) Annotate(ctx context.Context, instanceID string, n provider.Note) error {
	return p.instances.Annotate(ctx, instanceID, n)
}

// EnqueueForOrchestrator implements provider.Provider.
func (p *Provider) EnqueueForOrchestrator(ctx context.Context, ms ...provider.Message) error {
	return p.inbox.Send(ctx, ms...)
}

// DecodeOrchestrationItems implements provider.Provider.
func (p *Provider) DecodeOrchestrationItems(
	records []provider.Record,
) (items []*provider.OrchestrationItem, unreadable []provider.Unreadable) {
	return p.inbox.Decode(records)
}

// ReadInterruption implements provider.Provider.
func (p *Provider) ReadInterruption(ctx context.Context, instanceID string) (at time.Time, err error) {
	return p.inbox.ReadInterruption(ctx, instanceID)
}

// ReadInstance implements provider.Provider.
func (p *Provider) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	return p.instances.ReadInstance(ctx, instanceID)
}

// BlockInstance implements provider.Provider.
func (p *Provider) BlockInstance(
	ctx context.Context, instanceID, executionID, buildID string, why *history.Failure,
) error {
	return p.instances.BlockInstance(ctx, instanceID, executionID, buildID, why)
}

// UnblockInstance implements provider.Provider.
func (p *Provider) UnblockInstance(ctx context.Context, instanceID, executionID string) error {
	return p.instances.UnblockInstance(ctx, instanceID, executionID)
}

// AckOrchestrationItem implements provider.Provider.
func (p *Provider) AckOrchestrationItem(ctx context.Context, t *provider.Turn) ([]provider.OutputFailure, error) {
	return p.outbox.Ack(ctx, t)
}

// RedispatchOrchestration implements provider.Provider.
func (p *Provider) RedispatchOrchestration(
	ctx context.Context, o *provider.Orchestration, since provider.RedispatchFrom,
) ([]provider.OutputFailure, error) {
	return p.outbox.Redispatch(ctx, o, since)
}

// PutWorkItems implements provider.Provider.
func (p *Provider) PutWorkItems(ctx context.Context, items ...provider.WorkItem) error {
	return p.outbox.PutWorkItems(ctx, items...)
}

// RefreshStatus implements provider.Provider.
func (p *Provider) RefreshStatus(ctx context.Context, wake *provider.Message) error {
	return p.outbox.RefreshStatus(ctx, wake)
}

// PurgeQueues implements provider.Reconciler.
func (p *Provider) PurgeQueues(
	ctx context.Context, progress func(provider.QueuePurgeResult),
) (provider.QueuePurgeResult, error) {
	return p.reconcile.PurgeQueues(ctx, progress)
}

// ReconcileInstance implements provider.Reconciler.
func (p *Provider) ReconcileInstance(
	ctx context.Context, instanceID string, r provider.ReconcileOptions,
) (out provider.ReconcileResult, err error) {
	return p.reconcile.Reconcile(ctx, instanceID, r)
}

// ReadRejectedEvents implements provider.Provider.
func (p *Provider) ReadRejectedEvents(ctx context.Context, instanceID string) (provider.RejectedEvents, error) {
	return p.rejections.ReadRejectedEvents(ctx, instanceID)
}

// RejectEvents implements provider.Provider.
func (p *Provider) RejectEvents(ctx context.Context, over string, ms ...*provider.InboxMessage) error {
	return p.rejections.RejectEvents(ctx, over, ms...)
}

// RejectStart implements provider.Provider.
func (p *Provider) RejectStart(ctx context.Context, m *provider.InboxMessage) error {
	return p.rejections.RejectStart(ctx, m)
}

// RejectCancel implements provider.Provider.
func (p *Provider) RejectCancel(ctx context.Context, m *provider.InboxMessage) error {
	return p.rejections.RejectCancel(ctx, m)
}

// ApplyRetention implements provider.Provider.
func (p *Provider) ApplyRetention(ctx context.Context, instanceID string) (provider.RetentionResult, error) {
	return p.retention.ApplyRetention(ctx, instanceID)
}

// PutPendingAttempts implements provider.Provider.
func (p *Provider) PutPendingAttempts(
	ctx context.Context, instanceID string, head provider.Head, keeps ...provider.PendingAttemptUpdate,
) error {
	return p.retries.PutPendingAttempts(ctx, instanceID, head, keeps...)
}

// RetryActivities implements provider.Provider.
func (p *Provider) RetryActivities(ctx context.Context, r *provider.RetryRequest) (provider.RetryResult, error) {
	return p.retries.RetryActivities(ctx, r)
}

// ReadWorkItem implements provider.Provider.
func (p *Provider) ReadWorkItem(
	ctx context.Context, instanceID, executionID string, segment, activityID int64,
) (provider.WorkItem, error) {
	return p.workItems.ReadWorkItem(ctx, instanceID, executionID, segment, activityID)
}

// ReadOrchestration implements provider.Provider.
func (p *Provider) ReadOrchestration(
	ctx context.Context, it *provider.OrchestrationItem, c provider.Consistency,
) (*provider.Orchestration, error) {
	return p.segments.ReadOrchestration(ctx, it, c)
}

// ReadHistory implements provider.Provider.
func (p *Provider) ReadHistory(
	ctx context.Context, instanceID, executionID string, after int64,
) iter.Seq2[history.Event, error] {
	return p.segments.ReadHistory(ctx, instanceID, executionID, after)
}

// ReadTail implements client.TailReader.
func (p *Provider) ReadTail(
	ctx context.Context, instanceID, executionID string, at *provider.Tail,
) iter.Seq2[history.Event, error] {
	return p.segments.ReadTail(ctx, instanceID, executionID, at)
}

// ListExecutions implements provider.Provider.
func (p *Provider) ListExecutions(ctx context.Context, instanceID string) iter.Seq2[provider.Execution, error] {
	return p.segments.ListExecutions(ctx, instanceID)
}

// ReadTerminalEvent implements provider.Provider.
func (p *Provider) ReadTerminalEvent(ctx context.Context, executionID string) (history.Event, error) {
	return p.segments.ReadTerminalEvent(ctx, executionID)
}

// ReadSettled implements provider.Provider.
func (p *Provider) ReadSettled(ctx context.Context, executionID string, from int64) (provider.Settlements, error) {
	return p.segments.ReadSettled(ctx, executionID, from)
}

// DeadLetter implements provider.Provider.
func (p *Provider) DeadLetter(ctx context.Context, queue string, u provider.Unreadable) error {
	return p.queue.Dead().Put(ctx, queue, u)
}

// FetchRecords implements provider.Poller.
func (p *Provider) FetchRecords(ctx context.Context, queue string) ([]provider.Record, error) {
	return p.queue.FetchRecords(ctx, queue)
}

// RenewRecords implements provider.Poller.
func (p *Provider) RenewRecords(
	ctx context.Context, queue string, lock time.Duration, records ...provider.Record,
) (lost []provider.Record, err error) {
	return p.queue.RenewRecords(ctx, queue, lock, records...)
}

// DeleteRecords implements provider.Provider.
func (p *Provider) DeleteRecords(ctx context.Context, queue string, records ...provider.Record) error {
	return p.queue.DeleteRecords(ctx, queue, records...)
}

// AbandonRecords implements provider.Provider.
func (p *Provider) AbandonRecords(
	ctx context.Context, queue string, delay time.Duration, records ...provider.Record,
) error {
	return p.queue.AbandonRecords(ctx, queue, delay, records...)
}

// CountWorkItems implements provider.Provider.
func (p *Provider) CountWorkItems(ctx context.Context) (map[string]int, error) {
	return p.queue.CountWorkItems(ctx)
}

// DeadLetterQueues implements provider.DeadLetters.
func (p *Provider) DeadLetterQueues() []string {
	return p.queue.Dead().Names()
}

// CountDeadLetters implements provider.DeadLetters.
func (p *Provider) CountDeadLetters(ctx context.Context, queue string) (visible, hidden int, err error) {
	return p.queue.Dead().Count(ctx, queue)
}

// StartOrchestration implements provider.Provider.
func (p *Provider) StartOrchestration(ctx context.Context, s provider.Start) (provider.Instance, error) {
	return p.starts.Start(ctx, s)
}

// CreateOrchestration implements provider.Provider.
func (p *Provider) CreateOrchestration(ctx context.Context, m *provider.InboxMessage) (*provider.Orchestration, error) {
	return p.starts.Create(ctx, m)
}

// PrepareStart implements provider.StartPreparer.
func (p *Provider) PrepareStart(ctx context.Context, s provider.Start) (provider.PreparedStart, error) {
	return p.starts.Prepare(ctx, s)
}

// DecodeTimers implements provider.Provider.
func (p *Provider) DecodeTimers(
	records []provider.Record,
) (timers []provider.LockedTimer, unreadable []provider.Unreadable) {
	return p.timers.Decode(records)
}

// HoldTimers implements provider.Provider.
func (p *Provider) HoldTimers(ctx context.Context, timers ...provider.Timer) error {
	return p.timers.Hold(ctx, timers...)
}

// VerifyWorkItemToken implements provider.Provider.
func (p *Provider) VerifyWorkItemToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return p.tokens.VerifyWorkItemToken(ctx, token)
}

// CompletionTokens implements provider.Provider.
func (p *Provider) CompletionTokens(ctx context.Context) (provider.CompletionSigner, error) {
	signer, err := p.tokens.Signer(ctx)
	if err != nil {
		return nil, err
	}
	return signer, nil
}

// VerifyCompletionToken implements provider.Provider.
func (p *Provider) VerifyCompletionToken(ctx context.Context, token string) (provider.WorkItem, error) {
	return p.tokens.VerifyCompletionToken(ctx, token)
}

// PutUpdateResults implements provider.Provider.
func (p *Provider) PutUpdateResults(ctx context.Context, results ...provider.UpdateResult) error {
	return p.updates.Put(ctx, results...)
}

// ReadUpdate implements provider.Provider.
func (p *Provider) ReadUpdate(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	return p.updates.Read(ctx, instanceID, updateID)
}

// RenewWorkItemLocks implements provider.Provider.
func (p *Provider) RenewWorkItemLocks(
	ctx context.Context, queue string, lock time.Duration, items ...provider.LockedWorkItem,
) ([]provider.Renewal, error) {
	return p.workQueues.RenewLocks(ctx, queue, lock, items...)
}

// DecodeWorkItems implements provider.Provider.
func (p *Provider) DecodeWorkItems(
	ctx context.Context, records []provider.Record,
) (items []provider.LockedWorkItem, unreadable []provider.Unreadable) {
	return p.workQueues.Decode(ctx, records)
}

// AckWorkItems implements provider.Provider.
func (p *Provider) AckWorkItems(
	ctx context.Context, queue string, done []provider.CompletedWorkItem,
) ([]provider.Record, error) {
	return p.workQueues.Complete(ctx, queue, done)
}
