package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/logevent"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
	"github.com/perdure/perdure/provider/outputs"
)

// errDeadline reports that the invocation is about to end.
var errDeadline = errors.New("invocation is about to end")

// The attributes of a cursor except its TTL: the event up to which all outputs were accepted, and the outputs before
// that event that SQS rejected.
const (
	attrUpTo        = "upTo"
	attrSendRefused = "failures"
	// cursorRefusals limits the size of the stored rejections. With more rejections, the cursor does not advance.
	cursorRefusals = 300 << 10
	// cursorLifetime is the maximum time after which a message can refer to its segment: 14 days in the queue, and 14
	// days in the dead-letter queue.
	cursorLifetime = table.TombstoneLifetime
	// keepTime limits the write of the cursor after the context of the sends has ended. Two such writes take less than
	// the reserve of an invocation.
	keepTime = 800 * time.Millisecond
)

// cursor is the progress of sending a large segment's outputs.
type cursor struct {
	instanceID, executionID string
	sequence                int64
	last                    int64 // the last event of the segment
	upTo                    int64 // the stored value; 0 if none is stored
	reached                 int64 // the value to store
	rejected                []rejection
	run                     string // the reconciliation that sends, or that wrote the cursor
}

// rejection is the event and the error of an output that SQS rejected permanently.
type rejection struct {
	EventID int64           `json:"eventId"`
	Failure history.Failure `json:"failure"`
}

func newCursor(x outputs.Origin, s provider.Segment) cursor {
	return cursor{
		instanceID:  x.InstanceID,
		executionID: x.ExecutionID,
		sequence:    s.Sequence,
		last:        s.Events[len(s.Events)-1].ID,
	}
}

func (c *cursor) key() table.Item {
	return table.ExecutionKey(c.executionID, table.CursorSK(c.sequence))
}

// readCursor reads the cursor of a segment with strong consistency. If there is no cursor, c does not change.
func (ob *Outbox) readCursor(ctx context.Context, c *cursor) error {
	found, err := ob.Table.Get(ctx, c.instanceID, c.key(), provider.Strong)
	if err != nil {
		return err
	}
	c.upTo = table.GetNumber(found, attrUpTo)
	c.run = max(c.run, table.GetString(found, table.AttrTakenBy))
	if doc := table.GetString(found, attrSendRefused); doc != "" {
		if err := json.Unmarshal([]byte(doc), &c.rejected); err != nil {
			return fmt.Errorf("dynamo: instance %q: rejected outputs of segment %d: %w", c.instanceID, c.sequence, err)
		}
	}
	return nil
}

// writeCursor stores the cursor of a segment, even if the context of the sends has ended. The process may have been
// frozen, so the stored cursor never moves backwards. The cursor of a later reconciliation is not replaced. If the
// write fails, some outputs are resent.
func (ob *Outbox) writeCursor(ctx context.Context, c *cursor) {
	refused, _ := json.Marshal(c.rejected) //nolint:errchkjson // strings and numbers: cannot fail
	if c.reached <= c.upTo || len(refused) > cursorRefusals {
		return
	}

	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), keepTime)
	defer stop()

	it := c.key()
	it[attrUpTo] = table.Num(c.reached)
	it[table.AttrTTL] = table.Unix(ob.now().Add(cursorLifetime))
	if c.run != "" {
		it[table.AttrTakenBy] = table.Str(c.run)
	}
	if len(c.rejected) > 0 {
		it[attrSendRefused] = table.Str(string(refused))
	}
	in := &dynamodb.PutItemInput{
		Item: it,
		ConditionExpression: aws.String(
			"(attribute_not_exists(" + attrUpTo + ") OR " + attrUpTo + " < :reached) AND " + notLaterRun,
		),
		ExpressionAttributeValues: table.Item{
			":reached": table.Num(c.reached),
			ValueRun:   table.Str(cmp.Or(c.run, noRun)),
		},
	}
	err := ob.Table.Put(ctx, c.instanceID, in)
	if _, ahead := table.FailedItem(err, 0); err != nil && !ahead {
		ob.log.WarnContext(ctx, "dispatch cursor write failed, some outputs may be sent again",
			"event", logevent.DispatchCursorWriteFailed, "instance", c.instanceID, "upTo", c.reached, "error", err)
		return
	}
	c.upTo = c.reached
}
