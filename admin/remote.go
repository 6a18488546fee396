package admin

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/apiclient"
	"github.com/perdure/perdure/internal/apiwire"
	"github.com/perdure/perdure/provider"
)

// remote carries out operations through the HTTP API.
type remote struct{ api *apiclient.Client }

const opGetInstance = "getInstance"

func (r *remote) estimateCost(ctx context.Context, instanceID string) (CostEstimate, error) {
	resp, err := apiclient.Get[struct {
		Cost *struct {
			CostEstimate

			Unread *apiwire.ReadError `json:"unread"`
		} `json:"cost"`
	}](ctx, r.api, apiclient.Call{
		Operation: opGetInstance, Path: []string{instanceID}, InstanceID: instanceID,
		Query: url.Values{"cost": {"true"}, "pending": {"false"}},
	})
	switch {
	case err != nil:
		return CostEstimate{}, err
	case resp.Cost == nil:
		return CostEstimate{}, apiclient.NewError(opGetInstance, instanceID, false, errors.New("response has no cost"))
	case resp.Cost.Unread != nil:
		u := resp.Cost.Unread
		return CostEstimate{}, apiclient.ErrorOf(
			instanceID, opGetInstance, u.Code, u.Detail, u.Retryable)
	}
	return resp.Cost.CostEstimate, nil
}

// jobRequest is the body of a start of a job.
type jobRequest struct {
	Operation provider.Operation `json:"operation"`
	Filter    *Filter            `json:"filter,omitempty"`
	All       bool               `json:"all,omitempty"`
	Force     bool               `json:"force,omitempty"`
	Message   string             `json:"message,omitempty"`
	DryRun    bool               `json:"dryRun,omitempty"`
}

func newJobRequest(r *JobRequest, dryRun bool) jobRequest {
	b := jobRequest{Operation: r.Operation, All: r.All, Force: r.Force, Message: r.Message, DryRun: dryRun}
	if !isEmpty(&r.Filter) {
		b.Filter = &r.Filter
	}
	return b
}

// jobOf returns the job of a response.
func jobOf(j *apiwire.Job) Job {
	return Job{
		ID: j.JobID, Operation: j.Operation, Filter: j.Filter, Force: j.Force, Message: j.Message,
		RequestedBy: j.RequestedBy, State: j.State, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
		Matched: j.Matched, Done: j.Done, Skipped: j.Skipped, Failed: j.Failed,
		Errors: slices.Clip(append([]string(nil), j.Errors...)),
	}
}

const opStartJob = "startJob"

// startJob generates a key, so that a lost response does not start two jobs.
func (r *remote) startJob(ctx context.Context, request *JobRequest, j *Job, key *string) error {
	generated := rand.Text()
	resp, err := apiclient.Get[apiwire.Job](ctx, r.api, apiclient.Call{
		Operation: opStartJob, Key: *cmp.Or(key, &generated), KeyIsOptional: key == nil,
		Body: newJobRequest(request, false),
	})
	if err != nil {
		return err
	}
	*j = jobOf(&resp)
	return nil
}

func (r *remote) previewJob(ctx context.Context, request *JobRequest, _ *Job) (JobPreview, error) {
	// a dry run changes nothing, and needs the key only to be repeated
	return apiclient.Get[JobPreview](ctx, r.api, apiclient.Call{
		Operation: opStartJob, Key: rand.Text(), KeyIsOptional: true, Body: newJobRequest(request, true),
	})
}

func (r *remote) listJobs(ctx context.Context) (jobs []Job, err error) {
	const operation = "listJobs"
	resp, err := apiclient.Get[apiwire.Jobs](ctx, r.api, apiclient.Call{Operation: operation})
	for i := range resp.Items {
		jobs = append(jobs, jobOf(&resp.Items[i]))
	}
	if err == nil && resp.More {
		err = apiclient.NewError(operation, "", false, errors.New("older jobs do not fit into the response"))
	}
	return jobs, err
}

func (r *remote) readJob(ctx context.Context, id string) (Job, error) {
	j, err := apiclient.Get[apiwire.Job](ctx, r.api, apiclient.Call{Operation: "getJob", Path: []string{id}})
	return jobOf(&j), err
}

func (r *remote) cancelJob(ctx context.Context, id string) (Job, error) {
	j, err := apiclient.Get[apiwire.Job](ctx, r.api, apiclient.Call{Operation: "cancelJob", Path: []string{id}})
	return jobOf(&j), err
}

func (r *remote) listQueues(ctx context.Context) ([]Queue, error) {
	resp, err := apiclient.Get[struct {
		Queues []Queue `json:"queues"`
	}](ctx, r.api, apiclient.Call{Operation: "listQueues"})
	return resp.Queues, err
}

func (r *remote) countDeadLetters(ctx context.Context) ([]DeadLetterCount, error) {
	resp, err := apiclient.Get[struct {
		Queues []DeadLetterCount `json:"queues"`
	}](ctx, r.api, apiclient.Call{Operation: "countDeadLetters"})
	return resp.Queues, err
}

// queues returns the queues of a query.
func (r *remote) queues(ctx context.Context, q *DeadLetterQuery) (names []string, err error) {
	if q.Queue != "" {
		return []string{q.Queue}, nil
	}
	counts, err := r.countDeadLetters(ctx)
	for _, c := range counts {
		names = append(names, c.Queue)
	}
	return names, err
}

// deadLetter is a dead letter in a response.
type deadLetter struct {
	apiwire.DeadLetter

	Body json.RawMessage `json:"body"`
}

func (d *deadLetter) public() DeadLetter {
	letter := DeadLetter{Queue: d.Queue, Reason: d.Reason, SentAt: d.SentAt, Subject: d.Subject}
	letter.Record.ID, letter.Record.ReceiveCount, letter.Record.Body = d.ID, d.Deliveries, string(d.Body)
	var text string
	if json.Unmarshal(d.Body, &text) == nil { // a body that is not JSON
		letter.Record.Body = text
	}
	return letter
}

func (r *remote) deadLetters(ctx context.Context, q DeadLetterQuery, limit int) (list DeadLetterList, err error) {
	names, err := r.queues(ctx, &q)
	if err != nil {
		return list, err
	}
	list.Complete = true
	for _, queue := range names {
		if len(list.Items) == limit {
			list.Complete = false
			break
		}
		if err := r.addDeadLetters(ctx, queue, &q, limit, &list); err != nil {
			return DeadLetterList{}, err
		}
	}
	if len(q.IDs) > 0 {
		list.Complete = len(list.Items) == len(q.IDs)
	}
	return list, nil
}

// deadLettersByID returns the visible dead letters of a queue that have one of the IDs and are not in the list.
func (r *remote) deadLettersByID(
	ctx context.Context, queue string, ids []string, list *DeadLetterList,
) (found []deadLetter, err error) {
	for _, id := range ids {
		if slices.ContainsFunc(list.Items, func(d DeadLetter) bool { return d.Record.ID == id }) {
			continue // it is in another queue
		}
		d, err := apiclient.Get[deadLetter](ctx, r.api, apiclient.Call{
			Operation: "getDeadLetter", Path: []string{queue, id}, Final: []string{apiwire.CodeDeadLetterNotFound},
		})
		switch {
		case errors.Is(err, provider.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			found = append(found, d)
		}
	}
	return found, nil
}

// matchingDeadLetters returns dead letters of a queue that match a query. complete is false if there may be more.
func (r *remote) matchingDeadLetters(
	ctx context.Context, queue string, q *DeadLetterQuery, limit int,
) (found []deadLetter, complete bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(limit)}}
	for name, value := range map[string]string{"reason": q.ReasonPrefix, "instance": q.InstanceID} {
		if value != "" {
			query.Set(name, value)
		}
	}
	resp, err := apiclient.Get[struct {
		Items    []deadLetter `json:"items"`
		Complete bool         `json:"complete"`
	}](ctx, r.api, apiclient.Call{Operation: "listDeadLetters", Path: []string{queue}, Query: query})
	return resp.Items, resp.Complete, err
}

// addDeadLetters adds the dead letters of a queue to a list.
func (r *remote) addDeadLetters(
	ctx context.Context, queue string, q *DeadLetterQuery, limit int, list *DeadLetterList,
) error {
	var found []deadLetter
	var err error
	complete := true
	if len(q.IDs) > 0 {
		found, err = r.deadLettersByID(ctx, queue, q.IDs, list)
	} else {
		found, complete, err = r.matchingDeadLetters(ctx, queue, q, limit)
	}
	if err != nil {
		return err
	}
	list.Complete = list.Complete && complete
	for i := range found {
		letter := found[i].public()
		if !q.SentBefore.IsZero() && letter.SentAt.After(q.SentBefore) || !matches(q, &letter) {
			continue
		}
		if len(list.Items) == limit {
			list.Complete = false
			break
		}
		list.Items = append(list.Items, letter)
	}
	return nil
}

// matches reports whether a dead letter that was read by its ID has the other properties of a query.
func matches(q *DeadLetterQuery, d *DeadLetter) bool {
	return strings.HasPrefix(d.Reason, q.ReasonPrefix) &&
		(q.InstanceID == "" || d.Subject.InstanceID == q.InstanceID)
}

// deadLetterSelection is the body of a redrive or drop.
type deadLetterSelection struct {
	IDs        []string   `json:"ids,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	InstanceID string     `json:"instanceId,omitempty"`
	SentBefore *time.Time `json:"sentBefore,omitempty"`
	All        bool       `json:"all,omitempty"`
	Force      bool       `json:"force,omitempty"`
}

func (r *remote) redriveDeadLetters(
	ctx context.Context, q DeadLetterQuery, force bool,
) (DeadLetterResult, error) {
	return r.processDeadLetters(ctx, &q, "redriveDeadLetters", force)
}

func (r *remote) dropDeadLetters(ctx context.Context, q DeadLetterQuery) (DeadLetterResult, error) {
	return r.processDeadLetters(ctx, &q, "dropDeadLetters", false)
}

// maxIDs is the maximum number of IDs of a request.
const maxIDs = 1000

// processDeadLetters redrives or drops dead letters. Each request of the API searches for a limited time, so that it is
// repeated while it makes progress.
func (r *remote) processDeadLetters(
	ctx context.Context, q *DeadLetterQuery, operation string, force bool,
) (total DeadLetterResult, err error) {
	names, err := r.queues(ctx, q)
	if err != nil {
		return total, err
	}
	var deadline time.Time
	if q.TimeLimit > 0 {
		deadline = r.api.Now().Add(q.TimeLimit)
	}
	total.Complete = true
	for _, queue := range names {
		s := deadLetterSelection{Reason: q.ReasonPrefix, InstanceID: q.InstanceID, Force: force}
		if !q.SentBefore.IsZero() {
			at := q.SentBefore.UTC()
			s.SentBefore = &at
		}
		s.All = len(q.IDs) == 0 && s.Reason == "" && s.InstanceID == ""
		if len(q.IDs) == 0 {
			err = errors.Join(err, r.processQueue(ctx, operation, queue, &s, deadline, &total))
		}
		for ids := range slices.Chunk(q.IDs, maxIDs) {
			s.IDs = ids
			err = errors.Join(err, r.processQueue(ctx, operation, queue, &s, deadline, &total))
		}
	}
	return total, err
}

// processQueue adds the results for a queue to the total.
func (r *remote) processQueue(
	ctx context.Context, operation, queue string, s *deadLetterSelection, deadline time.Time, total *DeadLetterResult,
) error {
	for {
		resp, err := apiclient.Get[apiwire.DeadLetterResult](ctx, r.api, apiclient.Call{
			Operation: operation, Path: []string{queue}, Body: s,
		})
		if err != nil {
			total.Complete = false
			return err
		}
		total.Done += resp.Done
		total.Skipped += resp.Skipped
		total.TooRecent += resp.TooRecent
		total.Failed += resp.Failed
		total.SentNotDeleted = append(total.SentNotDeleted, resp.SentNotDeleted...)
		var failed []error
		for _, text := range resp.Errors {
			failed = append(failed, apiclient.NewError(operation, "", false, errors.New(text)))
		}
		expired := !deadline.IsZero() && !r.api.Now().Before(deadline)
		if resp.Complete || resp.Done == 0 || len(failed) > 0 || expired || ctx.Err() != nil {
			total.Complete = total.Complete && resp.Complete
			return errors.Join(failed...)
		}
	}
}
