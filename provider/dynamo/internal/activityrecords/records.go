package activityrecords

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The attributes of an activity record. An attribute is missing until it is written.
const (
	attrCancelSeenAt = "seenAt"
	attrEndedAt      = "endedAt"
	attrEnd          = "end"
	attrDetails      = "details"
	attrHeartbeatAt  = "beatenAt"

	attrUnknownAt    = "unknownAt"
	attrUnknownBuild = "unknownBuild"
	attrBegunAt      = "begunAt"
	attrTimeoutsOf   = "runOutOf"
	attrTimeouts     = "runOuts"

	// AttrPending and AttrPendingOf are also attributes of an attempt record.
	attrHeartbeatOf = "beatOf"
	attrEndedOf     = "overOf"
)

// PutActivityRecords updates one item per record, concurrently.
func (as *Store) PutActivityRecords(ctx context.Context, executionID string, records ...provider.ActivityRecord) error {
	return awscall.ForEach(len(records), func(i int) error {
		return as.putActivityRecord(ctx, executionID, &records[i])
	})
}

func (as *Store) putActivityRecord(ctx context.Context, executionID string, r *provider.ActivityRecord) error {
	in, err := recordUpdate(executionID, r)
	if err == nil && in != nil {
		_, err = as.putRecord(ctx, executionID, r.ActivityID, in)
	}
	return wrapError(executionID, r.ActivityID, err)
}

// putRecord updates an activity record. written is false if the condition failed.
func (as *Store) putRecord(
	ctx context.Context, executionID string, activityID int64, in *dynamodb.UpdateItemInput,
) (written bool, err error) {
	in.ReturnValues = types.ReturnValueUpdatedOld
	in.ExpressionAttributeNames["#ttl"] = table.AttrTTL
	in.ExpressionAttributeValues[":ttl"] = table.Unix(as.now().Add(recordLifetime))
	in.UpdateExpression = aws.String(*in.UpdateExpression + ", #ttl = :ttl")

	was, written, err := as.table.UpdateIf(ctx, "", in)
	if written && was[table.AttrTTL] == nil {
		err = as.deleteIfCancelled(ctx, executionID, activityID)
	}
	return written, err
}

// wrapError adds the activity to an error. It returns nil for a nil error.
func wrapError(executionID string, activityID int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dynamo: execution %s: activity #%d: %w", executionID, activityID, err)
}

// recordLifetime is the time after its last write at which an activity record expires, if no deletion removes it.
// Processes need records for less time. The TTL removes items of a process that crashed before deleteIfCancelled could
// delete them.
const recordLifetime = 400 * 24 * time.Hour

// deleteIfCancelled deletes an activity record that was just created, if its instance is deleted. A deletion marks the
// cancel record before it lists the items to erase. The deletion therefore finds the record, or the writer of the
// record finds the mark.
func (as *Store) deleteIfCancelled(ctx context.Context, executionID string, activityID int64) error {
	mark, err := as.cancels.ReadMark(ctx, executionID)
	if err != nil || !mark.Of(activityID).Deleted {
		return err
	}
	return as.table.DeleteItem(ctx, "", table.ExecutionKey(executionID, table.ActivitySK(activityID)))
}

// recordUpdate returns the update that sets a record's fields, or nil if there are none.
func recordUpdate(executionID string, r *provider.ActivityRecord) (*dynamodb.UpdateItemInput, error) {
	in := &dynamodb.UpdateItemInput{
		Key:                      table.ExecutionKey(executionID, table.ActivitySK(r.ActivityID)),
		ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: table.Item{},
	}
	var sets []string
	set := func(name string, value types.AttributeValue) {
		in.ExpressionAttributeNames["#"+name] = name
		in.ExpressionAttributeValues[":"+name] = value
		sets = append(sets, "#"+name+" = :"+name)
	}
	setText := func(name, value string) {
		if value != "" {
			set(name, table.Str(value))
		}
	}

	setText(attrCancelSeenAt, formatOptional(r.SeenAt))
	setText(attrEndedAt, formatOptional(r.EndedAt))
	setText(attrEnd, string(r.CancelOutcome))
	setText(attrDetails, string(r.Details))
	setText(attrHeartbeatAt, formatOptional(r.LastHeartbeatAt))
	setText(attrUnknownAt, formatOptional(r.UnknownAt))
	setText(attrUnknownBuild, r.UnknownBuild)
	setText(attrBegunAt, formatOptional(r.BegunAt))
	if r.InvocationTimeoutAttempt > 0 {
		set(attrTimeoutsOf, table.Num(int64(r.InvocationTimeoutAttempt)))
		set(attrTimeouts, table.Num(int64(r.InvocationTimeouts)))
	}
	if r.Pending != nil {
		doc, err := json.Marshal(r.Pending)
		if err != nil {
			return nil, fmt.Errorf("encode pending attempt: %w", err)
		}
		setText(AttrPending, string(doc))
		set(AttrPendingOf, table.Num(int64(r.PendingAttempt)))
	}

	if len(sets) == 0 {
		return nil, nil //nolint:nilnil // there is nothing to write
	}
	in.UpdateExpression = aws.String("SET " + strings.Join(sets, ", "))
	switch {
	case r.CancelOutcome == provider.OutcomeNeverStarted:
		in.ConditionExpression = aws.String("attribute_not_exists(#" + attrEnd + ")")
	case !r.LastHeartbeatAt.IsZero():
		in.ConditionExpression = aws.String(
			"attribute_not_exists(#" + attrHeartbeatAt + ") OR #" + attrHeartbeatAt + " <= :" + attrHeartbeatAt,
		)
	}
	return in, nil
}

// formatOptional is like FormatTime but returns an empty string for the zero time.
func formatOptional(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return table.FormatTime(t)
}

// ReadActivityRecord reads one item.
func (as *Store) ReadActivityRecord(
	ctx context.Context, executionID string, activityID int64,
) (provider.ActivityRecord, error) {
	it, err := as.table.GetExecutionItem(ctx, executionID, table.ActivitySK(activityID))
	if err != nil || len(it) == 0 {
		return provider.ActivityRecord{ActivityID: activityID}, err
	}
	return decodeActivityRecord(it)
}

// ReadActivityRecords queries the activity records of an execution page by page.
func (as *Store) ReadActivityRecords(
	ctx context.Context, executionID string,
) iter.Seq2[provider.ActivityRecord, error] {
	in := table.PrefixQuery(table.ExecutionPK(executionID), table.SKActivities, provider.Strong)
	return table.Decoded(as.table.Items(ctx, "", in), decodeActivityRecord)
}

func decodeActivityRecord(it table.Item) (provider.ActivityRecord, error) {
	r := provider.ActivityRecord{
		CancelOutcome:            provider.CancelOutcome(table.GetString(it, attrEnd)),
		UnknownBuild:             table.GetString(it, attrUnknownBuild),
		InvocationTimeoutAttempt: int(table.GetNumber(it, attrTimeoutsOf)),
		InvocationTimeouts:       int(table.GetNumber(it, attrTimeouts)),
		PendingAttempt:           int(table.GetNumber(it, AttrPendingOf)),
		HeartbeatAttempt:         int(table.GetNumber(it, attrHeartbeatOf)),
		EndedAttempt:             int(table.GetNumber(it, attrEndedOf)),
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(table.GetString(it, table.AttrSK), table.SKActivities), 10, 64)
	r.ActivityID = id

	if details := table.GetString(it, attrDetails); details != "" {
		r.Details = json.RawMessage(details)
	}
	for name, at := range map[string]*time.Time{
		attrCancelSeenAt: &r.SeenAt, attrEndedAt: &r.EndedAt, attrHeartbeatAt: &r.LastHeartbeatAt,
		attrUnknownAt: &r.UnknownAt, attrBegunAt: &r.BegunAt,
	} {
		if text := table.GetString(it, name); text != "" && err == nil {
			*at, err = time.Parse(table.TimeFormat, text)
		}
	}
	if doc := table.GetString(it, AttrPending); doc != "" && err == nil {
		r.Pending = &provider.PendingAttempt{}
		err = json.Unmarshal([]byte(doc), r.Pending)
	}
	if err != nil {
		return r, errCorrupt(it, err)
	}
	return r, nil
}
