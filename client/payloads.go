package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
)

// WithCodec sets the codec of the hub (perdure.Codec). The client encodes payloads with it before it sends them, and
// decodes payloads that it reads. The other codecs only decode, for example payloads of earlier codecs. If codec is
// nil, payloads are not encoded. A later WithCodec option replaces an earlier one. New panics if a codec's ID is
// invalid or two IDs are equal.
//
// If the client has no codec, the hub's orchestrator encodes the client's payloads before it stores them, except for
// the input of a start. The client then returns encoded payloads as an EncodedPayload.
func WithCodec(codec perdure.Codec, others ...perdure.Codec) Option {
	return func(o *options) { o.codecs = append([]perdure.Codec{codec}, others...) }
}

// newEncoding returns the encoding with the codecs and the payload store of a backend.
func newEncoding(codecs []perdure.Codec, h Backend) *payloads.Encoding {
	e, err := payloads.New(codecs, payloads.StoreOf(h))
	if err != nil {
		panic("client: WithCodec: " + err.Error())
	}
	return e
}

// EncodedPayload describes a payload that the client cannot decode or read.
type EncodedPayload struct {
	// Codec is the ID of the codec that encoded the payload. It is empty if no codec did.
	Codec string `json:"codec,omitempty"`
	// Key is the payload's key in the hub's payload store. It is empty if the event contains the payload.
	Key string `json:"key,omitempty"`
	// Bytes is the size of the payload's JSON in bytes.
	Bytes int64 `json:"bytes"`

	cause error // error of the attempt to decode the payload, or nil
}

// EncodedPayloadOf describes a payload of a history that is encoded or in the payload store. ok is false for any other
// payload.
func EncodedPayloadOf(p history.Payload) (e EncodedPayload, ok bool) {
	encoded, ok := p.Encoded()
	return EncodedPayload{Codec: encoded.Codec, Key: encoded.Key, Bytes: encoded.Bytes}, ok
}

// Payload returns the document of a payload of an instance's history, including payloads in the payload store. The
// error is a *perdure.PayloadError if the payload cannot be read. It wraps perdure.ErrPayloadNotFound if the payload
// was deleted.
func (c *Client) Payload(ctx context.Context, instanceID string, of history.EventPayload) (json.RawMessage, error) {
	if doc, inline := of.Payload.Document(); inline {
		return doc, nil
	}
	if err := c.requireProvider("Payload"); err != nil {
		return nil, err
	}
	about := perdure.PayloadInfo{InstanceID: instanceID, Kind: of.Kind, Name: of.Name}
	doc, err := c.hub.Encoding.Decode(ctx, about, *of.Payload)
	if err != nil {
		return nil, fmt.Errorf("client: payload: %w", err)
	}
	return doc, nil
}

// StoredPayload returns a payload of an instance's history from the payload store without decoding it. It requires a
// payload with a Key (see EncodedPayload). The client does not need the codec of the payload. A payload has up to 40
// MiB. The client caches payloads of up to 8 MiB, 32 MiB in total. StoredPayload returns the errors of Payload.
func (c *Client) StoredPayload(ctx context.Context, instanceID string, of history.EventPayload) ([]byte, error) {
	if err := c.requireProvider("StoredPayload"); err != nil {
		return nil, err
	}
	about := perdure.PayloadInfo{InstanceID: instanceID, Kind: of.Kind, Name: of.Name}
	data, err := c.hub.Encoding.ReadStored(ctx, about, *of.Payload)
	if err != nil {
		return nil, fmt.Errorf("client: stored payload: %w", err)
	}
	return data, nil
}
