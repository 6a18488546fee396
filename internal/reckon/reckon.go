// Package reckon estimates the cost of an instance from its history. It assumes that no other instance shares a batch
// with it, that all turns are warm, and that activities take no time. tests/cost compares the estimate with metered
// usage.
package reckon

import (
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/pricing"
)

// What each of these takes beside what it stores, by the workloads of docs/operate/scale.md.
const (
	// The instance and its first segment, the status of its end, and the entries of its index.
	startWrites, startReads = 5, 1.5
	// Continue-as-new writes the instance in the transaction of both segments.
	nextWrites = 4
	// The items of a cancel are written in a transaction, and a status with an entry of the index.
	cancelWrites, statusWrites = 2, 2
	// The run of an activity that is waited for when it is cancelled, or runs at most once: that it is taken, and what comes of it.
	runWrites, runReads = 2, 1
	// What is stored of an attempt that has failed.
	retryWrites = 2

	orchestratorSeconds, stepSeconds, workerSeconds, timerSeconds = 0.0052, 0.0028, 0.0088, 0.0075 // in GB

	// batch is how many messages a call of SQS takes, and a mapping hands over.
	batch = 10
	// readableBytes is up to what size a segment is stored as it is.
	readableBytes = 4 << 10
	// headBytes is what an item has beside its events.
	headBytes = 260
	kilobyte  = 1 << 10
	// requestBytes is what SQS bills as one request.
	requestBytes = 64 << 10
	// longTimer is from when on a schedule holds a timer, which fires in a queue's longest delay before it is due.
	longTimer = 15 * time.Minute
	// shownWithin is for how long an invocation leaves a status to a later turn that it makes.
	shownWithin = time.Second
)

// Reckoning is the estimated usage of a sequence of events. The zero value contains no events.
type Reckoning struct {
	Turns, Activities int64

	usage   pricing.Usage
	segment segment
	held    *segment                 // the one before, which ends with outcomes of inline activities: it may be one with segment
	shown   bool                     // the status Running is written
	invoked time.Time                // when the invocation began that the last turn was made in
	inline  map[int64]*history.Event // activities that were to run in their turn, until they have
	long    map[int64]bool           // timers that wait for their schedule
	before  map[string]bool          // keys of large payloads that history has again once a turn takes them
	child   bool                     // an instance waits for its end

	compressor *zstd.Encoder // nil until a large segment wants it: it is expensive to create
}

// segment is what is committed together.
type segment struct {
	number  int64 // of the execution
	doc     []byte
	inputs  int
	queued  int // activities for workers
	bytes   int // of their inputs
	cancels bool
	step    bool // the process that committed the one before has gone on with it
	arrives bool // outcomes of inline activities end it
	apart   bool // it begins what may begin only once the one before is committed
	at      time.Time
	ends    bool
}

// with is a segment and the next, committed as one.
func (s *segment) with(next *segment) segment {
	both := *next
	both.number, both.step = s.number, s.step
	both.doc = slices.Concat(s.doc, next.doc)
	both.inputs += s.inputs
	both.queued += s.queued
	both.bytes += s.bytes
	both.cancels = s.cancels || next.cancels
	return both
}

// Add adds the next event of an execution. Start with the first execution of the instance. An execution ends with the
// first event of the next one, or with Usage.
func (r *Reckoning) Add(e *history.Event) {
	if r.usage == nil {
		r.usage, r.inline, r.long = pricing.Usage{}, map[int64]*history.Event{}, map[int64]bool{}
		r.before = map[string]bool{}
	}
	switch e.Kind {
	case history.OrchestrationStarted:
		r.flush()
		r.segment = segment{}
		r.child = r.child || e.Parent != nil
		r.begin(e)
	case history.TurnStarted, history.InputsParked, history.ExecutionSuspended, history.ExecutionResumed:
		r.commit()
	default:
	}
	if doc, err := history.Encode([]history.Event{*e}); err == nil {
		r.segment.doc = append(r.segment.doc, doc[1:]...) // a comma or a bracket behind it
	}
	r.segment.arrives, r.segment.ends = e.IsInlineOutcome(), e.Kind.Terminal()
	r.segment.at = e.Time
	r.segment.apart = r.segment.apart || e.Kind == history.ActivityScheduled && e.Inline || e.Kind == history.OrchestrationContinuedAsNew
	if e.IsInput() && !e.IsInlineOutcome() {
		r.segment.inputs++
	}
	r.count(e)
	r.payloads(e)
}

// begin is the start of an instance, or of its next execution.
func (r *Reckoning) begin(e *history.Event) {
	if e.Number > 1 {
		r.shown = true
		r.usage[pricing.WriteUnits] += nextWrites
		return
	}
	r.usage[pricing.WriteUnits] += startWrites
	r.usage[pricing.ReadUnits] += startReads
	r.usage[pricing.FIFORequests]++ // the wake
}

// count is what an event costs beside the place that it takes.
func (r *Reckoning) count(e *history.Event) {
	switch e.Kind {
	case history.ActivityScheduled:
		r.Activities++
		if e.Inline {
			scheduled := *e
			r.inline[e.ID] = &scheduled
			return
		}
		r.send(e)
	case history.ActivityCompleted, history.ActivityFailed:
		if scheduled := r.inline[e.SourceEventID]; scheduled != nil && !e.Inline {
			r.send(scheduled) // it went to its queue after all
		}
		delete(r.inline, e.SourceEventID)
		if again := float64(e.Attempt - 1); again > 0 && !e.Inline {
			r.usage.Add(anotherAttempt, again)
		}
	case history.ActivityCancelRequested:
		r.segment.cancels = true
	case history.CustomStatusSet:
		r.usage[pricing.WriteUnits] += statusWrites
	case history.TimerCreated:
		r.timer(e)
	case history.TimerFired:
		r.fire(e)
	case history.ExternalEventRaised, history.SubOrchestrationScheduled, history.DetachedOrchestrationScheduled, history.ExternalEventSent, history.CancelRequested,
		history.SubOrchestrationCancelRequested, history.UpdateAccepted, history.UpdateSent, history.UpdateAnswered:
		r.usage[pricing.FIFORequests] += requests(len(e.Data) + len(e.Input) + len(e.Result))
	default:
	}
}

func (r *Reckoning) send(e *history.Event) {
	if e.WaitsForCancellation() || e.AtMostOnce {
		r.usage[pricing.WriteUnits] += runWrites
		r.usage[pricing.ReadUnits] += runReads
	}
	r.segment.queued++
	r.segment.bytes += len(e.Input)
}

// anotherAttempt is what an attempt more takes: a work item, its outcome, and the timer in between.
var anotherAttempt = pricing.Usage{
	pricing.WriteUnits: retryWrites, pricing.ReadUnits: 1, pricing.StandardRequests: 3 + 3, pricing.FIFORequests: 3 + 1,
	pricing.Invocations: 3, pricing.GBSeconds: workerSeconds + orchestratorSeconds + timerSeconds,
}

// timer is one that is created: a message that comes back after some time.
func (r *Reckoning) timer(e *history.Event) {
	r.hops(1)
	if e.FireAt != nil && e.FireAt.Sub(e.Time) > longTimer {
		r.long[e.ID] = true
	}
}

// fire is one that fires: a long one has been held by a schedule, whose message is delayed once more.
func (r *Reckoning) fire(e *history.Event) {
	if r.long[e.SourceEventID] {
		r.hops(2) //nolint:mnd // until the schedule is made, and behind it
		r.usage[pricing.ScheduleInvocations]++
	}
	delete(r.long, e.SourceEventID)
	r.usage[pricing.FIFORequests]++
}

func (r *Reckoning) hops(n float64) {
	r.usage[pricing.StandardRequests] += 3 * n
	r.usage[pricing.Invocations] += n
	r.usage[pricing.GBSeconds] += timerSeconds * n
}

// commit ends a segment. The code goes on with the outcomes of inline activities before they are committed, and what it decides is in the same commit
// unless it begins more of them.
func (r *Reckoning) commit() {
	s := r.segment
	if r.held != nil {
		if s.apart {
			r.bill(r.held)
		} else {
			s = r.held.with(&s)
		}
		r.held = nil
	}
	r.segment = segment{number: s.number + 1, step: s.arrives}
	if s.arrives {
		r.held = &s
		return
	}
	r.bill(&s)
}

// flush ends the last segment.
func (r *Reckoning) flush() {
	r.commit()
	if r.held != nil {
		r.bill(r.held)
		r.held = nil
	}
}

// bill is what a segment costs.
func (r *Reckoning) bill(s *segment) {
	if len(s.doc) == 0 {
		return
	}
	units := r.writeUnits(s.doc)
	switch {
	case s.number == 0: // its first unit is in the start's
		r.usage[pricing.WriteUnits] += units - 1
		return
	case s.cancels:
		r.usage[pricing.WriteUnits] += units + cancelWrites
	}
	r.Turns++
	r.usage[pricing.WriteUnits] += units
	r.show(s)
	r.invocation(s)
	if s.queued == 0 {
		return
	}
	batches := batchesOf(s.queued)
	r.usage[pricing.StandardRequests] += max(batches, requests(s.bytes)) + 2*batches
	r.usage[pricing.FIFORequests] += batches
	r.usage[pricing.ReadUnits] += batches
	r.usage[pricing.Invocations] += batches
	r.usage[pricing.GBSeconds] += workerSeconds * batches
}

// show is the status Running, which an invocation leaves to the last of its turns, unless it takes long; one that ends the instance writes the end's.
func (r *Reckoning) show(s *segment) {
	if !s.step {
		r.invoked = s.at
	}
	if r.shown || s.ends || s.arrives && s.at.Sub(r.invoked) < shownWithin {
		return
	}
	r.shown = true
	r.usage[pricing.WriteUnits] += statusWrites
}

// invocation is that of a turn: one that goes on with what ran in the turn before is in the same.
func (r *Reckoning) invocation(s *segment) {
	if s.step {
		r.usage[pricing.GBSeconds] += stepSeconds
		return
	}
	batches := batchesOf(max(1, s.inputs/batch)) // outcomes come by tens
	r.usage[pricing.FIFORequests] += 2 * batches
	r.usage[pricing.Invocations] += batches
	r.usage[pricing.GBSeconds] += orchestratorSeconds * batches
}

// Usage returns the usage of all events. It ends the last segment: do not call Add after it.
func (r *Reckoning) Usage() pricing.Usage {
	r.flush()
	return r.usage
}

func batchesOf(n int) float64 { return float64((n + batch - 1) / batch) }

// requests is how many SQS bills for a message of so many bytes.
func requests(bytes int) float64 { return float64(1 + bytes/requestBytes) }

// writeUnits are what a segment takes, which is compressed where it is large.
func (r *Reckoning) writeUnits(doc []byte) float64 {
	size := len(doc)
	if size > readableBytes {
		size = len(r.compressed(doc))
	}
	return float64((size + headBytes + kilobyte - 1) / kilobyte)
}

// compressed is a document as the provider compresses it.
func (r *Reckoning) compressed(doc []byte) []byte {
	if r.compressor == nil {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // cannot happen: the options are constants
		}
		r.compressor = e
	}
	return r.compressor.EncodeAll(doc, nil)
}
