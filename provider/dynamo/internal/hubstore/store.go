// Package hubstore stores items that belong to a hub and to no instance: worker reports, jobs, the list of schedules,
// and the positions of the sweeper.
package hubstore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the items of a hub. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
	log   *slog.Logger
}

// New returns the store of a hub.
func New(t *table.Table, now func() time.Time, log *slog.Logger) *Store {
	return &Store{table: t, now: now, log: log}
}

// skWorkers is the prefix of the hub's items about the workers of a queue: w#<queue>.
const skWorkers = "w#"

// The times of a worker report.
const (
	attrStartedAt = "startedAt" // the start of the last worker of the queue
	attrSeenAt    = "seenAt"    // the time of the last report
)

// ReportWorker updates one item and costs one write unit.
func (hs *Store) ReportWorker(ctx context.Context, r provider.WorkerReport) error {
	now := table.Str(table.FormatTime(hs.now()))
	in := &dynamodb.UpdateItemInput{
		Key:                       table.HubKey(skWorkers + r.Queue),
		UpdateExpression:          aws.String("SET #seen = :now, #build = :build"),
		ExpressionAttributeNames:  map[string]string{"#seen": attrSeenAt, "#build": table.AttrBuild},
		ExpressionAttributeValues: table.Item{":now": now, ":build": table.Str(r.BuildID)},
	}
	if !r.StartedAt.IsZero() {
		*in.UpdateExpression += ", #started = :now"
		in.ExpressionAttributeNames["#started"] = attrStartedAt
	}
	return hs.table.Update(ctx, "", in)
}

// ReadWorkers makes one eventually consistent query.
func (hs *Store) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	reports := map[string]provider.WorkerReport{}
	in := table.PrefixQuery(table.PKHub, skWorkers, provider.Eventual)
	for it, err := range hs.table.Items(ctx, "", in) {
		if err != nil {
			return nil, err
		}
		r := provider.WorkerReport{
			Queue:   strings.TrimPrefix(table.GetString(it, table.AttrSK), skWorkers),
			BuildID: table.GetString(it, table.AttrBuild),
		}
		// an unreadable time is from another release, and counts as unknown
		r.SeenAt, _ = time.Parse(table.TimeFormat, table.GetString(it, attrSeenAt))
		r.StartedAt, _ = time.Parse(table.TimeFormat, table.GetString(it, attrStartedAt))
		reports[r.Queue] = r
	}
	return reports, nil
}

// skSchedules is the prefix of the sort keys of schedules. Their partition is the partition of the hub's items.
const skSchedules = "schedule#"

// skSchedulesEnd sorts after all of them.
const skSchedulesEnd = "schedule$"

// attrNotedAt is the time when a schedule was added to the list, in milliseconds.
const attrNotedAt = "notedAt"

// PutScheduleEntry writes an item of about 60 bytes.
func (hs *Store) PutScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	it := table.HubKey(skSchedules + s.ID)
	it[attrNotedAt] = table.Num(s.NotedAt.UnixMilli())
	return hs.table.PutItem(ctx, "", it)
}

// DeleteScheduleEntry deletes the item on condition that its NotedAt equals the NotedAt of s.
func (hs *Store) DeleteScheduleEntry(ctx context.Context, s provider.ScheduleEntry) error {
	err := hs.table.Delete(ctx, "", &dynamodb.DeleteItemInput{
		Key:                                 table.HubKey(skSchedules + s.ID),
		ConditionExpression:                 aws.String("notedAt = :then"),
		ExpressionAttributeValues:           table.Item{":then": table.Num(s.NotedAt.UnixMilli())},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if _, refused := table.FailedItem(err, 0); refused {
		return nil
	}
	return err
}

// ListSchedules reads pages of 1 MB, about 15,000 schedules each.
func (hs *Store) ListSchedules(ctx context.Context, after string) iter.Seq2[provider.ScheduleEntry, error] {
	in := table.RangeQuery(table.PKHub, skSchedules+after, skSchedulesEnd, provider.Strong)
	return func(yield func(provider.ScheduleEntry, error) bool) {
		for it, err := range hs.table.Items(ctx, "", in) {
			s := provider.ScheduleEntry{
				ID:      strings.TrimPrefix(table.GetString(it, table.AttrSK), skSchedules),
				NotedAt: time.UnixMilli(table.GetNumber(it, attrNotedAt)).UTC(),
			}
			if (err != nil || s.ID != after) && !yield(s, err) {
				return
			}
		}
	}
}

// Positions stores the positions of the sweeper's searches. It is safe for concurrent use.
type Positions struct {
	table *table.Table
	log   *slog.Logger
}

// NewPositions returns the positions in a table.
func NewPositions(t *table.Table, log *slog.Logger) *Positions { return &Positions{table: t, log: log} }

// attrPosition holds the position as JSON.
const attrPosition = "mark"

// Read reads the position with a name. If there is no position, or if this release cannot read it, Read does not change
// into, and the sweep starts from the beginning.
func (ps *Positions) Read(ctx context.Context, name string, into any) error {
	it, err := ps.table.Get(ctx, "", table.SweepPositionKey(name), provider.Eventual)
	if at := table.GetString(it, attrPosition); err == nil && at != "" {
		if err := json.Unmarshal([]byte(at), into); err != nil {
			ps.log.WarnContext(ctx, "sweep position unreadable, starting over",
				"event", logevent.SweepPositionUnreadable, "duty", name, "error", err)
		}
	}
	return err
}

// Put stores the position with a name. If two sweeps are concurrent, the last write counts, and some instances are
// checked again.
func (ps *Positions) Put(ctx context.Context, name string, mark any) error {
	at, err := json.Marshal(mark)
	if err != nil {
		return fmt.Errorf("dynamo: position of the sweeper: %s: %w", name, err)
	}
	it := table.SweepPositionKey(name)
	it[attrPosition] = table.Str(string(at))
	return ps.table.PutItem(ctx, "", it)
}
