package dynamo

import (
	"context"
	"iter"

	"github.com/perdure/perdure/provider"
)

// PutJob implements provider.Jobs.
func (p *Provider) PutJob(ctx context.Context, j *provider.Job) error {
	return p.hubItems.PutJob(ctx, j)
}

// ReadJob implements provider.Jobs.
func (p *Provider) ReadJob(ctx context.Context, id string) (provider.Job, error) {
	return p.hubItems.ReadJob(ctx, id)
}

// ListJobs implements provider.Jobs.
func (p *Provider) ListJobs(ctx context.Context) (jobs []provider.Job, err error) {
	return p.hubItems.ListJobs(ctx)
}

// PutScheduleEntry implements provider.Schedules.
func (p *Provider) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	return p.hubItems.PutScheduleEntry(ctx, s)
}

// DeleteScheduleEntry implements provider.Schedules.
func (p *Provider) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	return p.hubItems.DeleteScheduleEntry(ctx, s)
}

// ListSchedules implements provider.Schedules.
func (p *Provider) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	return p.hubItems.ListSchedules(ctx, after)
}

// ReportWorker implements provider.Workers.
func (p *Provider) ReportWorker(ctx context.Context, r provider.WorkerReport) error {
	return p.hubItems.ReportWorker(ctx, r)
}

// ReadWorkers implements provider.Workers.
func (p *Provider) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	return p.hubItems.ReadWorkers(ctx)
}
