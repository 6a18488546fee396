package httpapi

// The names of fields and query parameters that several operations have.
const (
	fieldAll           = "all"
	fieldDelay         = "delay"
	fieldFrom          = "from"
	fieldIfExists      = "ifExists"
	fieldMessage       = "message"
	fieldQueue         = "queue"
	fieldStartedAfter  = "startedAfter"
	fieldStartedBefore = "startedBefore"
	fieldTags          = "tags"
	fieldVersion       = "version"

	paramAfter    = "after"
	paramCursor   = "cursor"
	paramEvent    = "event"
	paramForce    = "force"
	paramInstance = "instance"
	paramLimit    = "limit"
	paramPending  = "pending"
	paramReason   = "reason"
)
