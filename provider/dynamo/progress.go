package dynamo

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// progressNoted is the time after which a long deletion says that it goes on: the watch finishes one that has made no progress for two minutes.
const progressNoted = 30 * time.Second

// progress is that of a deletion of an instance; nil where the instance lives on, and nobody waits.
type progress struct {
	p     *Provider
	it    item // of the instance
	noted time.Time
}

func (p *Provider) progressOf(it item) *progress { return &progress{p: p, it: it, noted: p.now()} }

// goesOn says that the deletion goes on, now and then.
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
