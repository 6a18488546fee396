package erasure

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// progressInterval is the interval at which a long deletion records its progress. The sweeper continues a deletion
// without progress for two minutes.
const progressInterval = 30 * time.Second

// Progress records the progress of an instance's deletion. It is nil if the instance is not deleted.
type Progress struct {
	eraser     *Eraser
	instance   table.Item // of the instance
	recordedAt time.Time
}

// NewProgress returns the progress of the deletion of an instance.
func (er *Eraser) NewProgress(it table.Item) *Progress {
	return &Progress{eraser: er, instance: it, recordedAt: er.now()}
}

// Record records progress if the last record is old enough.
func (d *Progress) Record(ctx context.Context) error {
	if d == nil || d.eraser.now().Sub(d.recordedAt) < progressInterval {
		return nil
	}
	d.recordedAt = d.eraser.now()
	_, _, err := d.eraser.table.UpdateIf(
		ctx,
		strings.TrimPrefix(table.GetString(d.instance, table.AttrPK), table.IDPrefix),
		&dynamodb.UpdateItemInput{
			Key: table.Item{
				table.AttrPK: d.instance[table.AttrPK],
				table.AttrSK: d.instance[table.AttrSK],
			},
			UpdateExpression:    aws.String("SET updated = :wentOn"),
			ConditionExpression: aws.String("execution = :x AND attribute_exists(deleting)"),
			ExpressionAttributeValues: table.Item{
				":wentOn": table.Str(table.FormatTime(d.recordedAt)),
				":x":      d.instance[table.AttrExecution],
			},
		},
	)
	return err
}
