package verification

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/internal/retrybudget"
)

// source reads the documents and objects to which a history refers.
type source struct {
	document func(history.Reference) (json.RawMessage, error)
	// object reads an object of the payload store. It is nil if the history does not refer to any object.
	object func(key string) ([]byte, error)
}

// source returns a source that reads only data to which the history refers, because the binary must not read other
// data.
func (v *Verification) source(ctx context.Context, h *replaycheck.History) source {
	s := source{document: func(ref history.Reference) (doc json.RawMessage, err error) {
		err = v.retry(ctx, func() error {
			doc, err = v.document(ctx, h.InstanceID, ref)
			return err
		})
		return doc, err
	}}
	if o := objectsOf(h); o.left > 0 {
		s.object = func(key string) (data []byte, err error) {
			of, err := o.take(key)
			if err != nil {
				return nil, err
			}
			err = v.retry(ctx, func() error {
				data, err = v.client.StoredPayload(ctx, h.InstanceID, of)
				return err
			})
			return data, err
		}
	}
	return s
}

// document reads the document of an event of this or an earlier execution.
func (v *Verification) document(ctx context.Context, id string, ref history.Reference) (json.RawMessage, error) {
	at, err := history.ParseDataLocation(ref.Ref)
	if err != nil {
		return nil, err
	}
	events := v.client.History(ctx, id, client.WithExecutionID(at.ExecutionID), client.AfterEvent(at.EventID-1))
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		doc, ok := at.DocumentIn([]history.Event{e})
		if !ok || len(doc) == 0 {
			break
		}
		return doc, ref.Check(doc)
	}
	return nil, fmt.Errorf("history of instance %q does not contain it", id)
}

// objects are the payloads of a history in the payload store.
type objects struct {
	instance string
	byKey    map[string]history.EventPayload
	payloads int
	left     int // the number of requests that the replay may still make
}

// maxRequestsEach is the maximum number of requests of a replay for each stored payload. A replay reads the payload of
// an update twice, and other payloads once. It also repeats requests for prefetched payloads that were dropped from the
// cache.
const maxRequestsEach = 4

// objectsOf returns the payloads of a history in the payload store.
func objectsOf(h *replaycheck.History) *objects {
	o := &objects{instance: h.InstanceID, byKey: map[string]history.EventPayload{}}
	for i := range h.Events {
		h.Events[i].EachPayload(func(of history.EventPayload) {
			if key := of.Payload.StorageKey(); key != "" {
				o.byKey[key] = of
				o.payloads++
			}
		})
	}
	o.left = maxRequestsEach * o.payloads
	return o
}

// tooManyRequestsError reports a binary that requests payloads endlessly.
type tooManyRequestsError struct {
	instance string
	requests int
	payloads int
}

// Error implements error.
func (e *tooManyRequestsError) Error() string {
	return fmt.Sprintf("binary requested payloads from the payload store %d times, but instance %q has only %d there",
		e.requests, e.instance, e.payloads)
}

// take counts a request for an object and returns the payload.
func (o *objects) take(key string) (history.EventPayload, error) {
	if o.left == 0 {
		return history.EventPayload{}, &tooManyRequestsError{o.instance, maxRequestsEach * o.payloads, o.payloads}
	}
	o.left--
	of, ok := o.byKey[key]
	if !ok {
		return of, fmt.Errorf("history of instance %q does not refer to object %s", o.instance, key)
	}
	return of, nil
}

// Delays between two attempts of a call.
const (
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
)

// retry repeats a call while it fails with transient errors, until ctx ends. Therefore, long throttling does not
// discard the findings so far.
func (v *Verification) retry(ctx context.Context, call func() error) error {
	for delay := firstDelay; ; delay = min(2*delay, maxDelay) {
		err := call()
		if !retrybudget.IsTransient(err) || ctx.Err() != nil {
			return err
		}
		v.progress.SetRetry(err)
		if err := v.env.Sleep(ctx, delay); err != nil {
			return err
		}
		v.progress.SetRetry(nil)
	}
}
