package pendingtasks

import (
	"context"
	"time"

	"github.com/perdure/perdure/provider"
)

// maxRetriesRead limits the retry records that are read, including records of activities that have ended.
const maxRetriesRead = 20_000

// retries contains the retry records of open activities.
type retries struct {
	byID map[int64]provider.ActivityRetry
	// known is the ID up to which the records were read. Activities up to this ID that are not in byID are in their
	// first attempt.
	known int64
}

// readRetries reads the retries of up to limit open activities.
func readRetries(ctx context.Context, hub Backend, executionID string, l *log, limit int) (retries, error) {
	found := retries{byID: map[int64]provider.ActivityRetry{}, known: l.state.LastID}
	if l.activities == 0 {
		return found, nil
	}
	read := 0
	for r, err := range hub.ReadRetries(ctx, executionID) {
		if err != nil {
			return found, err
		}
		if read++; read > maxRetriesRead || len(found.byID) == limit {
			found.known = r.ActivityID - 1
			break
		}
		if o, open := l.state.Open(r.ActivityID); open && !o.OutcomeParked && !l.state.Ended() {
			found.byID[r.ActivityID] = r
		}
	}
	return found, nil
}

// setAttempt sets the current attempt of an activity if it is known.
func (r retries) setAttempt(x *Item) {
	last, retried := r.byID[x.ID]
	switch {
	case retried && last.Attempt == 1: // its result is pending, and no attempt has failed
		x.Attempt = 1
	case retried:
		x.Attempt = last.Attempt
		x.LastError = last.Error.Truncate(lastErrorBytes, lastErrorCauses)
		x.FailedAt = last.FailedAt
		x.NextAttemptAt = last.At
	case x.ID <= r.known:
		x.Attempt = 1
	}
	if last.Pending != nil {
		x.ResultPendingSince = last.Pending.Since.UTC()
		x.NextAttemptAt = time.Time{}
		x.NextTimeoutCheckAt = last.NextCheckAt
	}
}
