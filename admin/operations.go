package admin

import "context"

// operations is a hub as a Client uses it. local implements it with a provider, and remote with the HTTP API. The
// methods of Client check the input, and name the call in errors.
type operations interface {
	estimateCost(ctx context.Context, instanceID string) (CostEstimate, error)

	// startJob starts the job of a request, and replaces j by the job that was started.
	startJob(ctx context.Context, r *JobRequest, j *Job, key *string) error
	previewJob(ctx context.Context, r *JobRequest, j *Job) (JobPreview, error)
	listJobs(ctx context.Context) ([]Job, error)
	readJob(ctx context.Context, id string) (Job, error)
	cancelJob(ctx context.Context, id string) (Job, error)

	listQueues(ctx context.Context) ([]Queue, error)

	countDeadLetters(ctx context.Context) ([]DeadLetterCount, error)
	deadLetters(ctx context.Context, q DeadLetterQuery, limit int) (DeadLetterList, error)
	redriveDeadLetters(ctx context.Context, q DeadLetterQuery, force bool) (DeadLetterResult, error)
	dropDeadLetters(ctx context.Context, q DeadLetterQuery) (DeadLetterResult, error)
}

// local carries out operations on a provider.
type local struct{ *Client }

func (l local) listJobs(ctx context.Context) ([]Job, error) { return l.hub.ListJobs(ctx) }

func (l local) readJob(ctx context.Context, id string) (Job, error) { return l.hub.ReadJob(ctx, id) }
