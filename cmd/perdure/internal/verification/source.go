package verification

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/replaycheck"
	"github.com/perdure/perdure/provider"
)

// source is where a binary's replay has read for it what a history refers to.
type source struct {
	document func(history.Reference) (json.RawMessage, error)
	// object reads what lies in the hub's bucket; nil: there is nothing, or nobody can.
	object func(key string) ([]byte, error)
}

// source reads from the hub what a history refers to, and nothing else: the code is not to be trusted with more.
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

// document reads an event of this or a past execution that a history refers to.
func (v *Verification) document(ctx context.Context, id string, ref history.Reference) (json.RawMessage, error) {
	at, err := history.ParseDataLocation(ref.Ref)
	if err != nil {
		return nil, err
	}
	for e, err := range v.client.History(ctx, id, client.WithExecutionID(at.ExecutionID), client.AfterEvent(at.EventID-1)) {
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

// objects are what a history has in the bucket, and how often the replay may still ask for any.
type objects struct {
	instance string
	by       map[string]history.EventPayload // by key
	payloads int
	left     int
}

// askedEach is how often a replay may ask for each payload that lies in the bucket. Code takes each once, an update's twice; what was fetched ahead, and had to make room
// before it was taken, is asked for again.
const maxRequestsEach = 4

// objectsOf lists what a history has in the bucket.
func objectsOf(h *replaycheck.History) *objects {
	o := &objects{instance: h.InstanceID, by: map[string]history.EventPayload{}}
	for i := range h.Events {
		h.Events[i].EachPayload(func(of history.EventPayload) {
			if key := of.Payload.StorageKey(); key != "" {
				o.by[key] = of
				o.payloads++
			}
		})
	}
	o.left = maxRequestsEach * o.payloads
	return o
}

// asksOnError is about a binary that never stops to ask.
type tooManyRequestsError struct {
	instance string
	asked    int
	payloads int
}

// Error implements error.
func (e *tooManyRequestsError) Error() string {
	return fmt.Sprintf("binary requested payloads from the payload store %d times, but instance %q has only %d there",
		e.asked, e.instance, e.payloads)
}

// take notes that an object is asked for, and returns what it is.
func (o *objects) take(key string) (history.EventPayload, error) {
	if o.left == 0 {
		return history.EventPayload{}, &tooManyRequestsError{o.instance, maxRequestsEach * o.payloads, o.payloads}
	}
	o.left--
	of, ok := o.by[key]
	if !ok {
		return of, fmt.Errorf("history of instance %q does not refer to object %s", o.instance, key)
	}
	return of, nil
}

// The pauses between two tries, of which each is twice as long as the one before.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
)

// patiently makes a call of the hub until it succeeds, as long as it may yet do so and there is time: where a service throttles for longer than a call
// is repeated anyway, what was found so far is not thrown away for it.
func (v *Verification) retry(ctx context.Context, call func() error) error {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := call()
		if failed, ok := errors.AsType[*provider.Error](err); !ok || !failed.Retryable || ctx.Err() != nil {
			return err
		}
		v.progress.SetRetry(err)
		if err := v.env.Sleep(ctx, pause); err != nil {
			return err
		}
		v.progress.SetRetry(nil)
	}
}
