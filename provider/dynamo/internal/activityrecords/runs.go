package activityrecords

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// The attributes of a run, in the activity record.
const (
	attrRunToken     = "runToken"
	attrRunAttempt   = "runAttempt"
	attrRunUntil     = "runUntil"
	attrRunOutcome   = "runOutcome"
	attrRunAbandoned = "runGivenUp" // never removed
)

// ClaimRun writes the run into the activity record, on condition that the record has not changed since it was read. It
// then reads the cancel record.
func (as *Store) ClaimRun(ctx context.Context, r provider.Run) (provider.RunClaim, error) {
	it, err := as.table.GetExecutionItem(ctx, r.ExecutionID, table.ActivitySK(r.ActivityID))
	if err != nil {
		return provider.RunClaim{}, err
	}

	taken, before, err := as.decodeClaim(it, &r)
	if err != nil || taken.Outcome != nil {
		return taken, wrapRun(&r, err)
	}
	if taken.PreviousRun != nil && !as.mayTransfer(taken.PreviousRun, &r) {
		return provider.RunClaim{}, wrapRun(&r, err)
	}
	if taken.Held, err = as.writeRun(ctx, &r, before); err != nil || !taken.Held {
		return provider.RunClaim{}, wrapRun(&r, err)
	}

	cancels, next, err := as.cancels.ReadCancels(ctx, r.ExecutionID, r.Segment)
	if err != nil {
		return taken, err
	}
	taken.CancelsFrom = next
	if taken.Cancel = cancels.Of(r.ActivityID); len(it) == 0 && taken.Cancel.Deleted { // as putActivityRecord does
		err = as.table.DeleteItem(ctx, "", table.ExecutionKey(r.ExecutionID, table.ActivitySK(r.ActivityID)))
	}
	return taken, wrapRun(&r, err)
}

// decodeClaim decodes the run in an activity record: the claim, and the stored run.
func (as *Store) decodeClaim(
	it table.Item, r *provider.Run,
) (taken provider.RunClaim, before *provider.Run, err error) {
	taken.PreviousRecord.ActivityID = r.ActivityID
	if len(it) == 0 {
		return taken, nil, nil
	}
	if before, err = decodeRun(it, r); err != nil {
		return taken, nil, err
	}
	if before != nil && before.Token != r.Token {
		taken.PreviousRun = before
	}
	if doc := table.GetString(it, attrRunOutcome); doc != "" && before != nil && before.Attempt == r.Attempt {
		taken.Outcome = &provider.ActivityOutcome{}
		if err := json.Unmarshal([]byte(doc), taken.Outcome); err != nil {
			return taken, nil, fmt.Errorf("%w: outcome of the run: %w", provider.ErrCorrupt, err)
		}
	}
	taken.PreviousRecord, err = decodeActivityRecord(it)
	return taken, before, err
}

// mayTransfer reports whether a run passes from one delivery to another.
func (as *Store) mayTransfer(from, to *provider.Run) bool {
	return from.Attempt < to.Attempt || from.Attempt == to.Attempt && !from.Until.After(as.now())
}

func (as *Store) writeRun(ctx context.Context, r, before *provider.Run) (written bool, err error) {
	in := as.runUpdate(r)
	in.UpdateExpression = aws.String(setRunExpression + ", #ttl = :ttl REMOVE #outcome")
	in.ExpressionAttributeNames["#outcome"] = attrRunOutcome
	// the second condition covers a repetition after a lost response
	in.ConditionExpression = aws.String("attribute_not_exists(#token) OR #token = :token")
	setRun(in, r)
	if before != nil {
		in.ConditionExpression = aws.String("#token IN (:before, :token)")
		// CompleteRun can run in between, even for the same delivery, because a renewal can be late
		if before.Attempt == r.Attempt {
			in.ConditionExpression = aws.String("#token IN (:before, :token) AND attribute_not_exists(#outcome)")
		}
		in.ExpressionAttributeValues[":before"] = table.Str(before.Token)
	}
	in.ExpressionAttributeNames["#ttl"] = table.AttrTTL
	in.ExpressionAttributeValues[":ttl"] = table.Unix(as.now().Add(recordLifetime))

	_, written, err = as.table.UpdateIf(ctx, "", in)
	return written, err
}

// CompleteRun writes the outcome into the activity record. If the outcome and the stored heartbeat details together
// exceed the size of an item, the outcome takes precedence.
func (as *Store) CompleteRun(ctx context.Context, r provider.Run, o *provider.ActivityOutcome) error {
	err := as.putOutcome(ctx, &r, o, "SET #outcome = :outcome")
	if isTooLarge(err) {
		if o.Error != nil { // the next attempt needs the details
			err = as.putOutcome(ctx, &r, truncateOutcome(o), "SET #outcome = :outcome")
		} else {
			err = as.putOutcome(ctx, &r, o, "SET #outcome = :outcome REMOVE "+attrDetails)
		}
	}
	return wrapRun(&r, err)
}

func (as *Store) putOutcome(ctx context.Context, r *provider.Run, o *provider.ActivityOutcome, update string) error {
	doc, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode outcome: %w", err)
	}
	in := as.runUpdate(r)
	in.ExpressionAttributeNames = map[string]string{"#token": attrRunToken, "#outcome": attrRunOutcome}
	in.UpdateExpression = &update
	in.ConditionExpression = aws.String("#token = :own")
	in.ExpressionAttributeValues[":own"] = table.Str(r.Token)
	in.ExpressionAttributeValues[":outcome"] = table.Str(string(doc))

	_, written, err := as.table.UpdateIf(ctx, "", in)
	if err == nil && !written {
		err = provider.ErrLockLost
	}
	return err
}

// truncateOutcome returns an outcome with a truncated failure, like in an attempt record. Only redeliveries use it. The
// outcome that is sent first is not truncated.
func truncateOutcome(o *provider.ActivityOutcome) *provider.ActivityOutcome {
	cut := *o
	cut.Error = o.Error.Truncate(RetryMessageBytes, retryCauses)
	cut.Error.CancelOutcome, cut.Error.Joined = o.Error.CancelOutcome, o.Error.Joined
	return &cut
}

// isTooLarge reports whether an update failed because the item would be too large.
func isTooLarge(err error) bool {
	refusal, ok := errors.AsType[smithy.APIError](err)
	return ok && refusal.ErrorCode() == "ValidationException" &&
		strings.Contains(refusal.ErrorMessage(), "maximum allowed size")
}

// ReleaseRun replaces a run with another one or removes it.
func (as *Store) ReleaseRun(ctx context.Context, r provider.Run, leave *provider.Run) error {
	in := as.runUpdate(&r)
	in.ConditionExpression = aws.String("#token = :own")
	in.ExpressionAttributeValues[":own"] = table.Str(r.Token)
	if leave == nil {
		in.UpdateExpression = aws.String("REMOVE #token, #attempt, #until")
	} else {
		in.UpdateExpression = aws.String(setRunExpression)
		setRun(in, leave)
	}
	if leave != nil && leave.Abandoned {
		in.UpdateExpression = aws.String(setRunExpression + ", #givenUp = :givenUp")
		in.ExpressionAttributeNames["#givenUp"] = attrRunAbandoned
		in.ExpressionAttributeValues[":givenUp"] = table.Num(1)
	}

	_, _, err := as.table.UpdateIf(ctx, "", in)
	return wrapRun(&r, err)
}

func (as *Store) runUpdate(r *provider.Run) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		Key: table.ExecutionKey(r.ExecutionID, table.ActivitySK(r.ActivityID)),
		ExpressionAttributeNames: map[string]string{
			"#token": attrRunToken, "#attempt": attrRunAttempt, "#until": attrRunUntil,
		},
		ExpressionAttributeValues: table.Item{},
	}
}

const setRunExpression = "SET #token = :token, #attempt = :attempt, #until = :until"

func setRun(in *dynamodb.UpdateItemInput, r *provider.Run) {
	v := in.ExpressionAttributeValues
	v[":token"] = table.Str(r.Token)
	v[valueAttempt] = table.Num(int64(r.Attempt))
	v[":until"] = table.Str(table.FormatTime(r.Until))
}

// decodeRun returns the run in an activity record, or nil if there is none.
func decodeRun(it table.Item, of *provider.Run) (*provider.Run, error) {
	r := &provider.Run{
		ExecutionID: of.ExecutionID,
		ActivityID:  of.ActivityID,
		Attempt:     int(table.GetNumber(it, attrRunAttempt)),
		Token:       table.GetString(it, attrRunToken),
		Abandoned:   table.GetNumber(it, attrRunAbandoned) != 0,
	}
	if r.Token == "" {
		return nil, nil //nolint:nilnil // there is no run
	}
	var err error
	if r.Until, err = time.Parse(table.TimeFormat, table.GetString(it, attrRunUntil)); err != nil {
		return nil, fmt.Errorf("%w: expiry of the run is %q", provider.ErrCorrupt, table.GetString(it, attrRunUntil))
	}
	return r, nil
}

func wrapRun(r *provider.Run, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("dynamo: execution %s: run of activity #%d: %w", r.ExecutionID, r.ActivityID, err)
}
