package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// progressNoted is the interval at which a long deletion records its progress. The sweeper continues a deletion without
// progress for two minutes.
const progressNoted = 30 * time.Second

// progress records the progress of an instance's deletion. It is nil if the instance is not deleted.
type progress struct {
	p     *Provider
	it    item // of the instance
	noted time.Time
}

func (p *Provider) progressOf(it item) *progress { return &progress{p: p, it: it, noted: p.now()} }

// goesOn records progress if the last record is old enough.
func (d *progress) goesOn(ctx context.Context) error {
	if d == nil || d.p.now().Sub(d.noted) < progressNoted {
		return nil
	}
	d.noted = d.p.now()
	_, err := d.p.updateIf(ctx, strings.TrimPrefix(getString(d.it, attrPK), idPrefix), &dynamodb.UpdateItemInput{
		TableName: &d.p.hub.Table, Key: item{attrPK: d.it[attrPK], attrSK: d.it[attrSK]}, UpdateExpression: aws.String("SET updated = :wentOn"),
		ConditionExpression:       aws.String("execution = :x AND attribute_exists(deleting)"),
		ExpressionAttributeValues: item{":wentOn": str(formatTime(d.noted)), ":x": d.it[attrExecution]},
	})
	return err
}
