package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/history"
)

// What is kept of the documents of external events, and where.
const (
	// inlineLimit is up to which size a document is rather copied than referred to: a reference has some 200 bytes.
	inlineLimit = 1 << 10
	// carriedInline bounds the documents that are carried over as copies, all together; from then on there are references.
	carriedInline = 64 << 10
	// referenceBytes is about what a reference takes: what is no longer is never worth one.
	referenceBytes = 256
	// mailInline bounds the documents of events that wait in memory for somebody to ask for them.
	mailInline = 4 << 20
	// parkedBytes bounds the documents of the parked inputs that one turn takes.
	parkedBytes = 32 << 20
)

// FetchError says that a document could not be had from where a reference says that it lies. That is the store's failure, and says
// nothing of the instance.
type FetchError struct {
	InstanceID, Ref string
	Err             error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("instance %q: the document at %s: %v", e.InstanceID, e.Ref, e.Err)
}

func (e *FetchError) Unwrap() error { return e.Err }

// errNoFetch: nobody has said how to get at what is not inline.
var errNoFetch = errors.New("it was not fetched from where it lies")

// documentOf returns the document of a payload, from where it lies. The time that takes is not the code's.
func (x *execution) documentOf(data history.Payload) (json.RawMessage, error) {
	if doc, ok := data.Document(); ok {
		return doc, nil
	}
	ref, _ := data.Reference()
	if doc, ok := x.near[ref.Ref]; ok {
		return doc, nil
	}
	if x.options.Fetch == nil {
		return nil, &FetchError{x.options.InstanceID, ref.Ref, errNoFetch}
	}
	type answer struct {
		doc json.RawMessage
		err error
	}
	x.fetches.Add(1)
	defer x.fetches.Add(1)
	answers := make(chan answer, 1)
	go func() { // a call of the store would make the coroutine's stack grow, for as long as that lives
		doc, err := x.options.Fetch(ref)
		answers <- answer{doc, err}
	}()
	a := <-answers
	if a.err != nil {
		return nil, &FetchError{x.options.InstanceID, ref.Ref, a.err}
	}
	return a.doc, nil
}

// fetching reports whether a document is being fetched, or was since a number of fetches that is known, and how many there were.
func (x *execution) fetching(known int64) (since bool, now int64) {
	now = x.fetches.Load() // odd while one is under way
	return now%2 != 0 || now != known, now
}

// refer is data as it is referred to from elsewhere: by where it lies. What is a reference already stays as it is, from whichever
// execution; where nothing may be referred to, a copy comes back.
func (x *execution) refer(at history.Place, data history.Payload) history.Payload {
	doc, ok := data.Document()
	if !ok || x.options.SegmentOf == nil {
		return data
	}
	at.ExecutionID, at.Segment = x.options.ExecutionID, x.options.SegmentOf(at.EventID)
	return at.Refer(doc)
}

// keep takes up the parked inputs of an event. Large documents of theirs stay where they lie: the turn that takes the input refers
// to it, so that history does not grow by it again.
func (x *execution) keep(ev *history.Event) {
	inputs := slices.Clone(ev.Inputs)
	for i := range inputs {
		in := &inputs[i]
		doc, inline := in.Data.Document()
		if in.Kind != history.ExternalEventRaised || !inline || len(doc) <= inlineLimit || x.options.SegmentOf == nil {
			continue
		}
		in.Data = x.refer(history.Place{EventID: ev.ID, Field: history.PlaceInputs, Index: i}, in.Data)
		ref, _ := in.Data.Reference()
		if x.near == nil {
			x.near = map[string]json.RawMessage{}
		}
		x.near[ref.Ref] = doc
		x.nearBytes += len(doc)
	}
	x.parked = append(x.parked, inputs...)
}

// worth is how many of the parked inputs one turn takes: their documents may all have to be in memory, and be fetched, before it is
// over.
func (x *execution) worth() int {
	total := int64(0)
	for i := range x.parked {
		in := &x.parked[i]
		total += int64(len(in.Data) + len(in.Result))
		if ref, ok := in.Data.Reference(); ok {
			total += ref.Bytes
		}
		if total > parkedBytes && i > 0 {
			return i
		}
	}
	return len(x.parked)
}

// carry is what the next execution is told of the external events that nobody has observed. What is small is copied, until it is
// too much altogether; the rest is referred to.
func (x *execution) carry() []history.CarriedEvent {
	all := x.mail.unobserved()
	if len(all) == 0 {
		return nil
	}
	events, copied := make([]history.CarriedEvent, len(all)), 0
	for i, r := range all {
		events[i] = r.CarriedEvent
		n := len(r.Data)
		if _, inline := r.Data.Document(); !inline || n <= referenceBytes {
			continue
		}
		if n <= inlineLimit && copied+n <= carriedInline {
			copied += n
			continue
		}
		events[i].Data = x.refer(r.at, r.Data)
	}
	return events
}

// shed leaves documents that wait in memory where they lie in history, beyond a bound.
func (x *execution) shed() {
	if x.mail == nil || x.options.SegmentOf == nil || x.mail.inline() <= mailInline {
		return
	}
	kept := 0
	for _, r := range x.mail.unobserved() {
		if kept += len(r.Data); kept > mailInline && len(r.Data) > inlineLimit {
			r.Data = x.refer(r.at, r.Data) // what a task was given has its document, too
		}
	}
}
