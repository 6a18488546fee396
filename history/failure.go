package history

// The types of failures that the engine itself makes. An error of a user's program travels under the name of its Go type,
// or what its ErrorType method says.
const (
	// TypeError is an error that has no type of its own, as errors.New makes it.
	TypeError = "error"
	// TypePanic is a panic of an orchestration or activity; the message ends with the stack.
	TypePanic = "panic"
	// TypeGoexit is code that ended its goroutine instead of returning.
	TypeGoexit = "goexit"
	// TypeTimeout is an attempt or scope that ran out of time.
	TypeTimeout = "timeout"
	// TypeCancelled is something that was cancelled; Reason says why.
	TypeCancelled = "cancelled"
	// TypeTerminated is an instance that was terminated.
	TypeTerminated = "terminated"
	// TypeNondeterminism is code that parts from its history; Expected and Got say where.
	TypeNondeterminism = "nondeterminism"
	// TypeUnregistered is an orchestration, or something that it called, which the build does not know.
	TypeUnregistered = "unregistered"
	// TypeBlockedOutside is code that does not come back, TypeForeignGoroutine code that calls from a goroutine of its own.
	TypeBlockedOutside   = "blocked_outside"
	TypeForeignGoroutine = "foreign_goroutine"
	// TypeNotFound is a cancellation of an instance that is not there, TypeOver of one that has ended.
	TypeNotFound = "not_found"
	TypeOver     = "over"
	// TypeAlreadyExists is a start of an instance id that is in use.
	TypeAlreadyExists = "already_exists"
	// TypePoison is code that took its process down whenever it ran, or a message that was delivered too often.
	TypePoison = "poison"
	// TypeCorrupt is a history that cannot be read.
	TypeCorrupt = "corrupt"
	// TypePayloadTooLarge is an input or result over the limit.
	TypePayloadTooLarge = "payload_too_large"
	// TypeEncode is an input or result that is no JSON; TypeDecode is one that does not fit its Go type.
	TypeEncode = "encode"
	TypeDecode = "decode"
)
