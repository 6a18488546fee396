// Package documents limits the data of external events that an execution keeps in memory, and resolves references to
// other data.
package documents

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

const (
	// maxHeldDocuments is the maximum size of the data of external events in an execution that was read for turns.
	// Other data is read when code requests it, so that a hundred thousand events fit into the memory of a function.
	maxHeldDocuments = 16 << 20
	// alwaysHeldBytes is the maximum size of a document that always stays in memory.
	alwaysHeldBytes = 1 << 10
	// MaxResolvedBytes is the maximum size of all documents that ReadHistory inserts into one event in place of
	// references.
	MaxResolvedBytes = 4 << 20
)

// Budget limits the data of external events in memory while an execution is read segment by segment.
type Budget struct {
	ExecutionID string

	held int
}

// Add replaces large data of a segment's external events by references when the limit is reached.
func (l *Budget) Add(s *provider.Segment) {
	for i := range s.Events {
		e := &s.Events[i]
		e.EachExternalData(func(field string, index int, data *history.Payload) {
			doc, inline := data.Referable()
			if !inline || len(doc) <= alwaysHeldBytes {
				return
			}
			if l.held+len(doc) <= maxHeldDocuments {
				l.held += len(doc)
				return
			}
			*data = history.DataLocation{
				ExecutionID: l.ExecutionID, Segment: s.Sequence, EventID: e.ID, Field: field, Index: index,
			}.ReferTo(*data)
		})
	}
}

// OldestExecution returns the oldest execution that an execution's first event refers to, or an empty string.
func OldestExecution(start *history.Event) (oldest string) {
	start.EachExternalData(func(_ string, _ int, data *history.Payload) {
		ref, refers := data.Reference()
		if !refers {
			return
		}
		executionID := provider.ExecutionOfPayload(data.StorageKey())
		if at, err := history.ParseDataLocation(ref.Ref); err == nil {
			executionID = at.ExecutionID
		}
		if executionID != "" && (oldest == "" || executionID < oldest) {
			oldest = executionID
		}
	})
	return oldest
}

// Reader reads documents of a history.
type Reader interface {
	ReadDocument(ctx context.Context, instanceID string, ref history.Reference) (json.RawMessage, error)
}

// Resolve replaces an event's references by their documents, up to MaxResolvedBytes bytes in total. It does not replace
// references to erased documents.
func Resolve(ctx context.Context, r Reader, instanceID string, e *history.Event) (err error) {
	shown := int64(0)
	e.EachExternalData(func(_ string, _ int, data *history.Payload) {
		ref, refers := data.Reference()
		if !refers || err != nil || shown+ref.Bytes > MaxResolvedBytes || data.IsEncoded() {
			return
		}
		var doc json.RawMessage
		switch doc, err = r.ReadDocument(ctx, instanceID, ref); {
		case errors.Is(err, provider.ErrNotFound):
			err = nil
		case err == nil:
			shown += ref.Bytes
			*data = ref.PayloadOf(doc)
		}
	})
	return err
}
