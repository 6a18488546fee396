// Package costestimate estimates the cost of an instance from its history. It assumes that no other instance shares a
// batch with it, that all turns are warm, and that activities take no time. The package tests/cost compares the
// estimate with metered usage.
package costestimate

import (
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/pricing"
)

// Usage in addition to the stored events, as measured with the workloads of docs/operate/scale.md.
const (
	// A start writes the instance, its first segment, its final status and its index entries.
	startWrites, startReads = 5, 1.5
	// Continue-as-new writes the instance in one transaction with two segments.
	nextWrites = 4
	// A cancellation writes its items in a transaction. A status is written with an index entry.
	cancelWrites, statusWrites = 2, 2
	// An activity with WaitForCancellation or AtMostOnce records its claim and its outcome.
	runWrites, runReads = 2, 1
	// A failed attempt is recorded.
	retryWrites = 2

	orchestratorSeconds, stepSeconds, workerSeconds, timerSeconds = 0.0052, 0.0028, 0.0088, 0.0075 // GB-seconds

	// batch is the number of messages in an SQS call, and in an invocation.
	batch = 10
	// readableBytes is the size up to which a segment is stored without compression.
	readableBytes = 4 << 10
	// headBytes is the size of an item without its events.
	headBytes = 260
	kilobyte  = 1 << 10
	// requestBytes is the size that SQS bills as one request.
	requestBytes = 64 << 10
	// longTimer is the delay above which a timer needs a schedule.
	longTimer = 15 * time.Minute
	// statusDelay is the time for which an invocation may defer the status Running to one of its later turns.
	statusDelay = time.Second
)

// Estimator adds up the estimated usage of a sequence of events. The zero value contains no events.
type Estimator struct {
	Turns, Activities int64

	usage   pricing.Usage
	segment segment
	held    *segment                 // the previous segment if it ends with inline outcomes: it may merge with segment
	shown   bool                     // the status Running was written
	invoked time.Time                // start of the invocation of the last turn
	inline  map[int64]*history.Event // scheduled inline activities without an outcome
	long    map[int64]bool           // pending timers with a schedule
	before  map[string]bool          // keys of large payloads of parked inputs, which a later event repeats
	child   bool                     // the instance has a parent

	compressor *zstd.Encoder // created for the first large segment, because it is expensive
}

// segment holds the properties of one commit that determine its cost.
type segment struct {
	number  int64 // within the execution
	doc     []byte
	inputs  int
	queued  int // activities for workers
	bytes   int // size of their inputs
	cancels bool
	step    bool // the invocation of the previous segment continued with this one
	arrives bool // ends with outcomes of inline activities
	apart   bool // cannot merge with the previous segment, which must be committed first
	at      time.Time
	ends    bool
}

// merge returns s and the next segment as one commit.
func (s *segment) merge(next *segment) segment {
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
func (r *Estimator) Add(e *history.Event) {
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
		r.segment.doc = append(r.segment.doc, doc[1:]...) // with a comma or a bracket
	}
	r.segment.arrives, r.segment.ends = e.IsInlineOutcome(), e.Kind.Terminal()
	r.segment.at = e.Time
	r.segment.apart = r.segment.apart || e.Kind == history.ActivityScheduled && e.Inline ||
		e.Kind == history.OrchestrationContinuedAsNew
	if e.IsInput() && !e.IsInlineOutcome() {
		r.segment.inputs++
	}
	r.count(e)
	r.payloads(e)
}

// begin adds the start of an instance or of its next execution.
func (r *Estimator) begin(e *history.Event) {
	if e.Number > 1 {
		r.shown = true
		r.usage[pricing.WriteUnits] += nextWrites
		return
	}
	r.usage[pricing.WriteUnits] += startWrites
	r.usage[pricing.ReadUnits] += startReads
	r.usage[pricing.FIFORequests]++ // the wake
}

// count adds the usage of an event without its storage.
func (r *Estimator) count(e *history.Event) {
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
			r.send(scheduled) // the activity ran in its queue
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
	case history.ExternalEventRaised, history.SubOrchestrationScheduled, history.DetachedOrchestrationScheduled,
		history.ExternalEventSent, history.CancelRequested, history.SubOrchestrationCancelRequested,
		history.UpdateAccepted, history.UpdateSent, history.UpdateAnswered:
		r.usage[pricing.FIFORequests] += requests(len(e.Data) + len(e.Input) + len(e.Result))
	default:
	}
}

// send adds an activity that is sent to its queue.
func (r *Estimator) send(e *history.Event) {
	if e.WaitsForCancellation() || e.AtMostOnce {
		r.usage[pricing.WriteUnits] += runWrites
		r.usage[pricing.ReadUnits] += runReads
	}
	r.segment.queued++
	r.segment.bytes += len(e.Input)
}

// anotherAttempt is the usage of a retry: a timer, a work item and its outcome.
var anotherAttempt = pricing.Usage{
	pricing.WriteUnits: retryWrites, pricing.ReadUnits: 1, pricing.StandardRequests: 3 + 3, pricing.FIFORequests: 3 + 1,
	pricing.Invocations: 3, pricing.GBSeconds: workerSeconds + orchestratorSeconds + timerSeconds,
}

// timer adds a created timer, which is a delayed message.
func (r *Estimator) timer(e *history.Event) {
	r.hops(1)
	if e.FireAt != nil && e.FireAt.Sub(e.Time) > longTimer {
		r.long[e.ID] = true
	}
}

// fire adds a fired timer. A long timer had a schedule, whose message was delayed again.
func (r *Estimator) fire(e *history.Event) {
	if r.long[e.SourceEventID] {
		r.hops(2) //nolint:mnd // one before the schedule and one after it
		r.usage[pricing.ScheduleInvocations]++
	}
	delete(r.long, e.SourceEventID)
	r.usage[pricing.FIFORequests]++
}

// hops adds n delayed messages.
func (r *Estimator) hops(n float64) {
	r.usage[pricing.StandardRequests] += 3 * n
	r.usage[pricing.Invocations] += n
	r.usage[pricing.GBSeconds] += timerSeconds * n
}

// commit ends a segment. Inline outcomes and the decisions that follow them share a commit, unless these decisions
// schedule inline activities again.
func (r *Estimator) commit() {
	s := r.segment
	if r.held != nil {
		if s.apart {
			r.bill(r.held)
		} else {
			s = r.held.merge(&s)
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
func (r *Estimator) flush() {
	r.commit()
	if r.held != nil {
		r.bill(r.held)
		r.held = nil
	}
}

// bill adds the usage of a segment.
func (r *Estimator) bill(s *segment) {
	if len(s.doc) == 0 {
		return
	}
	units := r.writeUnits(s.doc)
	switch {
	case s.number == 0: // the start includes its first unit
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

// show adds the write of the status Running. An invocation defers it to its last turn unless it takes long. A turn that
// ends the instance writes the final status instead.
func (r *Estimator) show(s *segment) {
	if !s.step {
		r.invoked = s.at
	}
	if r.shown || s.ends || s.arrives && s.at.Sub(r.invoked) < statusDelay {
		return
	}
	r.shown = true
	r.usage[pricing.WriteUnits] += statusWrites
}

// invocation adds the invocation of a turn. A turn that continues after inline activities has no separate invocation.
func (r *Estimator) invocation(s *segment) {
	if s.step {
		r.usage[pricing.GBSeconds] += stepSeconds
		return
	}
	batches := batchesOf(max(1, s.inputs/batch)) // outcomes arrive in batches
	r.usage[pricing.FIFORequests] += 2 * batches
	r.usage[pricing.Invocations] += batches
	r.usage[pricing.GBSeconds] += orchestratorSeconds * batches
}

// Usage returns the usage of all events. It ends the last segment. Do not call Add after Usage.
func (r *Estimator) Usage() pricing.Usage {
	r.flush()
	return r.usage
}

// batchesOf returns the number of batches of n messages.
func batchesOf(n int) float64 { return float64((n + batch - 1) / batch) }

// requests returns the number of requests that SQS bills for a message of this size.
func requests(bytes int) float64 { return float64(1 + bytes/requestBytes) }

// writeUnits returns the write units of a segment. Large segments are compressed.
func (r *Estimator) writeUnits(doc []byte) float64 {
	size := len(doc)
	if size > readableBytes {
		size = len(r.compressed(doc))
	}
	return float64((size + headBytes + kilobyte - 1) / kilobyte)
}

// compressed returns a document in the form in which the provider compresses documents.
func (r *Estimator) compressed(doc []byte) []byte {
	if r.compressor == nil {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // cannot happen: the options are constants
		}
		r.compressor = e
	}
	return r.compressor.EncodeAll(doc, nil)
}
