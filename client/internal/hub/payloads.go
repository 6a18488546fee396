package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/provider"
)

// Encode encodes the value of a field as a payload of at most limit bytes. A json.RawMessage is used as is.
func Encode(field string, value any, limit int) (history.Payload, error) {
	doc, raw := value.(json.RawMessage)
	if !raw || doc == nil {
		var err error
		if doc, err = payloadjson.Marshal(value); err != nil {
			return nil, &provider.FieldError{Field: field, Problem: fmt.Sprintf("cannot be encoded as JSON: %v", err)}
		}
	}
	switch {
	case len(doc) > limit:
		return nil, &perdure.PayloadTooLargeError{Name: field, Bytes: len(doc), Limit: limit}
	case !utf8.Valid(doc):
		return nil, &provider.FieldError{Field: field, Problem: "is not valid UTF-8"}
	case !json.Valid(doc):
		syntax := json.Unmarshal(doc, new(json.RawMessage))
		return nil, &provider.FieldError{Field: field, Problem: "is not valid JSON: " + syntax.Error()}
	}
	return history.NewInlinePayload(doc), nil
}

// Decode returns the document of a payload. If this client cannot decode or read an encoded payload, Decode returns the
// reason as undecodable. It returns err for outages, and for errors of payloads that are not encoded.
func (h *Hub) Decode(
	ctx context.Context, about perdure.PayloadInfo, p history.Payload,
) (doc json.RawMessage, undecodable, err error) {
	doc, err = h.Encoding.Decode(ctx, about, p)
	if _, encoded := p.Encoded(); err == nil || !encoded || !payloads.IsPermanent(err) {
		return doc, nil, err
	}
	return nil, err, nil
}

// DecodeFailure returns a copy of a failure with decoded details. Details that this client cannot decode stay encoded.
// It returns an error only for outages.
func (h *Hub) DecodeFailure(
	ctx context.Context, about perdure.PayloadInfo, f *history.Failure,
) (*history.Failure, error) {
	f = f.Clone()
	var failed error
	f.EachPayload(about.Name, func(p history.EventPayload) {
		doc, err := h.Encoding.Decode(ctx, about, *p.Payload)
		switch {
		case err == nil:
			*p.Payload = history.NewInlinePayload(doc)
		case !payloads.IsPermanent(err):
			failed = err
		}
	})
	return f, failed
}

// DecodeEvent decodes the payloads in an event that are not in the payload store. Payloads that this client cannot
// decode stay encoded.
func (h *Hub) DecodeEvent(ctx context.Context, instanceID string, e *history.Event) {
	if h.Encoding == nil {
		return
	}
	e.Error = e.Error.Clone()
	e.EachPayload(func(of history.EventPayload) {
		encoded, ok := of.Payload.Encoded()
		if !ok || encoded.Key != "" {
			return
		}
		about := perdure.PayloadInfo{
			InstanceID: instanceID, ExecutionID: e.ExecutionID, Kind: of.Kind, Name: of.Name,
		}
		if doc, err := h.Encoding.Decode(ctx, about, *of.Payload); err == nil {
			*of.Payload = history.NewInlinePayload(doc)
		}
	})
}
