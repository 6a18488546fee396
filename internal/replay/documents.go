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
	// mailInline bounds the documents of events that wait in memory for a subscription.
	mailInline = 4 << 20
	// parkedBytes bounds the documents of the parked inputs that one turn takes.
	parkedBytes = 32 << 20
)

// FetchError is the error when a document could not be read from where a reference says that it lies. It is a failure of the store, not of the
// instance.
type FetchError struct {
	InstanceID, Ref string
	Err             error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("instance %q: the document at %s: %v", e.InstanceID, e.Ref, e.Err)
}

func (e *FetchError) Unwrap() error { return e.Err }

// errNoFetch is the cause where Options.Fetch is missing.
var errNoFetch = errors.New("it was not fetched from where it lies")

// documents gets the documents of payloads, and refers to them. It belongs to the goroutine that runs the turn, but the watchdog may count its
// fetches.
type documents struct {
	options *Options
	fetches atomic.Int64 // twice as many as documents were fetched; odd while one is

	// near has documents of the parked inputs that are in memory anyway, by reference.
	near      map[string]json.RawMessage
	nearBytes int
}

// of returns the document of a payload, from wherever it lies. The time that takes does not count for the turn's limit.
func (d *documents) of(data history.Payload) (json.RawMessage, error) {
	if doc, ok := data.Document(); ok {
		return doc, nil
	}
	ref, _ := data.Reference()
	if doc, ok := d.near[ref.Ref]; ok {
		return doc, nil
	}
	if d.options.Fetch == nil {
		return nil, &FetchError{d.options.InstanceID, ref.Ref, errNoFetch}
	}

	type answer struct {
		doc json.RawMessage
		err error
	}
	d.fetches.Add(1)
	defer d.fetches.Add(1)
	answers := make(chan answer, 1)
	go func() { // a call of the store would make the coroutine's stack grow, for as long as that lives
		doc, err := d.options.Fetch(ref)
		answers <- answer{doc, err}
	}()

	a := <-answers
	if a.err != nil {
		return nil, &FetchError{d.options.InstanceID, ref.Ref, a.err}
	}
	return a.doc, nil
}

// fetching reports whether a document is being fetched, or was since the number of fetches was known. It returns that number now.
func (d *documents) fetching(known int64) (since bool, now int64) {
	now = d.fetches.Load() // odd while one is under way
	return now%2 != 0 || now != known, now
}

// refer returns a reference to data that lies at a place of this execution. What is a reference already stays as it is, whichever execution it
// is about. Where nothing may be referred to, data comes back.
func (d *documents) refer(at history.Place, data history.Payload) history.Payload {
	doc, ok := data.Document()
	if !ok || d.options.SegmentOf == nil {
		return data
	}
	at.ExecutionID = d.options.ExecutionID
	at.Segment = d.options.SegmentOf(at.EventID)
	return at.Refer(doc)
}

// referLarge replaces the data of a parked input by a reference where it is large, and keeps the document near. The turn that takes the input
// commits the reference, so that history does not grow by the document again.
func (d *documents) referLarge(at history.Place, in *history.Event) {
	doc, inline := in.Data.Document()
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
