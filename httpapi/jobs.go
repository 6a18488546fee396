package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/provider"
)

// NewJob returns the response for a job.
func NewJob(j admin.Job) Job {
	return Job{
		JobID: j.ID, Operation: j.Operation, Filter: j.Filter, Force: j.Force, Message: j.Message,
		RequestedBy: j.RequestedBy, State: j.State, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
		Matched: j.Matched, Done: j.Done, Skipped: j.Skipped, Failed: j.Failed, Errors: append([]string{}, j.Errors...),
	}
}

// NewJobs returns the response for a list of jobs.
func NewJobs(jobs []admin.Job) Jobs {
	all := Jobs{Items: []Job{}}
	for _, j := range jobs {
		all.Items = append(all.Items, NewJob(j))
	}
	return all
}

// start starts a job, or responds with a preview.
func (j jobs) start(c *call) error {
	b, dryRun, err := readBulk(c)
	if err != nil {
		return err
	}
	if dryRun {
		p, err := j.admin.PreviewJob(c.ctx(), b)
		if err != nil {
			return err
		}
		return c.reply(http.StatusOK, p)
	}
	var opts []admin.StartJobOption
	key, given, err := c.idempotencyKey()
	if err != nil {
		return err
	}
	if given {
		opts = append(opts, admin.WithJobKey(key))
	}
	job, err := j.admin.StartJob(c.ctx(), b, opts...)
	if err != nil {
		return err
	}
	c.audit(job.ID, string(job.Operation))
	c.w.Header().Set("Location", "/v1/jobs/"+job.ID)
	return c.reply(http.StatusAccepted, NewJob(job))
}

func readBulk(c *call) (b admin.JobRequest, dryRun bool, err error) {
	var filter json.RawMessage
	err = c.body(map[string]any{
		"operation": &b.Operation, "filter": &filter, fieldAll: &b.All, paramForce: &b.Force, fieldMessage: &b.Message,
		"dryRun": &dryRun,
	})
	if err != nil || len(filter) == 0 {
		return b, dryRun, err
	}
	f := &b.Filter
	var name, version, parent *string
	err = request.Object(filter, map[string]any{
		"name": &name, fieldVersion: &version, "parent": &parent, "statuses": &f.Statuses, fieldTags: &f.Tags,
		fieldStartedAfter: &f.StartedAfter, fieldStartedBefore: &f.StartedBefore, "updatedBefore": &f.UpdatedBefore,
	})
	if err == nil {
		err = errors.Join(selectBy("name", name, &f.Orchestration), selectBy(fieldVersion, version, &f.Version),
			selectBy("parent", parent, &f.ParentID))
	}
	for name, t := range map[string]time.Time{
		fieldStartedAfter: f.StartedAfter, fieldStartedBefore: f.StartedBefore, "updatedBefore": f.UpdatedBefore,
	} {
		if err == nil {
			err = request.CheckYear(name, t)
		}
	}
	return b, dryRun, err
}

// selectBy sets a field of a filter. It rejects an empty value, because a job without the filter would select more.
func selectBy(field string, given, into *string) error {
	switch {
	case given == nil:
		return nil
	case *given == "":
		return &provider.FieldError{Field: field, Problem: "must not be empty; omit it instead"}
	default:
		*into = *given
		return nil
	}
}

// noJob returns the problem of a job that does not exist.
func noJob(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return problem.ErrJobNotFound
	}
	return err
}

func (j jobs) list(c *call) error {
	jobs, err := client.Collect(j.admin.Jobs(c.ctx()))
	if err != nil {
		return err
	}
	resp := NewJobs(jobs)
	fit, err := response.Fitting(Jobs{Items: []Job{}, More: true}, resp.Items)
	if err != nil {
		return err
	}
	resp.More, resp.Items = fit < len(resp.Items), resp.Items[:fit]
	return c.reply(http.StatusOK, resp)
}

func (j jobs) get(c *call) error {
	id, err := request.ID(c.r, problem.FieldJobID, problem.FieldJobID)
	if err != nil {
		return err
	}
	job, err := j.admin.Job(c.ctx(), id)
	if err != nil {
		return noJob(err)
	}
	return c.reply(http.StatusOK, NewJob(job))
}

func (j jobs) cancel(c *call) error {
	id, err := request.ID(c.r, problem.FieldJobID, problem.FieldJobID)
	if err != nil {
		return err
	}
	job, err := j.admin.CancelJob(c.ctx(), id)
	if err != nil {
		return noJob(err)
	}
	c.audit(id, "")
	return c.reply(http.StatusOK, NewJob(job))
}
