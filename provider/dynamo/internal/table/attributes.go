package table

// The keys and attributes of items that belong to the hub.
const (
	PKHub     = "hub"
	SKBuilds  = "b#"
	AttrBuild = "build"
	AttrFirst = "first"
)

// The attributes of a segment's items: a header in every first part, and the events as JSON (AttrEvents) or compressed
// (AttrZstd).
const (
	AttrNonce  = "nonce"
	AttrParts  = "parts"
	AttrInbox  = "inbox"
	AttrWM     = "wm"
	AttrEvents = "events"
	AttrZstd   = "zstd"

	// These are in an execution's first segment: its instance, the previous execution, and the oldest execution whose
	// documents it refers to. The latter and later executions must not be erased before this execution.
	AttrInstance = "instance"
	AttrPrevious = "previous"
	AttrRefs     = "refs"
	// AttrNext is the next execution, in the stub of a past execution's start.
	AttrNext = "next"

	// AttrStub is the time when the segment was deleted. An item with it only occupies the key (R17).
	AttrStub = "stub"
)

// AttrTakenBy is the run of the reconciliation that wrote a dispatch record or a cursor. A dispatch has none.
const AttrTakenBy = "takenBy"
