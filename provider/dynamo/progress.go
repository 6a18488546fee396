package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// progressNoted is the interval at which a long deletion records its progress. The sweeper continues a deletion without
// progress for two minutes.
const progressNoted = 30 * time.Second

// progress records the progress of an instance's deletion. It is nil if the instance is not deleted.
type progress struct {
	p     *Provider
	it    table.Item // of the instance
	noted time.Time
}

func (p *Provider) progressOf(it table.Item) *progress {
	return &progress{p: p, it: it, noted: p.now()}
}

// goesOn records progress if the last record is old enough.
func (d *progress) goesOn(ctx context.Context) error {
	if d == nil || d.p.now().Sub(d.noted) < progressNoted {
		return nil
	}
	d.noted = d.p.now()
	_, _, err := d.p.table.UpdateIf(ctx, strings.TrimPrefix(table.GetString(d.it, table.AttrPK), table.IDPrefix), &dynamodb.UpdateItemInput{
		Key: table.Item{table.AttrPK: d.it[table.AttrPK], table.AttrSK: d.it[table.AttrSK]}, UpdateExpression: aws.String("SET updated = :wentOn"),
		ConditionExpression:       aws.String("execution = :x AND attribute_exists(deleting)"),
		ExpressionAttributeValues: table.Item{":wentOn": table.Str(table.FormatTime(d.noted)), ":x": d.it[table.AttrExecution]},
	})
	return err
}
