package client

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client/internal/starting"
	"github.com/perdure/perdure/internal/inputcheck"
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
	MaxIdempotencyKeyBytes = starting.MaxIdempotencyKeyBytes
	MaxInputBytes          = perdure.MaxPayloadBytes // perdure.MaxLargePayloadBytes if the hub has a payload store
	MaxDelay               = starting.MaxDelay       // ten years with three leap days
)

// fieldInput is the field of the input of a query or an update.
const fieldInput = "input"
