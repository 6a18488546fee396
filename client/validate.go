package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The limits of what a start may bring, in bytes where nothing else is said.
const (
	MaxInstanceIDBytes     = 1024 // with its prefix it fits a DynamoDB partition key (2,048)
	MaxOrchestrationBytes  = 256
	MaxVersionBytes        = 64
	MaxTags                = 16 // a count
	MaxTagKeyBytes         = 64
	MaxTagValueBytes       = 256
	MaxIdempotencyKeyBytes = 256
	MaxInputBytes          = perdure.MaxPayloadBytes
	MaxDelay               = 3653 * 24 * time.Hour // ten years, with three leap days
)

// The fields that more than one error names.
const (
	fieldTags    = "tags"
	fieldInput   = "input"
	fieldMessage = "message"
)

func (o *startOptions) check(orchestration string) error {
	if err := checkText("orchestration", orchestration, 1, MaxOrchestrationBytes); err != nil {
		return err
	}
	if o.instanceID != nil {
		if err := checkInstanceID(*o.instanceID); err != nil {
			return err
		}
	}
	if err := checkText("version", o.version, 0, MaxVersionBytes); err != nil {
		return err
	}
	if k := o.idempotencyKey; k != nil && (*k == "" || len(*k) > MaxIdempotencyKeyBytes) {
		return &provider.FieldError{Field: "idempotencyKey", Problem: lengthProblem(*k, 1, MaxIdempotencyKeyBytes)}
	}
	if o.delay < 0 || o.delay > MaxDelay {
		return &provider.FieldError{Field: "delay", Problem: fmt.Sprintf("must be 0s to %s (ten years), is %s", MaxDelay, o.delay)}
	}
	return checkTags(o.tags)
}

func checkInstanceID(id string) error {
	return checkText("instanceId", id, 1, MaxInstanceIDBytes)
}

func checkTags(tags map[string]string) error {
	if n := len(tags); n > MaxTags {
		return &provider.FieldError{Field: fieldTags, Problem: fmt.Sprintf("must be at most %d, are %d", MaxTags, n)}
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if problem := textProblem(key, 1, MaxTagKeyBytes); problem != "" {
			return &provider.FieldError{Field: fieldTags, Problem: "has a key that " + problem}
		}
		if problem := textProblem(tags[key], 0, MaxTagValueBytes); problem != "" {
			return &provider.FieldError{Field: fieldTags, Problem: fmt.Sprintf("has a value, of %q, that %s", key, problem)}
		}
	}
	return nil
}

func checkText(field, s string, shortest, longest int) error {
	if problem := textProblem(s, shortest, longest); problem != "" {
		return &provider.FieldError{Field: field, Problem: problem}
	}
	return nil
}

func textProblem(s string, shortest, longest int) string {
	switch at := strings.IndexFunc(s, unicode.IsControl); {
	case len(s) < shortest || len(s) > longest:
		return lengthProblem(s, shortest, longest)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case at >= 0:
		return fmt.Sprintf("has a control character at byte %d", at)
	default:
		return ""
	}
}

func lengthProblem(s string, shortest, longest int) string {
	return fmt.Sprintf("must be %d to %d bytes, is %d", shortest, longest, len(s))
}

// encodePayload makes a payload of what a call was given for a field.
func encodePayload(field string, input any) (history.Payload, error) {
	doc, raw := input.(json.RawMessage)
	if !raw || doc == nil {
		var err error
		if doc, err = json.Marshal(input); err != nil {
			return nil, &provider.FieldError{Field: field, Problem: fmt.Sprintf("cannot be encoded as JSON: %v", err)}
		}
	}
	switch {
	case len(doc) > MaxInputBytes:
		return nil, &perdure.PayloadTooLargeError{What: field, Bytes: len(doc), Limit: MaxInputBytes}
	case !utf8.Valid(doc):
		return nil, &provider.FieldError{Field: field, Problem: "is not valid UTF-8"}
	case !json.Valid(doc):
		return nil, &provider.FieldError{Field: field, Problem: "is not valid JSON"}
	}
	return history.Inline(doc), nil
}
