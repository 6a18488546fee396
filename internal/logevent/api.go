package logevent

// HTTP API.
const (
	// APIServing means that a process serves the HTTP API to every client that can reach `url`.
	APIServing = "api.serving"

	// APICallersUnrecorded means that the API function runs in an environment without the variable. Histories do not
	// name the requester.
	// Action: except during an update, deploy the stack with the construct of this release.
	APICallersUnrecorded = "api.callers_unrecorded"

	// RequestCompleted means that the API returned a response.
	RequestCompleted = "request.completed"

	// RequestFailed means that the API returned 500 or 503, as `code` shows.
	// Action: read the error. A caller retries 503.
	RequestFailed = "request.failed"

	// RequestPanicked means that the API has a bug. The caller received 500.
	// Action: report it with the line, which has the stack.
	RequestPanicked = "request.panicked"

	// ResponseWriteFailed means that the caller disconnected.
	ResponseWriteFailed = "response.write_failed"

	// OperationRequested means that a caller requested an operation on an instance or a bulk job. `requestedBy` names
	// the caller.
	OperationRequested = "operation.requested"

	// CostReadFailed means that the history is damaged, or takes more than 8 s to read. The response has `unread`
	// instead.
	// Action: run `perdure status`, which has no time limit.
	CostReadFailed = "cost.read_failed"

	// PendingTasksReadFailed means that the history is damaged, or takes more than 8 s to read. The response has
	// `unread` instead.
	// Action: run `perdure status`, which has no time limit.
	PendingTasksReadFailed = "pending_tasks.read_failed"

	// DeadLetterOperationFailed means that parts of a redrive or drop failed. `error` contains the first failures. The
	// caller received their number. The other parts succeeded. Action: repeat the operation. Drop records that were
	// sent but not deleted.
	DeadLetterOperationFailed = "dead_letter.operation_failed"

	// LeaseRenewalIncomplete means that the renewer or the API could not renew `failed` of `leases`.
	// Action: with `AccessDenied`, the function lacks `sqs:ChangeMessageVisibility`.
	LeaseRenewalIncomplete = "lease.renewal_incomplete"

	// LeaseRequestFailed means that the renewer was invoked directly with an invalid body, or while DynamoDB was
	// unavailable. The caller received the same error.
	// Action: read the error, which names the field.
	LeaseRequestFailed = "lease.request_failed"
)
