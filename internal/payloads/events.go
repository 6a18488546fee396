package payloads

import (
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/outputs"
)

// EncodeEvents encodes the payloads of events of an execution in place, except those of some kinds of events. It stores
// large payloads concurrently.
func (e *Encoding) EncodeEvents(
	ctx context.Context, info perdure.PayloadInfo, events []history.Event, except ...history.Kind,
) error {
	if e == nil {
		return nil
	}
	var c calls
	for i := range events {
		if slices.Contains(except, events[i].Kind) {
			continue
		}
		events[i].EachPayload(func(p history.EventPayload) {
			of := info
			of.Kind = p.Kind
			if p.Name != "" {
				of.Name = p.Name
			}
			c.do(e.HasStore() && len(*p.Payload) > perdure.MaxPayloadBytes/2, func() error {
				encoded, err := e.EncodePayload(ctx, of, *p.Payload)
				if err == nil {
					*p.Payload = encoded
				}
				return err
			})
		})
	}
	return c.wait()
}

// EncodeFailure encodes the details of a failure and its causes in place. If the codec cannot encode details
// (IsPermanent), EncodeFailure replaces them by the reason. It returns any other error.
func (e *Encoding) EncodeFailure(ctx context.Context, info perdure.PayloadInfo, f *history.Failure) error {
	if e == nil {
		return nil
	}
	info.Kind = perdure.PayloadErrorDetails
	for ; f != nil; f = f.Cause {
		encoded, err := e.EncodePayload(ctx, info, f.Details)
		switch {
		case err == nil:
			f.Details = encoded
		case IsPermanent(err):
			f.OmitDetails(err.Error())
		default:
			return err
		}
	}
	return nil
}

// MessagePayload is a payload of a message to an execution, received or about to be sent.
type MessagePayload struct {
	About   perdure.PayloadInfo
	Payload *history.Payload
}

// EncodeReceived encodes the received payloads that their senders did not encode, in place. If the payload store holds
// a payload for a message, EncodeReceived makes a copy that the execution owns.
func (e *Encoding) EncodeReceived(ctx context.Context, received []MessagePayload) error {
	var c calls
	for i := range received {
		r := &received[i]
		concurrent := e.HasStore() && (len(*r.Payload) > perdure.MaxPayloadBytes/2 || r.Payload.StorageKey() != "")
		c.do(concurrent, func() error {
			encoded, err := e.EncodePayload(ctx, r.About, *r.Payload)
			if err == nil {
				encoded, err = e.Adopt(ctx, r.About, encoded)
			}
			if err == nil {
				*r.Payload = encoded
			}
			return err
		})
	}
	return c.wait()
}

// AdoptAll calls Adopt for all payloads concurrently, and replaces them in place. It does not change payloads that no
// longer exist.
func (e *Encoding) AdoptAll(ctx context.Context, all []MessagePayload) error {
	var c calls
	for i := range all {
		m := &all[i]
		c.do(true, func() error {
			adopted, err := e.Adopt(ctx, m.About, *m.Payload)
			if err == nil {
				*m.Payload = adopted
			}
			return err
		})
	}
	return c.wait()
}

// CopyForMessages copies stored payloads that events of an execution send to other instances, including responses. Each
// message gets a copy.
func (e *Encoding) CopyForMessages(ctx context.Context, x outputs.Origin, events []history.Event) error {
	if !e.HasStore() {
		return nil
	}
	var c calls
	for i := range events {
		outputs.EachMessagePayload(x, &events[i], func(from, to string) {
			c.do(true, func() error { return e.copyForMessage(ctx, x, from, to) })
		})
	}
	return c.wait()
}

func (e *Encoding) copyForMessage(ctx context.Context, x outputs.Origin, from, to string) error {
	err := e.store.CopyPayload(ctx, from, to)
	if errors.Is(err, provider.ErrNotFound) { // callers would interpret it as a missing instance
		err = perdure.ErrPayloadNotFound
	}
	if err != nil {
		info := perdure.PayloadInfo{InstanceID: x.InstanceID, ExecutionID: x.ExecutionID}
		return &perdure.PayloadError{Payload: info, Key: from, Err: err}
	}
	return nil
}
