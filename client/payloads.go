package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/offered"
	"github.com/perdure/perdure/internal/vault"
	"github.com/perdure/perdure/provider"
)

// WithCodec sets the codec of the hub (perdure.Codec). The client encodes payloads with it before it sends them, and
// decodes payloads that it reads. The other codecs only decode, for example payloads of earlier codecs. A nil codec
// encodes nothing. If WithCodec is given twice, the later option counts. New panics if a codec's ID is invalid or two
// IDs are equal.
//
// Without a codec, the hub's orchestrator encodes the client's payloads before it stores them, except the input of a
// start, which stays unencoded. Encoded payloads are returned as an EncodedPayload.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return func(o *options) { o.codecs = append([]perdure.Codec{codec}, others...) }
}

// newVault makes what the client seals and opens payloads by.
func newVault(codecs []perdure.Codec, h Backend) *vault.Vault {
	var store provider.PayloadStore
	if k, ok := offered.By[provider.PayloadStoreProvider](h); ok {
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
	if c.vault == nil && s.RestartFrom == nil && s.Input.StorageKey() == "" { // what lies in a bucket only a client that has it may start again
		return nil
	}
	first := provider.NewExecutionID(c.now().UTC().Truncate(time.Millisecond), s.InstanceID, s.StartID)
	if s.RestartFrom != nil { // it has its input in the history that it takes over
		return c.ownPast(ctx, s, first)
	}
	about := perdure.PayloadInfo{InstanceID: s.InstanceID, ExecutionID: first, Kind: perdure.PayloadOrchestrationInput, Name: s.Name}
	if s.Input, err = c.vault.SealPayload(ctx, about, s.Input); err != nil {
		return err
	}
	before := s.Input.StorageKey()
	if before == "" {
		return nil
	}
	if s.Input, err = c.vault.Own(ctx, about, s.Input); err != nil { // of an instance that is started again
		return err
	}
	if provider.ExecutionOfPayload(s.Input.StorageKey()) != first {
		return &perdure.PayloadError{Payload: about, Key: before, Err: perdure.ErrPayloadNotFound}
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
		if key := p.StorageKey(); key != "" {
			keys = append(keys, key)
		}
	}
	add(s.Input)
	if s.RestartFrom != nil {
		for i := range s.RestartFrom.Events {
			s.RestartFrom.Events[i].EachPayload(func(of history.EventPayload) { add(*of.Payload) })
		}
	}
	return keys
}

// EncodedPayload describes a payload that the client cannot decode or read.
type EncodedPayload struct {
	// Codec is the ID of the codec that encoded the payload. It is empty if none did.
	Codec string `json:"codec,omitempty"`
	// Key is the payload's key in the hub's payload store. It is empty if the payload is in its event.
	Key string `json:"key,omitempty"`
	// Bytes is the size of the payload's JSON in bytes.
	Bytes int64 `json:"bytes"`

	cause error // why it is not shown, where this client has tried
}

// EncodedPayloadOf describes a payload of a history that is encoded or in the payload store. ok is false for any other payload.
func EncodedPayloadOf(p history.Payload) (s EncodedPayload, ok bool) {
	sealed, ok := p.Encoded()
	return EncodedPayload{Codec: sealed.Codec, Key: sealed.Key, Bytes: sealed.Bytes}, ok
}

// unseal returns the document of a payload, or what can be said of one that it cannot show. Only what may be an outage is an error.
func (c *Client) unseal(ctx context.Context, about perdure.PayloadInfo, p history.Payload) (doc json.RawMessage, sealed *EncodedPayload, err error) {
	doc, err = c.vault.Open(ctx, about, p)
	if err == nil || !vault.IsFinal(err) {
		return doc, nil, err
	}
	s, ok := EncodedPayloadOf(p)
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
	f.EachPayload(about.Name, func(p history.EventPayload) {
		doc, err := c.vault.Open(ctx, about, *p.Payload)
		switch {
		case err == nil:
			*p.Payload = history.NewInlinePayload(doc)
		case !vault.IsFinal(err):
			failed = err
		}
	})
	return f, failed
}

// Payload returns the document of a payload of an instance's history, including payloads in the payload store. The
// error is a *perdure.PayloadError if the payload cannot be read. It contains perdure.ErrPayloadNotFound if the payload
// no longer exists.
func (c *Client) Payload(ctx context.Context, instanceID string, of history.EventPayload) (json.RawMessage, error) {
	doc, err := c.vault.Open(ctx, perdure.PayloadInfo{InstanceID: instanceID, Kind: of.Kind, Name: of.Name}, *of.Payload)
	if err != nil {
		return nil, fmt.Errorf("client: payload: %w", err)
	}
	return doc, nil
}

// StoredPayload returns a payload of an instance's history from the payload store without decoding it. It requires a
// payload with a Key (see EncodedPayload). The client does not need its codec. A payload has up to 40 MiB. The client
// caches payloads of up to 8 MiB, 32 MiB in total. StoredPayload returns the errors of Payload.
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
	e.EachPayload(func(of history.EventPayload) {
		s, sealed := of.Payload.Encoded()
		if !sealed || s.Key != "" {
			return
		}
		doc, err := c.vault.Open(ctx, perdure.PayloadInfo{InstanceID: instanceID, ExecutionID: e.ExecutionID, Kind: of.Kind, Name: of.Name}, *of.Payload)
		if err == nil { // else it is shown as what it is
			*of.Payload = history.NewInlinePayload(doc)
		}
	})
}

// statusOf is what is known of an instance without its result.
func (c *Client) statusOf(ctx context.Context, in *provider.Instance) Status {
	s := statusOf(in)
	p := history.Payload(in.CustomStatus)
	if !p.IsEncoded() {
		if doc, plain := p.Document(); plain {
			s.CustomStatus = doc
		}
		return s
	}
	about := perdure.PayloadInfo{InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Kind: perdure.PayloadCustomStatus, Name: in.Name}
	s.CustomStatus, s.EncodedCustomStatus, _ = c.unseal(ctx, about, p)
	if s.CustomStatus == nil && s.EncodedCustomStatus == nil { // an outage is no reason to know nothing of an instance
		sealed, _ := EncodedPayloadOf(p)
		s.EncodedCustomStatus = &sealed
	}
	return s
}
