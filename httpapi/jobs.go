package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/provider"
)

// Job is the state and progress of a bulk job.
type Job struct {
	JobID     string             `json:"jobId"`
	Operation provider.Operation `json:"operation"`
	Filter    admin.Filter       `json:"filter"`
	Force     bool               `json:"force"`
	Message   string             `json:"message,omitempty"`
	// RequestedBy is the caller that created the job. It is empty if unknown.
	RequestedBy string            `json:"requestedBy,omitempty"`
	State       provider.JobState `json:"state"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
	Matched     int64             `json:"matched"`
	Done        int64             `json:"done"`
	Skipped     int64             `json:"skipped"`
	Failed      int64             `json:"failed"`
	Errors      []string          `json:"errors"`
}

// NewJob returns the response for a job.
func NewJob(j admin.Job) Job {
	return Job{
		JobID: j.ID, Operation: j.Operation, Filter: j.Filter, Force: j.Force, Message: j.Message,
		RequestedBy: j.RequestedBy, State: j.State, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt,
		Matched: j.Matched, Done: j.Done, Skipped: j.Skipped, Failed: j.Failed, Errors: append([]string{}, j.Errors...),
	}
}

// Jobs is the list of a hub's jobs, newest first. More reports that older jobs did not fit into the response.
type Jobs struct {
	Items []Job `json:"items"`
	More  bool  `json:"more,omitempty"`
}

// NewJobs returns the response for a list of jobs.
func NewJobs(jobs []admin.Job) Jobs {
	all := Jobs{Items: []Job{}}
	for _, j := range jobs {
		all.Items = append(all.Items, NewJob(j))
	}
	return all
}

// bulk begins a job, or answers what it would match.
func (h *handler) bulk(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	b, dryRun, err := readBulk(w, r)
	if err != nil {
		return err
	}
	if dryRun {
		p, err := h.admin.PreviewJob(r.Context(), b)
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, p)
	}
	j, err := h.admin.StartJob(r.Context(), b)
	if err != nil {
		return err
	}
	h.asked(r, string(j.Operation), ofJob, j.ID)
	w.Header().Set(headerLocation, "/v1/jobs/"+j.ID)
	return writeJSON(w, http.StatusAccepted, NewJob(j))
}

func readBulk(w http.ResponseWriter, r *http.Request) (b admin.JobRequest, dryRun bool, err error) {
	var filter json.RawMessage
	err = readBody(w, r, map[string]any{
		"operation": &b.Operation, "filter": &filter, fieldAll: &b.All, paramForce: &b.Force, fieldMessage: &b.Message,
		"dryRun": &dryRun,
	})
	if err != nil || len(filter) == 0 {
		return b, dryRun, err
	}
	f := &b.Filter
	var name, version, parent *string
	err = readObject(filter, map[string]any{
		"name": &name, fieldVersion: &version, "parent": &parent, "statuses": &f.Statuses, "tags": &f.Tags,
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
			err = checkYear(name, t)
		}
	}
	return b, dryRun, err
}

// selectBy takes what a filter is given to select by. An empty text is refused: left out silently, it would have a job
// take more than was meant.
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

// noJob is the problem of a job that is not there.
func noJob(err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return &problem{Status: http.StatusNotFound, Code: codeJobNotFound, Field: fieldJobID, Detail: "job not found"}
	}
	return err
}

func (h *handler) jobs(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	jobs, err := client.Collect(h.admin.Jobs(r.Context()))
	if err != nil {
		return err
	}
	answer := NewJobs(jobs)
	fit, err := fitting(Jobs{Items: []Job{}, More: true}, answer.Items)
	if err != nil {
		return err
	}
	answer.More, answer.Items = fit < len(answer.Items), answer.Items[:fit]
	return writeJSON(w, http.StatusOK, answer)
}

func (h *handler) job(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, fieldJobID, fieldJobID)
	if err != nil {
		return err
	}
	j, err := h.admin.Job(r.Context(), id)
	if err != nil {
		return noJob(err)
	}
	return writeJSON(w, http.StatusOK, NewJob(j))
}

func (h *handler) cancelJob(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	id, err := pathID(r, fieldJobID, fieldJobID)
	if err != nil {
		return err
	}
	j, err := h.admin.CancelJob(r.Context(), id)
	if err != nil {
		return noJob(err)
	}
	h.asked(r, "cancel job", ofJob, id)
	return writeJSON(w, http.StatusOK, NewJob(j))
}
