package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// WithCodec sets the codec of the hub's programs (perdure.Codec): the client encodes what it sends with it, and decodes what it reads. Others are codecs
// to read with alone, as those of before; a nil codec encodes nothing. Given twice, the later option counts. New panics where an id is none, or two are the same.
//
// A client without it sends what the hub's orchestrator encodes before it stores it; the input of a start alone, which goes straight into history,
// stays as it is. What is encoded it shows as a SealedPayload.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return func(c *Client) { c.codecs = append([]perdure.Codec{codec}, others...) }
}

// newVault makes what the client seals and opens payloads by.
func newVault(codecs []perdure.Codec, h Hub) *vault.Vault {
	var store provider.Payloads
	if k, ok := offered.By[provider.PayloadKeeper](h); ok {
		store = k.Payloads()
	}
	v, err := vault.New(codecs, store)
	if err != nil {
		panic("client: WithCodec: " + err.Error())
	}
	return v
}

// sealInput seals the input of a start, and has the execution that is to begin own what lies in the store.
func (c *Client) sealInput(ctx context.Context, s *provider.Start) (err error) {
	if c.vault == nil && s.Past == nil && s.Input.StoredAt() == "" { // what lies in a bucket only a client that has it may start again
		return nil
	}
	first := provider.NewExecutionID(c.now().UTC().Truncate(time.Millisecond), s.InstanceID, s.StartID)
	if s.Past != nil { // it has its input in the history that it takes over
		return c.ownPast(ctx, s, first)
	}
	about := perdure.PayloadInfo{InstanceID: s.InstanceID, ExecutionID: first, Kind: perdure.PayloadOrchestrationInput, Name: s.Name}
	if s.Input, err = c.vault.SealPayload(ctx, about, s.Input); err != nil {
		return err
	}
	before := s.Input.StoredAt()
	if before == "" {
		return nil
	}
	if s.Input, err = c.vault.Own(ctx, about, s.Input); err != nil { // of an instance that is started again
		return err
	}
	if provider.ExecutionOfPayload(s.Input.StoredAt()) != first {
		return &perdure.PayloadError{Payload: about, Key: before, Err: perdure.ErrPayloadMissing}
	}
	s.ExecutionID = first
	return nil
}

// forgetInput deletes what a start has stored that has begun no execution. Where it may have, or this fails, a sweep looks: an instance that is in a later
// execution may have begun with this start, whose answer was lost.
func (c *Client) forgetInput(ctx context.Context, s *provider.Start, started *provider.Instance, err error) {
	another := err == nil && started.ExecutionNumber == 1 && started.ExecutionID != s.ExecutionID || errors.Is(err, ErrAlreadyExists)
	if s.ExecutionID == "" || !another {
		return
	}
	_ = c.vault.Forget(context.WithoutCancel(ctx), storedFor(s)...)
}

// storedFor returns the keys under which a start has stored payloads of its execution.
func storedFor(s *provider.Start) (keys []string) {
	add := func(p history.Payload) {
		if key := p.StoredAt(); key != "" {
			keys = append(keys, key)
		}
	}
	add(s.Input)
	if s.Past != nil {
		for i := range s.Past.Events {
			s.Past.Events[i].Payloads(func(of history.EventPayload) { add(*of.Payload) })
		}
	}
	return keys
}

// SealedPayload is a payload that the client cannot show: its codec is another's, or it cannot be read any more.
type SealedPayload struct {
	// Codec is the id of the codec that has encoded it; empty: none has.
	Codec string `json:"codec,omitempty"`
	// Key is where it lies in the hub's bucket of large payloads; empty: in its event.
	Key string `json:"key,omitempty"`
	// Bytes is the size of its JSON.
	Bytes int64 `json:"bytes"`

	cause error // why it is not shown, where this client has tried
}

// SealedOf returns what can be said of a payload of a history that is not shown. ok is false for one that is.
func SealedOf(p history.Payload) (s SealedPayload, ok bool) {
	sealed, ok := p.Sealed()
	return SealedPayload{Codec: sealed.Codec, Key: sealed.Key, Bytes: sealed.Bytes}, ok
}

// unseal returns the document of a payload, or what can be said of one that it cannot show. Only what may be an outage is an error.
func (c *Client) unseal(ctx context.Context, about perdure.PayloadInfo, p history.Payload) (doc json.RawMessage, sealed *SealedPayload, err error) {
	doc, err = c.vault.Open(ctx, about, p)
	if err == nil || !vault.IsFinal(err) {
		return doc, nil, err
	}
	s, ok := SealedOf(p)
	if !ok {
		return nil, nil, err
	}
	s.cause = err
	return nil, &s, nil
}

// openFailure returns a failure with the details that the client can show as documents: a copy, where there are any. Those that it cannot show stay sealed.
// Only what may be an outage is an error.
func (c *Client) openFailure(ctx context.Context, about perdure.PayloadInfo, f *history.Failure) (*history.Failure, error) {
	f = f.Clone()
	var failed error
	f.Payloads(about.Name, func(p history.EventPayload) {
		doc, err := c.vault.Open(ctx, about, *p.Payload)
		switch {
		case err == nil:
			*p.Payload = history.Inline(doc)
		case !vault.IsFinal(err):
			failed = err
		}
	})
	return f, failed
}

// Payload returns the document of a payload of an instance's history, of which History may have left out what it refers to. The error is a
// *perdure.PayloadError where it cannot be read, with perdure.ErrPayloadMissing where it is gone.
func (c *Client) Payload(ctx context.Context, instanceID string, of history.EventPayload) (json.RawMessage, error) {
	doc, err := c.vault.Open(ctx, perdure.PayloadInfo{InstanceID: instanceID, Kind: of.Kind, Name: of.Name}, *of.Payload)
	if err != nil {
		return nil, fmt.Errorf("client: payload: %w", err)
	}
	return doc, nil
}

// StoredPayload returns what lies in the hub's bucket of a payload of an instance's history (SealedPayload with a Key), as it lies there: encoded, where a
// codec has encoded it, which the client need not have. It is up to 40 MiB, of which the client keeps up to 8 MiB for the next call, 32 MiB in all. Errors
// are those of Payload.
func (c *Client) StoredPayload(ctx context.Context, instanceID string, of history.EventPayload) ([]byte, error) {
	data, err := c.vault.Stored(ctx, perdure.PayloadInfo{InstanceID: instanceID, Kind: of.Kind, Name: of.Name}, *of.Payload)
	if err != nil {
		return nil, fmt.Errorf("client: stored payload: %w", err)
	}
	return data, nil
}

// show opens the payloads of an event that are encoded and lie in it, as far as the client can.
func (c *Client) show(ctx context.Context, instanceID string, e *history.Event) {
	if c.vault == nil {
		return
	}
	e.Error = e.Error.Clone()
	e.Payloads(func(of history.EventPayload) {
		s, sealed := of.Payload.Sealed()
		if !sealed || s.Key != "" {
			return
		}
		doc, err := c.vault.Open(ctx, perdure.PayloadInfo{InstanceID: instanceID, ExecutionID: e.ExecutionID, Kind: of.Kind, Name: of.Name}, *of.Payload)
		if err == nil { // else it is shown as what it is
			*of.Payload = history.Inline(doc)
		}
	})
}

// statusOf is what is known of an instance without its result.
func (c *Client) statusOf(ctx context.Context, in *provider.Instance) Status {
	s := statusOf(in)
	p := history.Payload(in.CustomStatus)
	if !p.IsSealed() {
		if doc, plain := p.Document(); plain {
			s.CustomStatus = doc
		}
		return s
	}
	about := perdure.PayloadInfo{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Kind: perdure.PayloadCustomStatus, Name: in.Name}
	s.CustomStatus, s.CustomStatusSealed, _ = c.unseal(ctx, about, p)
	if s.CustomStatus == nil && s.CustomStatusSealed == nil { // an outage is no reason to know nothing of an instance
		sealed, _ := SealedOf(p)
		s.CustomStatusSealed = &sealed
	}
	return s
}

// SweepPayloads deletes large payloads that nobody refers to: of executions that never began, or are purged, stored two days ago or earlier by a process
// that died, or was late. Whatever lives goes with its instance, and needs no sweep. It yields how many it has deleted, after each page of a thousand keys that it has looked
// at; a page costs a call of S3 and a read for each execution in it. After an error it may be begun again. It does nothing in a hub without a bucket.
func (c *Client) SweepPayloads(ctx context.Context) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		k, ok := offered.By[provider.PayloadKeeper](c.hub)
		for after := ""; ok; {
			next, deleted, err := k.SweepPayloads(ctx, after)
			if err != nil {
				yield(deleted, fmt.Errorf("client: sweep: %w", err))
				return
			}
			if !yield(deleted, nil) || next == "" {
				return
			}
			after = next
		}
	}
}
