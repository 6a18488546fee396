// Package hubstore stores items that belong to a hub and to no instance: worker reports, jobs, the list of schedules,
// and the positions of the sweeper.
package hubstore

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
