// Package activityrecords stores the records of activities. The records have the state that workers report, the run
// lease, the current attempt of an activity that has failed before, and the crash markers of deliveries.
package activityrecords

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/cancels"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the records of activities. It is safe for concurrent use.
type Store struct {
	table   *table.Table
	cancels *cancels.Store
	now     func() time.Time
}

// New returns the records of activities in a table.
func New(t *table.Table, c *cancels.Store, now func() time.Time) *Store {
	return &Store{table: t, cancels: c, now: now}
}

// ReadRetry reads one item.
func (as *Store) ReadRetry(ctx context.Context, executionID string, activityID int64) (provider.ActivityRetry, error) {
	it, err := as.table.GetExecutionItem(ctx, executionID, table.AttemptSK(activityID))
	if err != nil || len(it) == 0 {
		return provider.ActivityRetry{ActivityID: activityID}, err
	}
	return Decode(it)
}

// The attributes of an attempt record.
const (
	AttrAttempt  = "attempt"
	AttrRun      = "run"
	AttrAt       = "at"
	AttrFailedAt = "failedAt"
	AttrError    = "error"
	AttrEnded    = "ended"

	// The following attributes belong to the pending attempt pendingOf. They are not removed when another attempt
	// becomes current.
	AttrPending     = "pending"
	AttrPendingOf   = "pendingOf"
	AttrNextCheckAt = "lookAt"
	AttrNextCheckID = "lookBy"
)

// These limits cut the failure in an attempt record, which is only displayed and is written for each attempt.
const (
	RetryMessageBytes = 1 << 10
	retryCauses       = 2
)

// EncodeFailure encodes a failure for an item.
func EncodeFailure(f *history.Failure) (string, error) {
	doc, err := json.Marshal(f.Truncate(RetryMessageBytes, retryCauses))
	if err != nil {
		return "", fmt.Errorf("dynamo: encode failure: %w", err)
	}
	return string(doc), nil
}

// ReadRetries queries the attempt records of an execution page by page.
func (as *Store) ReadRetries(ctx context.Context, executionID string) iter.Seq2[provider.ActivityRetry, error] {
	return as.readBetween(ctx, executionID, 0, MaxActivityID)
}

// ReadRetriesOf reads the attempt records of some of an execution's activities, in one query over their IDs. It is not
// a method, because Provider embeds Store and would expose it.
func ReadRetriesOf(
	ctx context.Context, as *Store, executionID string, activities map[int64]bool,
) iter.Seq2[provider.ActivityRetry, error] {
	return func(yield func(provider.ActivityRetry, error) bool) {
		if len(activities) == 0 {
			return
		}
		ids := slices.Collect(maps.Keys(activities))
		for r, err := range as.readBetween(ctx, executionID, slices.Min(ids), slices.Max(ids)) {
			if _, wanted := activities[r.ActivityID]; (wanted || err != nil) && !yield(r, err) {
				return
			}
		}
	}
}

// MaxActivityID is the greatest activity ID that a key can contain.
const MaxActivityID = 9_999_999_999

// readBetween reads an execution's attempt records between two activity IDs page by page.
func (as *Store) readBetween(
	ctx context.Context, executionID string, first, last int64,
) iter.Seq2[provider.ActivityRetry, error] {
	in := table.RangeQuery(
		table.ExecutionPK(executionID), table.AttemptSK(first), table.AttemptSK(last), provider.Strong,
	)
	return table.Decoded(as.table.Items(ctx, "", in), Decode)
}

// decodePending decodes the current attempt if it is pending.
func decodePending(it table.Item, r *provider.ActivityRetry) (err error) {
	if at := table.GetString(it, AttrNextCheckAt); at != "" {
		if r.NextCheckAt, err = time.Parse(table.TimeFormat, at); err != nil {
			return fmt.Errorf("time of the next check: %w", err)
		}
	}
	r.Pending = &provider.PendingAttempt{}
	if err = json.Unmarshal([]byte(table.GetString(it, AttrPending)), r.Pending); err != nil {
		return fmt.Errorf("pending attempt: %w", err)
	}
	return nil
}

// Decode returns the current attempt in an attempt record.
func Decode(it table.Item) (provider.ActivityRetry, error) {
	r := provider.ActivityRetry{
		Attempt: int(table.GetNumber(it, AttrAttempt)),
		Run:     table.GetString(it, AttrRun),
		Error:   &history.Failure{},
		Ended:   table.GetString(it, AttrEnded),
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(table.GetString(it, table.AttrSK), table.SKAttempts), 10, 64)
	r.ActivityID = id
	for name, at := range map[string]*time.Time{AttrAt: &r.At, AttrFailedAt: &r.FailedAt} {
		if err == nil {
			*at, err = time.Parse(table.TimeFormat, table.GetString(it, name))
		}
	}
	if err == nil {
		err = json.Unmarshal([]byte(table.GetString(it, AttrError)), r.Error)
	}
	if r.NextCheckID = table.GetString(it, AttrNextCheckID); err == nil &&
		int(table.GetNumber(it, AttrPendingOf)) == r.Attempt {
		err = decodePending(it, &r)
	}
	if err != nil {
		return r, errCorrupt(it, err)
	}
	return r, nil
}

func errCorrupt(it table.Item, err error) error {
	return fmt.Errorf("dynamo: %w: item %s %s: %w", provider.ErrCorrupt, table.GetString(it, table.AttrPK),
		table.GetString(it, table.AttrSK), err)
}
