// Package apiwire has the parts of the HTTP API that its server and its clients share: the codes of problems, the
// problem document, responses, and the form of IDs in paths.
package apiwire

// The codes of problems, for programs. They only grow.
const (
	CodeInvalidRequest       = "invalid_request"
	CodeNoRoute              = "no_such_route"
	CodeMethod               = "method_not_allowed"
	CodeUnknownOrchestration = "unknown_orchestration"
	CodeInstanceNotFound     = "instance_not_found"
	CodeExecutionNotFound    = "execution_not_found"
	CodeActivityNotFound     = "activity_not_found"
	CodeJobNotFound          = "job_not_found"
	CodeNoDeadLetters        = "no_dead_letters"
	CodeDeadLetterNotFound   = "dead_letter_not_found"
	CodeInstanceIDInUse      = "instance_id_in_use"
	CodeInstanceOver         = "instance_over"
	CodeInstanceNotOver      = "instance_not_over"
	CodeNotesUnsupported     = "notes_unsupported"
	CodeNotCancellable       = "not_cancellable"
	CodePayloadTooLarge      = "payload_too_large"
	CodeResponseTooLarge     = "answer_too_large"
	CodeMediaType            = "unsupported_media_type"
	CodeCorruptHistory       = "corrupt_history"
	CodeUnavailable          = "unavailable"
	CodeInternal             = "internal"

	// CodeQueriesUnsupported reports a hub without a function for queries.
	CodeQueriesUnsupported = "nobody_to_ask"
)

// The prefixes of the codes of queries and updates. They precede a provider.QueryCode or client.UpdateCode. The codes
// of missing handlers have no prefix: CodeUnknownQuery and CodeUnknownUpdate.
const (
	PrefixQuery  = "query_"
	PrefixUpdate = "update_"

	CodeUnknownQuery  = "unknown_query"
	CodeUnknownUpdate = "unknown_update"
)

// The codes of completion tokens that are not accepted.
const (
	CodeInvalidToken  = "invalid_token"
	CodeOtherHub      = "other_hub"
	CodeSuperseded    = "superseded"
	CodeActivityOver  = "activity_over"
	CodeExecutionOver = "execution_over"
)

// The codes of leases that were not renewed. CodeInvalidToken, CodeUnavailable and CodeInternal are codes of leases
// too.
const (
	CodeLockLost     = "lock_lost"
	CodeLockLimit    = "lock_limit"
	CodeUnknownQueue = "unknown_queue"
)

// HeaderIdempotencyKey is the header that makes repeated calls one call. Problems name it as a field.
const HeaderIdempotencyKey = "Idempotency-Key"
