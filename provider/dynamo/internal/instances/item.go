// Package instances stores the item of each instance, which starts, lists and the sweeper read. The item derives from
// the history, so that a later write can always repair it. A deleted instance is replaced by a tombstone.
package instances

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the items of instances. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
}

// New returns the items of instances in a table.
func New(t *table.Table, now func() time.Time) *Store { return &Store{table: t, now: now} }

// Encode returns the item of an instance.
func Encode(in provider.Instance) (table.Item, error) {
	it := table.InstanceKey(in.InstanceID)
	it["name"] = table.Str(in.Name)
	it[table.AttrStatus] = table.Str(string(in.Status))
	it[table.AttrStartID] = table.Str(in.StartID)
	it[table.AttrExecution] = table.Str(in.ExecutionID)
	it["number"] = table.Num(in.ExecutionNumber)
	it[table.AttrShard] = table.Str(table.ShardOf(in.InstanceID))
	it[table.AttrCreated] = table.Str(CreatedKey(in))
	it[table.AttrUpdated] = table.Str(table.FormatTime(in.UpdatedAt))

	if in.Version != "" {
		it["version"] = table.Str(in.Version)
	}
	if in.RequestedBy != "" {
		it[table.AttrRequestedBy] = table.Str(in.RequestedBy)
	}
	if !in.StartAt.IsZero() {
		it[table.AttrStartAt] = table.Str(table.FormatTime(in.StartAt))
	}

	if in.Parent != nil {
		b, err := json.Marshal(in.Parent)
		if err != nil {
			return nil, fmt.Errorf("dynamo: instance %q: parent: %w", in.InstanceID, err)
		}
		it[table.AttrParent] = table.Str(string(b))
	}
	if len(in.Tags) > 0 {
		b, err := json.Marshal(in.Tags)
		if err != nil {
			return nil, fmt.Errorf("dynamo: instance %q: tags: %w", in.InstanceID, err)
		}
		it["tags"] = table.Str(string(b))
	}
	return it, nil
}

// ParentPrefix returns the prefix of the JSON of every parent with an instance ID.
func ParentPrefix(instanceID string) string {
	id, _ := json.Marshal(instanceID) //nolint:errchkjson // a string cannot fail
	return `{"instanceId":` + string(id) + ","
}

// HasTags reports whether an item has all of the tags. Unreadable tags match none.
func HasTags(it table.Item, want map[string]string) bool {
	if len(want) == 0 {
		return true
	}
	tags := map[string]string{}
	err := json.Unmarshal([]byte(table.GetString(it, "tags")), &tags)
	return err == nil && provider.HasTags(tags, want)
}

// CreatedKey returns a unique key that sorts by time, so that a page can continue exactly after the last key.
func CreatedKey(in provider.Instance) string {
	return table.FormatTime(in.CreatedAt) + "#" + table.Digest(in.InstanceID)[:8]
}

// Decode returns the instance in an item. After an error, it is the readable part.
func Decode(it table.Item) (provider.Instance, error) {
	in := provider.Instance{
		InstanceID:      table.InstanceIDOf(it),
		ExecutionID:     table.GetString(it, table.AttrExecution),
		ExecutionNumber: table.GetNumber(it, "number"),
		Name:            table.GetString(it, "name"),
		Version:         table.GetString(it, "version"),
		Status:          provider.RuntimeStatus(table.GetString(it, table.AttrStatus)),
		StartID:         table.GetString(it, table.AttrStartID),
		BlockedBy:       table.GetString(it, table.AttrBlockedBy),
		RequestedBy:     table.GetString(it, table.AttrRequestedBy),
	}

	var err error
	created := table.GetString(it, table.AttrCreated)
	if in.CreatedAt, err = time.Parse(
		table.TimeFormat, created[:min(len(table.TimeFormat), len(created))],
	); err != nil {
		return in, fmt.Errorf("dynamo: instance %q: created: %w", in.InstanceID, err)
	}
	if in.UpdatedAt, err = time.Parse(table.TimeFormat, table.GetString(it, table.AttrUpdated)); err != nil {
		return in, fmt.Errorf("dynamo: instance %q: updated: %w", in.InstanceID, err)
	}
	if in.Status == provider.StatusPending {
		// a pending instance has not changed, and the stored time can be the time of the sweeper's next check
		in.UpdatedAt = in.CreatedAt
	}

	if in.StartAt, err = table.DecodeTime(it, table.AttrStartAt); err != nil {
		return in, err
	}
	if in.PurgedAt, err = table.DecodeTime(it, table.AttrPurgedAt); err != nil {
		return in, err
	}
	if custom := table.GetString(it, "customStatus"); custom != "" {
		in.CustomStatus = json.RawMessage(custom)
	}
	if in.Notes, err = decodeNotes(it); err != nil {
		in.Notes = nil // damaged notes must not make an instance unusable
	}
	for _, field := range []struct {
		name string
		into any
	}{
		{table.AttrParent, &in.Parent},
		{table.AttrDiagnosis, &in.Diagnosis},
		{table.AttrPaused, &in.Paused},
		{"tags", &in.Tags},
	} {
		doc := table.GetString(it, field.name)
		if doc == "" {
			continue
		}
		if err := json.Unmarshal([]byte(doc), field.into); err != nil {
			return in, fmt.Errorf("dynamo: instance %q: %s: %w", in.InstanceID, field.name, err)
		}
	}
	return in, nil
}

// FirstTurnAt returns the time at which the first turn of an instance is due.
func FirstTurnAt(in *provider.Instance) time.Time {
	if in.StartAt.After(in.CreatedAt) {
		return in.StartAt
	}
	return in.CreatedAt
}

// ReadInstance reads the instance item.
func (is *Store) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	return is.ReadWith(ctx, instanceID, provider.Strong)
}

// ReadWith reads an instance with the given consistency.
func (is *Store) ReadWith(ctx context.Context, instanceID string, c provider.Consistency) (provider.Instance, error) {
	it, err := is.Get(ctx, instanceID, c)
	if err != nil {
		return provider.Instance{}, err
	}
	return Decode(it)
}

// Get reads the instance item. It returns ErrNotFound for a tombstone.
func (is *Store) Get(ctx context.Context, instanceID string, c provider.Consistency) (table.Item, error) {
	it, err := is.GetRaw(ctx, instanceID, c)
	if err != nil {
		return nil, err
	}
	if len(it) == 0 || IsTombstone(it) {
		return nil, fmt.Errorf("dynamo: instance %q: %w", instanceID, provider.ErrNotFound)
	}
	return it, nil
}

// GetRaw reads the item of an instance or a tombstone. The item is empty if there is neither.
func (is *Store) GetRaw(ctx context.Context, instanceID string, c provider.Consistency) (table.Item, error) {
	return is.table.Get(ctx, instanceID, table.InstanceKey(instanceID), c)
}

// BlockInstance writes only the instance item, because a segment requires a readable history.
func (is *Store) BlockInstance(
	ctx context.Context, instanceID, executionID, buildID string, why *history.Failure,
) error {
	diagnosis, err := json.Marshal(why)
	if err != nil {
		return fmt.Errorf("dynamo: instance %q: diagnosis: %w", instanceID, err)
	}
	in := is.statusUpdate(instanceID, executionID, provider.StatusBlocked,
		", attention = :attention, blockedBy = :blockedBy, diagnosis = :diagnosis REMOVE paused", ", :paused")
	in.ExpressionAttributeValues[":paused"] = table.Str(string(provider.StatusPaused))
	in.ExpressionAttributeValues[":attention"] = table.Str(BlockedPartition(instanceID))
	in.ExpressionAttributeValues[":blockedBy"] = table.Str(buildID)
	in.ExpressionAttributeValues[":diagnosis"] = table.Str(string(diagnosis))
	_, _, err = is.table.UpdateIf(ctx, instanceID, in)
	return err
}

// UnblockInstance is the reverse of BlockInstance.
func (is *Store) UnblockInstance(ctx context.Context, instanceID, executionID string) error {
	in := is.statusUpdate(instanceID, executionID, provider.StatusRunning,
		" REMOVE attention, blockedBy, diagnosis, paused", "")
	_, _, err := is.table.UpdateIf(ctx, instanceID, in)
	return err
}

// statusUpdate returns an update of the status of an execution that has not ended and is not paused. The update also
// makes changes, and allows more statuses.
func (is *Store) statusUpdate(
	instanceID, executionID string, to provider.RuntimeStatus, changes, more string,
) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		Key:              table.InstanceKey(instanceID),
		UpdateExpression: aws.String("SET #updated = :updated, #status = :status" + changes),
		ConditionExpression: aws.String(
			"#execution = :x AND #status IN (:pending, :running, :cancelling, :blocked" + more + ")",
		),
		ExpressionAttributeNames: table.Names(table.AttrUpdated, table.AttrStatus, table.AttrExecution),
		ExpressionAttributeValues: table.Item{
			":updated":    table.Str(table.FormatTime(is.now())),
			":x":          table.Str(executionID),
			":status":     table.Str(string(to)),
			":pending":    table.Str(string(provider.StatusPending)),
			":running":    table.Str(string(provider.StatusRunning)),
			":cancelling": table.Str(string(provider.StatusCancelling)),
			":blocked":    table.Str(string(provider.StatusBlocked)),
		},
	}
}
