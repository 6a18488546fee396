package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/httpapi/internal/eventstream"
	"github.com/perdure/perdure/httpapi/internal/problem"
	"github.com/perdure/perdure/httpapi/internal/request"
	"github.com/perdure/perdure/httpapi/internal/response"
	"github.com/perdure/perdure/provider"
)

const (
	headerLastEventID = "Last-Event-ID"
	paramLastEventID  = "lastEventId"
	paramWait         = "wait"
)

const (
	// longestStream limits a stream outside Lambda. lambdaMargin is the time that a stream on Lambda ends before its
	// invocation.
	longestStream = 15 * time.Minute
	lambdaMargin  = time.Second
	// keepAlive is the time without an event after which a stream sends a comment: proxies close idle connections.
	keepAlive = 15 * time.Second
	// headerDelay is the time after which a stream without an event sends its header. Until then, it can still respond
	// with a problem.
	headerDelay = time.Second
	// batchGap is the time without an event after which a long poll with events responds. It is longer than the delay
	// of the next poll of the hub.
	batchGap = 100 * time.Millisecond
	// batchTime is the time after its first event at which a long poll responds in any case, because further events can
	// follow without such a gap.
	batchTime = 3 * batchGap / 2
	// pollInterval and longPollInterval are the longest times between two reads of the hub. An event of a long poll
	// also waits for batchTime, and must still arrive within a second.
	pollInterval     = time.Second
	longPollInterval = pollInterval - 2*batchGap
)

// The events of a stream that are not events of the history. No kind of a history event starts with a lower-case
// letter, and browsers use the name error for connections.
const (
	streamEnd     = "end"
	streamProblem = "problem"
)

// position is the ID of an event of a stream. The position after a continue-as-new is the start of the next execution.
type position struct {
	execution string
	event     int64 // the last event, or 0
	ended     bool  // after the event streamEnd
}

// positionOf returns the position after which a stream starts. A browser repeats the parameters of its first request
// when it reconnects, so that the header takes precedence. field is the one that is used.
func positionOf(c *call) (p position, field string, err error) {
	field, text := paramLastEventID, c.query.Get(paramLastEventID)
	if header := c.r.Header.Get(headerLastEventID); header != "" {
		field, text = headerLastEventID, header
	}
	if text == "" {
		return p, field, nil
	}
	event := ""
	if dot := strings.LastIndexByte(text, '.'); dot > 0 {
		p.execution, event = text[:dot], text[dot+1:]
	}
	if p.ended = event == streamEnd; p.ended {
		return p, field, nil
	}
	p.event, err = strconv.ParseInt(event, 10, 64)
	if err != nil || p.event < 0 || strconv.FormatInt(p.event, 10) != event {
		return p, field, errPosition(field)
	}
	return p, field, nil
}

func errPosition(field string) error {
	return &provider.FieldError{Field: field, Problem: "must be the id of an event of this stream"}
}

func (p position) id() string {
	if p.ended {
		return p.execution + "." + streamEnd
	}
	return p.execution + "." + strconv.FormatInt(p.event, 10)
}

// endOfStream is the data of the event streamEnd.
type endOfStream struct {
	InstanceID  string               `json:"instanceId"`
	ExecutionID string               `json:"executionId"`
	Status      client.RuntimeStatus `json:"status"`
}

// stream sends the events of an instance as server-sent events. If the server buffers responses, or with the parameter
// wait, it is a long poll.
func (i instances) stream(c *call) error {
	at, field, err := positionOf(c)
	if err != nil {
		return err
	}
	wait, err := request.Duration(c.query, paramWait, longestWait)
	if err != nil {
		return err
	}
	s, err := i.read(c)
	switch {
	case err != nil:
		return err
	case at.ended:
		c.w.WriteHeader(http.StatusNoContent) // a browser then stops reconnecting
		return nil
	case at.execution == "":
		at.execution = s.ExecutionID
	}

	out := eventstream.New(c.w)
	if c.r.Method == http.MethodHead {
		return out.Begin()
	}
	w := &watcher{
		instances: i, call: c, instanceID: s.InstanceID, at: at, field: field, out: out, longest: longestStream,
	}
	w.poll = c.query.Has(paramWait) || out.Buffered()
	if w.poll {
		out.Limit()
		if w.longest = longestWait; c.query.Has(paramWait) {
			w.longest = max(wait, headerDelay) // the hub is read in any case
		}
	}
	return w.run()
}

// watcher sends one stream.
type watcher struct {
	instances

	call       *call
	instanceID string
	at         position
	field      string // the header or parameter with the first position
	out        *eventstream.Writer
	poll       bool // a long poll
	longest    time.Duration
	full       sync.Once // starts the end of a long poll with events
	stop       func()    // ends the long poll
}

// next is an event of the history, or the error that ends it.
type next struct {
	event history.Event
	err   error
}

// run sends events until the instance has ended, its time has passed, or the caller has disconnected.
func (w *watcher) run() error {
	ctx := w.call.ctx()
	if at, ok := ctx.Deadline(); ok {
		limited, stop := context.WithDeadline(ctx, at.Add(-lambdaMargin))
		defer stop()
		ctx = limited
	}
	ctx, cancel := context.WithTimeout(ctx, w.longest)
	defer cancel()
	w.stop = cancel
	events := w.follow(ctx)
	defer func() {
		cancel()
		for range events {
		}
	}()

	quiet := time.NewTimer(headerDelay)
	defer quiet.Stop()
	for {
		if len(events) == 0 {
			w.out.Flush()
		}
		select {
		case n, more := <-events:
			if !more {
				return w.finish(w.over(ctx))
			}
			if done, err := w.send(ctx, &n); err != nil || done {
				return w.finish(err)
			}
			quiet.Reset(w.readTimeout())
		case <-quiet.C:
			if w.endsQuiet() {
				return w.finish(nil)
			}
			quiet.Reset(keepAlive)
		case <-ctx.Done():
			return w.finish(nil)
		}
	}
}

// endsQuiet reports whether the response ends because no event follows. Otherwise, a stream sends a comment.
func (w *watcher) endsQuiet() bool {
	if !w.poll {
		w.out.Comment()
	}
	return w.poll && w.out.Begun()
}

// readTimeout returns the time to wait for the next event before the stream sends a comment, or the long poll responds.
func (w *watcher) readTimeout() time.Duration {
	if !w.poll {
		return keepAlive
	}
	w.full.Do(func() { time.AfterFunc(batchTime, w.stop) })
	return batchGap
}

// readAhead is the number of events that are read ahead of the stream. Events that are ready are sent with one flush.
const readAhead = 8

// follow reads events in another goroutine. A slow reader holds at most readAhead and two more.
func (w *watcher) follow(ctx context.Context) <-chan next {
	events := make(chan next, readAhead)
	interval := pollInterval
	if w.poll {
		interval = longPollInterval
	}
	go func() {
		defer close(events)
		for e, err := range w.client.Follow(ctx, w.instanceID, client.WithExecutionID(w.at.execution),
			client.AfterEvent(w.at.event), client.WithPollInterval(interval)) {
			select {
			case events <- next{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events
}

// send sends an event. done means that the response has no room for it.
func (w *watcher) send(ctx context.Context, n *next) (done bool, err error) {
	if n.err != nil {
		return true, w.failure(ctx, n.err)
	}
	doc, err := response.Encode(&n.event)
	if err != nil {
		return true, err
	}
	if n.event.ID != w.at.event+1 { // the position is a continue-as-new, but the stream names it by the next execution
		return true, errPosition(w.field)
	}
	at := position{execution: w.at.execution, event: n.event.ID}
	if n.event.Kind == history.OrchestrationContinuedAsNew {
		at = position{execution: n.event.ExecutionID}
	}
	size, sent := w.out.Send(at.id(), string(n.event.Kind), doc)
	if !sent && !w.out.Begun() {
		return true, tooLargeForStream(&n.event, size)
	}
	if !sent {
		return true, nil
	}
	w.at = at
	if status, ended := history.StatusAfter(n.event.Kind); ended {
		return true, w.end(status)
	}
	return false, nil
}

// over sends the end of a stream that was resumed after the last event of the instance.
func (w *watcher) over(ctx context.Context) error {
	if isDone(ctx) {
		return nil
	}
	s, err := w.client.Wait(ctx, w.instanceID)
	if err != nil {
		return w.failure(ctx, err)
	}
	return w.end(s.Status)
}

func tooLargeForStream(e *history.Event, size int) error {
	return problem.ResponseTooLarge("", "event "+strconv.FormatInt(e.ID, 10), size, response.Limit,
		"use a function URL with streaming, perdure watch or the Go client")
}

// end sends the last event of a stream.
func (w *watcher) end(status client.RuntimeStatus) error {
	doc, err := response.Encode(endOfStream{w.instanceID, w.at.execution, status})
	if err != nil {
		return err
	}
	w.at.ended = true
	w.out.Send(w.at.id(), streamEnd, doc)
	return nil
}

// isDone reports whether the time of the stream has passed or the caller has disconnected.
func isDone(ctx context.Context) bool { return ctx.Err() != nil }

// failure returns the error of a history as the caller understands it: the field is that of the position.
func (w *watcher) failure(ctx context.Context, err error) error {
	if isDone(ctx) {
		return nil
	}
	if errors.Is(err, client.ErrNotFound) {
		return problem.ErrExecutionNotFound
	}
	if field, ok := errors.AsType[*provider.FieldError](err); ok {
		return &provider.FieldError{Field: w.field, Problem: field.Problem}
	}
	return err
}

// finish completes the response. After the header, an error becomes the last event.
func (w *watcher) finish(err error) error {
	defer w.out.Flush()
	if !w.out.Begun() {
		if err == nil {
			err = w.out.Begin()
		}
		return err
	}
	if err != nil {
		doc, failed := response.Encode(response.Errors{Log: w.call.log}.Problem(w.call.r, err))
		if failed != nil {
			return failed
		}
		w.out.Send("", streamProblem, doc)
	}
	return nil
}
