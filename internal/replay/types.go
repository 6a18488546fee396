package replay

import (
	"github.com/perdure/perdure/internal/replay/coroutine"
	"github.com/perdure/perdure/internal/replay/journal"
	"github.com/perdure/perdure/internal/replay/loading"
	"github.com/perdure/perdure/internal/replay/mailbox"
	"github.com/perdure/perdure/internal/replay/panics"
	"github.com/perdure/perdure/internal/replay/tasks"
)

// Task is a unit for which an orchestration can wait.
type Task = tasks.Task

// Cancellation is the reason for which a scope was cancelled.
type Cancellation = tasks.Cancellation

// WaitEnd is the end of a wait for an external event.
type WaitEnd = mailbox.WaitEnd

// Differences describes inputs of decisions that differ from the inputs recorded by another build.
type Differences = journal.Differences

// PayloadDecoder decodes and compares the encoded payloads of an execution.
type PayloadDecoder = loading.Decoder

// NondeterminismError is returned if the decisions of an orchestration's code differ from its history.
type NondeterminismError = journal.NondeterminismError

// ForeignGoroutineError is returned if an orchestration's context or future was used on a goroutine that does not
// belong to the orchestration.
type ForeignGoroutineError = coroutine.ForeignGoroutineError

// QueryMisuseError is returned if a query handler used the context or a future of its orchestration to decide or wait.
type QueryMisuseError = coroutine.QueryMisuseError

// FetchError is returned if a document could not be read from the position to which a reference points.
type FetchError = loading.FetchError

// Panic is a panic value with a known failure. An orchestration that panics with it fails with this failure instead of
// history.TypePanic.
type Panic = panics.Panic
