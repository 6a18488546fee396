package hubstore

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

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
		Key: table.Item{
			table.AttrPK: table.Str(table.PKHub),
			table.AttrSK: table.Str(skWorkers + r.Queue),
		},
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
	for page, err := range hs.table.Query(ctx, "", table.HubQuery(skWorkers)) {
		if err != nil {
			return nil, err
		}
		for _, it := range page {
			r := provider.WorkerReport{
				Queue:   strings.TrimPrefix(table.GetString(it, table.AttrSK), skWorkers),
				BuildID: table.GetString(it, table.AttrBuild),
			}
			// an unreadable time is from another release, and counts as unknown
			r.SeenAt, _ = time.Parse(table.TimeFormat, table.GetString(it, attrSeenAt))
			r.StartedAt, _ = time.Parse(table.TimeFormat, table.GetString(it, attrStartedAt))
			reports[r.Queue] = r
		}
	}
	return reports, nil
}
