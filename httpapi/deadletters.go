package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
)

// lettersWithin is how long one call looks for dead letters: what it has then received, and may have to send and delete
// one by one, is done before API Gateway gives up on the call after 30 s.
const lettersWithin = 12 * time.Second

const (
	paramReason   = "reason"
	paramInstance = "instance"
)

// DeadLetter is a record in a dead-letter queue. Its texts are truncated to 1 KiB.
type DeadLetter struct {
	Queue      string    `json:"queue"`
	ID         string    `json:"id"`
	Reason     string    `json:"reason,omitempty"`
	SentAt     time.Time `json:"sentAt,omitzero"`
	Deliveries int       `json:"deliveries"`
	provider.Subject
	// Body is the record's body as JSON, or as text if it is not JSON. Lists do not include it.
	Body any `json:"body,omitempty"`
}

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
	answer := NewDeadLetter(d)
	answer.Body = d.Record.Body
	if body := []byte(d.Record.Body); json.Valid(body) {
		answer.Body = json.RawMessage(body)
	}
	return answer
}

// short cuts a text that may be anything.
func short(text string) string { return history.TruncateMessage(text, provider.MaxInstanceIDBytes) }

// DeadLetterQueues holds the approximate number of dead letters of each queue.
type DeadLetterQueues struct {
	Queues []admin.DeadLetterCount `json:"queues"`
}

// DeadLetters are some dead letters of a queue, in no order. Complete is false if there are more than the response or
// the time limit of the call allows. ReadAt is the hub's time of the read. Use it as sentBefore in a redrive or drop to
// exclude later dead letters.
type DeadLetters struct {
	Items    []DeadLetter `json:"items"`
	Complete bool         `json:"complete"`
	ReadAt   time.Time    `json:"readAt"`
}

// DeadLetterResult is the result of a redrive or drop; see admin.DeadLetterResult. Errors are the errors of the dead
// letters that failed.
type DeadLetterResult struct {
	Done           int64    `json:"done"`
	Skipped        int64    `json:"kept"`
	TooRecent      int64    `json:"later"`
	Failed         int64    `json:"failed"`
	SentNotDeleted []string `json:"sent"`
	Complete       bool     `json:"complete"`
	Errors         []string `json:"errors"`
}

// letters are the calls about dead letters.
type letters struct{ *handler }

func letterRoutes() []route {
	call := func(serve func(l letters, w http.ResponseWriter, r *http.Request, query url.Values) error) func(
		*handler, http.ResponseWriter, *http.Request, url.Values,
	) error {
		return func(h *handler, w http.ResponseWriter, r *http.Request, query url.Values) error {
			return serve(letters{h}, w, r, query)
		}
	}
	return []route{
		{http.MethodGet, "/v1/dead-letters", nil, call(letters.queues)},
		{
			http.MethodGet, "/v1/dead-letters/{queue}",
			[]string{paramReason, paramInstance, paramLimit},
			call(letters.list),
		},
		{http.MethodGet, "/v1/dead-letters/{queue}/{deadLetterId}", nil, call(letters.one)},
		{http.MethodPost, "/v1/dead-letters/{queue}/redrive", nil, call(letters.redrive)},
		{http.MethodPost, "/v1/dead-letters/{queue}/drop", nil, call(letters.drop)},
	}
}

func (l letters) queues(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	counts, err := l.admin.CountDeadLetters(r.Context())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, DeadLetterQueues{Queues: append([]admin.DeadLetterCount{}, counts...)})
}

func (l letters) list(w http.ResponseWriter, r *http.Request, query url.Values) error {
	queue, err := pathID(r, fieldQueue, fieldQueue)
	if err != nil {
		return err
	}
	limit, err := intParam(query, paramLimit, 1, client.MaxPageSize, defaultPage)
	if err != nil {
		return err
	}
	answer := DeadLetters{Items: []DeadLetter{}, ReadAt: l.now().UTC().Truncate(time.Millisecond)}
	found, err := l.admin.DeadLetters(r.Context(), admin.DeadLetterQuery{
		Queue: queue, ReasonPrefix: query.Get(paramReason), InstanceID: query.Get(paramInstance),
		TimeLimit: lettersWithin,
	}, int(limit))
	if err != nil {
		return err
	}

	for i := range found.Items {
		answer.Items = append(answer.Items, NewDeadLetter(&found.Items[i]))
	}
	fit, err := fitting(DeadLetters{Items: []DeadLetter{}, ReadAt: answer.ReadAt}, answer.Items)
	if err != nil {
		return err
	}
	answer.Complete = found.Complete && fit == len(answer.Items)
	answer.Items = answer.Items[:fit]
	return writeJSON(w, http.StatusOK, answer)
}

func (l letters) one(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	queue, err := pathID(r, fieldQueue, fieldQueue)
	if err != nil {
		return err
	}
	id, err := pathID(r, fieldDeadLetterID, fieldDeadLetterID)
	if err != nil {
		return err
	}
	found, err := l.admin.DeadLetters(r.Context(),
		admin.DeadLetterQuery{Queue: queue, IDs: []string{id}, TimeLimit: lettersWithin}, 1)
	if err != nil {
		return err
	}
	if len(found.Items) == 0 {
		return &problem{
			Status: http.StatusNotFound, Code: codeDeadLetterNotFound, Field: fieldDeadLetterID, Retryable: true,
			Detail: "no dead letter with this id is visible; the sweeper or another call may hide it for a minute",
		}
	}

	answer := NewDeadLetterWithBody(&found.Items[0])
	doc, err := encode(answer)
	if err != nil {
		return err
	}
	if size := wireSize(doc); size > answerLimit {
		return errAnswerTooLarge("body", "the body of this dead letter", size, "use perdure dead-letters show")
	}
	return writeJSON(w, http.StatusOK, answer)
}

// letterOrder is what a redrive or drop is asked to do.
type letterOrder struct {
	query      admin.DeadLetterQuery
	all, force bool
}

// readOrder reads which dead letters of the path's queue are meant: what is left out by accident must not mean all.
func readOrder(w http.ResponseWriter, r *http.Request, redrive bool) (o letterOrder, err error) {
	q := &o.query
	if q.Queue, err = pathID(r, fieldQueue, fieldQueue); err != nil {
		return o, err
	}
	fields := map[string]any{
		fieldIDs: &q.IDs, paramReason: &q.ReasonPrefix, fieldInstanceID: &q.InstanceID, fieldSentBefore: &q.SentBefore,
		fieldAll: &o.all,
	}
	if redrive {
		fields[paramForce] = &o.force
	}
	if err = readBody(w, r, fields); err != nil {
		return o, err
	}
	q.TimeLimit = lettersWithin

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
	return o, checkYear(fieldSentBefore, q.SentBefore)
}

func (l letters) redrive(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	o, err := readOrder(w, r, true)
	if err != nil {
		return err
	}
	var opts []admin.RedriveOption
	if o.force {
		opts = append(opts, admin.ForceRedrive())
	}
	done, err := l.admin.RedriveDeadLetters(r.Context(), o.query, opts...)
	return l.done(w, r, "redrive dead letters", &o, done, err)
}

func (l letters) drop(w http.ResponseWriter, r *http.Request, _ url.Values) error {
	o, err := readOrder(w, r, false)
	if err != nil {
		return err
	}
	done, err := l.admin.DropDeadLetters(r.Context(), o.query)
	return l.done(w, r, "drop dead letters", &o, done, err)
}

// lettersDone answers what came of an order. It is a problem where nothing came of it but an error: else the caller has
// to learn what was done.
func (l letters) done(
	w http.ResponseWriter, r *http.Request, operation string, o *letterOrder, done admin.DeadLetterResult, err error,
) error {
	if err != nil && done.Done+done.Skipped+done.TooRecent+done.Failed == 0 {
		return err
	}
	l.asked(r, operation, ofQueue, o.query.Queue)
	answer := DeadLetterResult{
		Done: done.Done, Skipped: done.Skipped, TooRecent: done.TooRecent, Failed: done.Failed,
		SentNotDeleted: append([]string{}, done.SentNotDeleted...), Complete: done.Complete, Errors: []string{},
	}
	for _, one := range joined(err) {
		if why := problemOf(one).Detail; !slices.Contains(answer.Errors, why) {
			answer.Errors = append(answer.Errors, why)
		}
	}
	if err != nil {
		l.log.WarnContext(r.Context(), "dead-letter operation partly failed",
			"event", logevent.DeadLetterOperationFailed, "operation", operation, ofQueue, o.query.Queue,
			"failed", done.Failed, "error", err)
	}
	return writeJSON(w, http.StatusOK, answer)
}

// joined returns the errors that one consists of.
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
