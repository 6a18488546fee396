package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/perdure/perdure/history"
)

// What is kept of the documents of external events, and where.
const (
	// inlineLimit is the size up to which a document is copied rather than referred to: a reference has some 200 bytes.
	inlineLimit = 1 << 10
	// carriedInline bounds the documents that are carried over as copies, all together. The others are referred to.
	carriedInline = 64 << 10
	// referenceBytes is about what a reference takes. Nothing shorter is worth one.
	referenceBytes = 256
	// mailInline bounds the documents of events that wait in memory for a subscription, and those of updates that wait for their turn.
	mailInline = 4 << 20
	// parkedBytes bounds the documents of the parked inputs that one turn takes.
	parkedBytes = 32 << 20
)

// FetchError is returned if a document could not be read from the place that a reference points to. It is a failure of
// the store, not of the instance.
type FetchError struct {
	InstanceID, Ref string
	Err             error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("instance %q: read the document at %s: %v", e.InstanceID, e.Ref, e.Err)
}

func (e *FetchError) Unwrap() error { return e.Err }

// errNoFetch is the cause where Options.Fetch is missing.
var errNoFetch = errors.New("not fetched: Options.Fetch or Options.Seals is not set")

// documents gets the documents of payloads, and refers to them. It belongs to the goroutine that runs the turn, but the watchdog may count its
// fetches.
type documents struct {
	options *Options
	fetches atomic.Int64 // twice as many as documents were fetched; odd while one is

	// near has documents of the parked inputs that are in memory anyway, by reference.
	near      map[string]json.RawMessage
	nearBytes int

	ahead ahead
}

// find returns what lies at the place that a payload refers to, in history, or the payload itself: its document or, with sealed, the sealed payload.
func (d *documents) find(data history.Payload) (doc json.RawMessage, sealed bool, err error) {
	doc, inline := data.Document()
	if inline {
		return doc, false, nil
	}
	if data.IsEncoded() {
		return json.RawMessage(data), true, nil
	}
	ref, _ := data.Reference()
	if doc, inline = d.near[ref.Ref]; !inline {
		if doc, err = d.fetch(ref); err != nil {
			return nil, false, err
		}
	}
	return doc, ref.IsEncoded(), nil
}

func (d *documents) fetch(ref history.Reference) (doc json.RawMessage, err error) {
	if d.options.Fetch == nil {
		return nil, &FetchError{d.options.InstanceID, ref.Ref, errNoFetch}
	}
	d.aside(func() { doc, err = d.options.Fetch(ref) })
	if err != nil {
		return nil, &FetchError{d.options.InstanceID, ref.Ref, err}
	}
	return doc, nil
}

// open returns the document of a sealed payload, which an event has, or what the event is about. ahead are those that are likely to be wanted next.
func (d *documents) open(of history.EventPayload, eventID int64, ahead ...history.EventPayload) (doc json.RawMessage, err error) {
	if d.options.Seals == nil {
		return nil, d.unopened(eventID, errNoFetch)
	}
	d.aside(func() { doc, err = d.options.Seals.Open(of, ahead) })
	if err != nil {
		return nil, d.unopened(eventID, err)
	}
	return doc, nil
}

// openDetails returns a failure with the details of its causes and its own opened: a copy, where any are sealed.
func (d *documents) openDetails(f *history.Failure, name string, eventID int64) (*history.Failure, error) {
	if f == nil {
		return nil, nil //nolint:nilnil // of no failure there is none
	}
	cause, err := d.openDetails(f.Cause, name, eventID)
	if err != nil {
		return nil, err
	}
	sealed := f.Details.IsEncoded()
	if !sealed && cause == f.Cause {
		return f, nil
	}
	opened := *f
	opened.Cause = cause
	if sealed {
		doc, err := d.open(history.EventPayload{Payload: &opened.Details, Kind: history.PayloadErrorDetails, Name: name}, eventID)
		if err != nil {
			return nil, err
		}
		opened.Details = history.NewInlinePayload(doc)
	}
	return &opened, nil
}

// same reports whether a document is that of a sealed payload.
func (d *documents) same(ev *history.Event, recorded history.EventPayload, doc json.RawMessage) (same bool, err error) {
	if d.options.Seals == nil {
		return true, nil
	}
	d.aside(func() { same, err = d.options.Seals.Same(recorded, doc) })
	if err != nil {
		return false, d.unopened(ev.ID, err)
	}
	return same, nil
}

func (d *documents) unopened(eventID int64, err error) error {
	return &FetchError{d.options.InstanceID, fmt.Sprintf("event #%d", eventID), err}
}

// aside makes a call of the store, or of a codec. The time that takes does not count for the turn's limit. It is not made on the coroutine, whose stack
// would grow for it, for as long as that lives.
func (d *documents) aside(call func()) {
	d.fetches.Add(1)
	defer d.fetches.Add(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	<-done
}

// fetching reports whether a document is being fetched, or was since the number of fetches was known. It returns that number now.
func (d *documents) fetching(known int64) (since bool, now int64) {
	now = d.fetches.Load() // odd while one is under way
	return now%2 != 0 || now != known, now
}

// refer returns a reference to data that lies at a place of this execution. What is a reference already stays as it is, whichever execution it
// is about. Where nothing may be referred to, data comes back.
func (d *documents) refer(at history.DataLocation, data history.Payload) history.Payload {
	if d.options.SegmentOf == nil {
		return data
	}
	at.ExecutionID = d.options.ExecutionID
	at.Segment = d.options.SegmentOf(at.EventID)
	return at.ReferTo(data)
}

// referLarge replaces the data of a parked input by a reference where it is large, and keeps the document near. The turn that takes the input
// commits the reference, so that history does not grow by the document again.
func (d *documents) referLarge(at history.DataLocation, in *history.Event) {
	doc, inline := in.Data.Referable()
	if !in.Kind.HasData() || !inline || len(doc) <= inlineLimit || d.options.SegmentOf == nil {
		return
	}

	in.Data = d.refer(at, in.Data)
	ref, _ := in.Data.Reference()
	if d.near == nil {
		d.near = map[string]json.RawMessage{}
	}
	d.near[ref.Ref] = doc
	d.nearBytes += len(doc)
}

// forgetNear drops the documents of parked inputs.
func (d *documents) forgetNear() {
	d.near = nil
	d.nearBytes = 0
}
