package client

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/inputcheck"
	"github.com/perdure/perdure/internal/payloadjson"
	"github.com/perdure/perdure/provider"
)

// Limits of a start, in bytes unless noted.
const (
	MaxInstanceIDBytes     = provider.MaxInstanceIDBytes
	MaxOrchestrationBytes  = inputcheck.MaxOrchestrationBytes
	MaxVersionBytes        = inputcheck.MaxVersionBytes
	MaxTags                = provider.MaxTags // number of tags
	MaxTagKeyBytes         = provider.MaxTagKeyBytes
	MaxTagValueBytes       = provider.MaxTagValueBytes
	MaxIdempotencyKeyBytes = 256
	MaxInputBytes          = perdure.MaxPayloadBytes // perdure.MaxLargePayloadBytes if the hub has a payload store
	MaxDelay               = 3653 * 24 * time.Hour   // ten years with three leap days
)

// The fields that more than one error names.
const (
	fieldInput = "input"
	fieldFrom  = "from"

	fieldIfExists = "ifExists"
)

func (o *startOptions) check(orchestration string) error {
	if err := provider.CheckText("orchestration", orchestration, 1, MaxOrchestrationBytes); err != nil {
		return err
	}
	if o.instanceID != nil {
		if err := inputcheck.InstanceID(*o.instanceID); err != nil {
			return err
		}
	}
	if err := provider.CheckText("version", o.version, 0, MaxVersionBytes); err != nil {
		return err
	}
	if k := o.idempotencyKey; k != nil && (*k == "" || len(*k) > MaxIdempotencyKeyBytes) {
		return &provider.FieldError{Field: "idempotencyKey", Problem: provider.LengthProblem(*k, 1, MaxIdempotencyKeyBytes)}
	}
	if o.delay < 0 || o.delay > MaxDelay {
		return &provider.FieldError{Field: "delay", Problem: fmt.Sprintf("must be 0s to %s (ten years), is %s", MaxDelay, o.delay)}
	}
	if err := o.checkIfExists(); err != nil {
		return err
	}
	if o.from != nil && o.past == nil {
		return &provider.FieldError{Field: fieldFrom, Problem: "requires Restart"}
	}
	return provider.CheckTags(o.tags)
}

// encodePayload encodes a call's value for a field as a payload.
func encodePayload(field string, input any, limit int) (history.Payload, error) {
	doc, raw := input.(json.RawMessage)
	if !raw || doc == nil {
		var err error
		if doc, err = payloadjson.Marshal(input); err != nil {
			return nil, &provider.FieldError{Field: field, Problem: fmt.Sprintf("cannot be encoded as JSON: %v", err)}
		}
	}
	switch {
	case len(doc) > limit:
		return nil, &perdure.PayloadTooLargeError{Name: field, Bytes: len(doc), Limit: limit}
	case !utf8.Valid(doc):
		return nil, &provider.FieldError{Field: field, Problem: "is not valid UTF-8"}
	case !json.Valid(doc):
		return nil, &provider.FieldError{Field: field, Problem: "is not valid JSON: " + json.Unmarshal(doc, new(json.RawMessage)).Error()}
	}
	return history.NewInlinePayload(doc), nil
}
