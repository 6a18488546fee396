// Package loading loads the data that an execution needs. The data may be at another position of the history, encoded
// by a codec, or in a payload store.
package loading

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/perdure/perdure/history"
)

const (
	// CopyLimit is the size up to which data is copied instead of referenced. A reference takes about 200 bytes.
	CopyLimit = 1 << 10
	// MemoryLimit is the size up to which the data of waiting events, or of waiting updates, stays in memory.
	MemoryLimit = 4 << 20
)

// FetchError is returned if a document could not be read from the position to which a reference points. It is a failure
// of the store, not of the instance.
type FetchError struct {
	InstanceID, Ref string
	Err             error
}

func (e *FetchError) Error() string {
	return fmt.Sprintf("instance %q: read the document at %s: %v", e.InstanceID, e.Ref, e.Err)
}

func (e *FetchError) Unwrap() error { return e.Err }

// errNoFetch is the cause if the required option is not set.
var errNoFetch = errors.New("not fetched: Options.Fetch or Options.Decoder is not set")

// Decoder decodes the encoded payloads of an execution.
type Decoder interface {
	// Open returns the document of an encoded payload. Same reports whether doc is the document of an encoded payload.
	// The payloads in ahead are likely to be read next. Open may fetch them from the payload store in the same call.
	Open(of history.EventPayload, ahead []history.EventPayload) (json.RawMessage, error)
	Same(of history.EventPayload, doc json.RawMessage) (bool, error)
}

// Options describe an execution and how to read its data. Fetch, Decoder and SegmentOf may be nil.
type Options struct {
	*history.ExecutionRef

	// SegmentOf returns the segment that contains an event. If it is nil, data is copied instead of referenced.
	SegmentOf func(eventID int64) int64
	// Fetch returns the document to which a reference points.
	Fetch func(r history.Reference) (json.RawMessage, error)
	// Decoder decodes payloads.
	Decoder Decoder
}

// Loader loads the data of an execution. It belongs to the goroutine that runs the turn, except for CallsSince.
type Loader struct {
	options Options
	calls   atomic.Int64 // twice the number of finished calls; odd during a call

	// near holds the documents of parked inputs that are already in memory, by reference.
	near      map[string]json.RawMessage
	nearBytes int

	prefetch prefetch
}

// Init sets the options of a new Loader.
func (l *Loader) Init(opts *Options) { l.options = *opts }

// Find returns the document of a payload, or the encoded payload. It follows a reference into the history.
func (l *Loader) Find(data history.Payload) (doc json.RawMessage, encoded bool, err error) {
	doc, inline := data.Document()
	if inline {
		return doc, false, nil
	}
	if data.IsEncoded() {
		return json.RawMessage(data), true, nil
	}
	ref, _ := data.Reference()
	if doc, inline = l.near[ref.Ref]; !inline {
		if doc, err = l.fetch(ref); err != nil {
			return nil, false, err
		}
	}
	return doc, ref.IsEncoded(), nil
}

func (l *Loader) fetch(ref history.Reference) (doc json.RawMessage, err error) {
	if l.options.Fetch == nil {
		return nil, &FetchError{l.options.InstanceID, ref.Ref, errNoFetch}
	}
	l.call(func() { doc, err = l.options.Fetch(ref) })
	if err != nil {
		return nil, &FetchError{l.options.InstanceID, ref.Ref, err}
	}
	return doc, nil
}

// Decode returns the document of an encoded payload of an event. The payloads in ahead are likely to be needed next.
func (l *Loader) Decode(
	of history.EventPayload, eventID int64, ahead ...history.EventPayload,
) (doc json.RawMessage, err error) {
	if l.options.Decoder == nil {
		return nil, l.decodeError(eventID, errNoFetch)
	}
	l.call(func() { doc, err = l.options.Decoder.Open(of, ahead) })
	if err != nil {
		return nil, l.decodeError(eventID, err)
	}
	return doc, nil
}

// DecodeFailure returns a failure with the decoded details of itself and its causes. It copies f only if details are
// encoded.
func (l *Loader) DecodeFailure(f *history.Failure, name string, eventID int64) (*history.Failure, error) {
	if f == nil {
		return nil, nil //nolint:nilnil // there is no failure
	}
	cause, err := l.DecodeFailure(f.Cause, name, eventID)
	if err != nil {
		return nil, err
	}
	encoded := f.Details.IsEncoded()
	if !encoded && cause == f.Cause {
		return f, nil
	}
	decoded := *f
	decoded.Cause = cause
	if encoded {
		of := history.EventPayload{Payload: &decoded.Details, Kind: history.PayloadErrorDetails, Name: name}
		doc, err := l.Decode(of, eventID)
		if err != nil {
			return nil, err
		}
		decoded.Details = history.NewInlinePayload(doc)
	}
	return &decoded, nil
}

// Same reports whether doc is the document of an encoded payload of an event.
func (l *Loader) Same(eventID int64, recorded history.EventPayload, doc json.RawMessage) (same bool, err error) {
	if l.options.Decoder == nil {
		return true, nil
	}
	l.call(func() { same, err = l.options.Decoder.Same(recorded, doc) })
	if err != nil {
		return false, l.decodeError(eventID, err)
	}
	return same, nil
}

func (l *Loader) decodeError(eventID int64, err error) error {
	return &FetchError{l.options.InstanceID, fmt.Sprintf("event #%d", eventID), err}
}

// call calls the store or a codec on another goroutine. Otherwise the stack of the coroutine would grow and not shrink.
// The time of the call does not count towards the limit of the turn (CallsSince).
func (l *Loader) call(f func()) {
	l.calls.Add(1)
	defer l.calls.Add(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// CallsSince reports whether a call is running, or has ended since CallsSince returned known. CallsSince is safe for
// concurrent use.
func (l *Loader) CallsSince(known int64) (some bool, now int64) {
	now = l.calls.Load()
	return now%2 != 0 || now != known, now
}

// CanRefer reports whether data can be referenced instead of copied.
func (l *Loader) CanRefer() bool { return l.options.SegmentOf != nil }

// Refer returns a reference to data at a location of this execution. It returns data itself if that is a reference
// already, or if references are not possible.
func (l *Loader) Refer(at history.DataLocation, data history.Payload) history.Payload {
	if !l.CanRefer() {
		return data
	}
	at.ExecutionID = l.options.ExecutionID
	at.Segment = l.options.SegmentOf(at.EventID)
	return at.ReferTo(data)
}

// ReferParked replaces large data of a parked input by a reference. The document remains in memory. The turn that takes
// the input commits the reference, so that the history does not contain the document twice.
func (l *Loader) ReferParked(at history.DataLocation, in *history.Event) {
	doc, inline := in.Data.Referable()
	if !in.Kind.HasData() || !inline || len(doc) <= CopyLimit || !l.CanRefer() {
		return
	}

	in.Data = l.Refer(at, in.Data)
	ref, _ := in.Data.Reference()
	if l.near == nil {
		l.near = map[string]json.RawMessage{}
	}
	l.near[ref.Ref] = doc
	l.nearBytes += len(doc)
}

// ParkedBytes returns the size of the documents that ReferParked keeps in memory.
func (l *Loader) ParkedBytes() int { return l.nearBytes }

// DropParked drops the documents that ReferParked keeps in memory.
func (l *Loader) DropParked() {
	l.near = nil
	l.nearBytes = 0
}

// AddResult registers a result in the payload store that the code of the execution may take.
func (l *Loader) AddResult(id int64, r Result) { l.prefetch.add(id, r) }

// TakeResult records that the code takes a result. It returns the results that the code is likely to take next.
func (l *Loader) TakeResult(id int64) (next []history.EventPayload) { return l.prefetch.take(id) }
