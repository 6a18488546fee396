package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// searchTime limits the search for dead letters. A call must also send and delete the received records before API
// Gateway ends the call after 30 s.
const searchTime = 12 * time.Second

const fieldIDs = "ids"

// NewDeadLetter returns the response for a dead letter in a list, without its body.
func NewDeadLetter(d *admin.DeadLetter) DeadLetter {
	about := d.Subject
	for _, text := range []*string{(*string)(&about.Kind), &about.InstanceID, &about.ExecutionID, &about.Name} {
		*text = short(*text)
	}
	return DeadLetter{
		Queue: d.Queue, ID: d.Record.ID, Reason: short(d.Reason), SentAt: d.SentAt, Deliveries: d.Record.ReceiveCount,
		Subject: about,
	}
}

// NewDeadLetterWithBody returns the response for a single dead letter, with its body.
func NewDeadLetterWithBody(d *admin.DeadLetter) DeadLetter {
	resp := NewDeadLetter(d)
	resp.Body = d.Record.Body
	if body := []byte(d.Record.Body); json.Valid(body) {
		resp.Body = json.RawMessage(body)
	}
	return resp
}

// short truncates a text from a dead letter, which can have any length.
func short(text string) string { return history.TruncateMessage(text, provider.MaxInstanceIDBytes) }

// DeadLetterQueues is the approximate number of dead letters of each queue.
type DeadLetterQueues struct {
	Queues []admin.DeadLetterCount `json:"queues"`
}

// DeadLetters is a list of some dead letters of a queue, in no order. Complete is false if there are more than the
// response or the time limit of the call allows. ReadAt is the time of the read by the hub's clock. Use ReadAt as
// sentBefore in a redrive or drop to exclude later dead letters.
type DeadLetters struct {
	Items    []DeadLetter `json:"items"`
	Complete bool         `json:"complete"`
	ReadAt   time.Time    `json:"readAt"`
}

func (d deadLetters) queues(c *call) error {
	counts, err := d.admin.CountDeadLetters(c.ctx())
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, DeadLetterQueues{Queues: append([]admin.DeadLetterCount{}, counts...)})
}

func (d deadLetters) list(c *call) error {
	queue, err := request.ID(c.r, fieldQueue, fieldQueue)
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	resp := DeadLetters{Items: []DeadLetter{}, ReadAt: d.now().UTC().Truncate(time.Millisecond)}
	found, err := d.admin.DeadLetters(c.ctx(), admin.DeadLetterQuery{
		Queue: queue, ReasonPrefix: c.query.Get(paramReason), InstanceID: c.query.Get(paramInstance),
		TimeLimit: searchTime,
	}, int(limit))
	if err != nil {
		return err
	}

	for i := range found.Items {
		resp.Items = append(resp.Items, NewDeadLetter(&found.Items[i]))
	}
	fit, err := response.Fitting(DeadLetters{Items: []DeadLetter{}, ReadAt: resp.ReadAt}, resp.Items)
	if err != nil {
		return err
	}
	resp.Complete = found.Complete && fit == len(resp.Items)
	resp.Items = resp.Items[:fit]
	return c.reply(http.StatusOK, resp)
}

func (d deadLetters) get(c *call) error {
	queue, err := request.ID(c.r, fieldQueue, fieldQueue)
	if err != nil {
		return err
	}
	id, err := request.ID(c.r, problem.FieldDeadLetterID, problem.FieldDeadLetterID)
	if err != nil {
		return err
	}
	found, err := d.admin.DeadLetters(c.ctx(),
		admin.DeadLetterQuery{Queue: queue, IDs: []string{id}, TimeLimit: searchTime}, 1)
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		return problem.ErrDeadLetterNotFound
	}

	resp := NewDeadLetterWithBody(&found.Items[0])
	doc, err := response.Encode(resp)
	if err != nil {
		return err
	}
	if size := response.Size(doc); size > response.Limit {
		return problem.ResponseTooLarge("body", "the body of this dead letter", size, response.Limit,
			"use perdure dead-letters show")
	}
	return c.reply(http.StatusOK, resp)
}

// selection selects the dead letters of a redrive or drop.
type selection struct {
	query      admin.DeadLetterQuery
	all, force bool
}

// readSelection reads a selection of the path's queue. It requires the field all, so that a missing filter does not
// select all dead letters by accident.
func readSelection(c *call, redrive bool) (o selection, err error) {
	q := &o.query
	if q.Queue, err = request.ID(c.r, fieldQueue, fieldQueue); err != nil {
		return o, err
	}
	fields := map[string]any{
		fieldIDs: &q.IDs, paramReason: &q.ReasonPrefix, problem.FieldInstanceID: &q.InstanceID,
		"sentBefore": &q.SentBefore,
		fieldAll:     &o.all,
	}
	if redrive {
		fields[paramForce] = &o.force
	}
	if err = c.body(fields); err != nil {
		return o, err
	}
	q.TimeLimit = searchTime

	filtered := q.ReasonPrefix != "" || q.InstanceID != ""
	switch {
	case len(q.IDs) > client.MaxPageSize:
		return o, &provider.FieldError{Field: fieldIDs, Problem: fmt.Sprintf("must have at most %d entries, has %d",
			client.MaxPageSize, len(q.IDs))}
	case len(q.IDs) > 0 && (filtered || o.all):
		return o, &provider.FieldError{Field: fieldIDs, Problem: "cannot be combined with reason, instanceId or all"}
	case filtered && o.all:
		return o, &provider.FieldError{Field: fieldAll, Problem: "cannot be combined with reason or instanceId"}
	case len(q.IDs) == 0 && !filtered && !o.all:
		return o, &provider.FieldError{Field: fieldAll, Problem: "must be true if no dead letters are selected"}
	}
	return o, request.CheckYear("sentBefore", q.SentBefore)
}

func (d deadLetters) redrive(c *call) error {
	o, err := readSelection(c, true)
	if err != nil {
		return err
	}
	var opts []admin.RedriveOption
	if o.force {
		opts = append(opts, admin.ForceRedrive())
	}
	done, err := d.admin.RedriveDeadLetters(c.ctx(), o.query, opts...)
	return replyDone(c, &o, done, err)
}

func (d deadLetters) drop(c *call) error {
	o, err := readSelection(c, false)
	if err != nil {
		return err
	}
	done, err := d.admin.DropDeadLetters(c.ctx(), o.query)
	return replyDone(c, &o, done, err)
}

// replyDone responds with the result of a redrive or drop, even after an error, unless nothing was done.
func replyDone(c *call, o *selection, done admin.DeadLetterResult, err error) error {
	if err != nil && done.Done+done.Skipped+done.TooRecent+done.Failed == 0 {
		return err
	}
	c.audit(o.query.Queue, "")
	resp := DeadLetterResult{
		Done: done.Done, Skipped: done.Skipped, TooRecent: done.TooRecent, Failed: done.Failed,
		SentNotDeleted: append([]string{}, done.SentNotDeleted...), Complete: done.Complete, Errors: []string{},
	}
	for _, one := range joined(err) {
		if why := problem.Of(one).Detail; !slices.Contains(resp.Errors, why) {
			resp.Errors = append(resp.Errors, why)
		}
	}
	if err != nil {
		c.log.WarnContext(c.ctx(), "dead-letter operation partly failed",
			"event", logevent.DeadLetterOperationFailed, "operation", c.operation.Audit.Action,
			api.SubjectQueue, o.query.Queue,
			"failed", done.Failed, "error", err)
	}
	return c.reply(http.StatusOK, resp)
}

// joined returns the errors that errors.Join joined.
func joined(err error) []error {
	var all interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &all):
		return all.Unwrap()
	default:
		return []error{err}
	}
}
