package dynamo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

func instanceItem(in provider.Instance) (table.Item, error) {
	it := table.InstanceKey(in.InstanceID)
	it["name"] = table.Str(in.Name)
	it[table.AttrStatus] = table.Str(string(in.Status))
	it[table.AttrStartID] = table.Str(in.StartID)
	it[table.AttrExecution] = table.Str(in.ExecutionID)
	it["number"] = table.Num(in.ExecutionNumber)
	it[table.AttrShard] = table.Str(table.ShardOf(in.InstanceID))
	it[table.AttrCreated] = table.Str(createdKey(in))
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

// parentPrefix returns the prefix of the JSON of every parent with an instance ID.
func parentPrefix(instanceID string) string {
	id, _ := json.Marshal(instanceID) //nolint:errchkjson // a string: cannot fail
	return `{"instanceId":` + string(id) + ","
}

// hasTags reports whether an item has all of the tags. Unreadable tags match none.
func hasTags(it table.Item, want map[string]string) bool {
	if len(want) == 0 {
		return true
	}
	tags := map[string]string{}
	err := json.Unmarshal([]byte(table.GetString(it, "tags")), &tags)
	return err == nil && provider.HasTags(tags, want)
}

// createdKey returns a unique key that sorts by time, so that a page can continue exactly after the last one.
func createdKey(in provider.Instance) string {
	return table.FormatTime(in.CreatedAt) + "#" + table.Digest(in.InstanceID)[:8]
}

func decodeInstance(it table.Item) (provider.Instance, error) {
	id := table.GetString(it, table.AttrPK)
	in := provider.Instance{
		InstanceID: id[min(len(table.IDPrefix), len(id)):], ExecutionID: table.GetString(it, table.AttrExecution), ExecutionNumber: table.GetNumber(it, "number"),
		Name: table.GetString(it, "name"), Version: table.GetString(it, "version"), Status: provider.RuntimeStatus(table.GetString(it, table.AttrStatus)),
		StartID: table.GetString(it, table.AttrStartID), BlockedBy: table.GetString(it, table.AttrBlockedBy), RequestedBy: table.GetString(it, table.AttrRequestedBy),
	}

	var err error
	created := table.GetString(it, table.AttrCreated)
	if in.CreatedAt, err = time.Parse(table.TimeFormat, created[:min(len(table.TimeFormat), len(created))]); err != nil {
		return in, fmt.Errorf("dynamo: instance %q: created: %w", in.InstanceID, err)
	}
	if in.UpdatedAt, err = time.Parse(table.TimeFormat, table.GetString(it, table.AttrUpdated)); err != nil {
		return in, fmt.Errorf("dynamo: instance %q: updated: %w", in.InstanceID, err)
	}
	if in.Status == provider.StatusPending {
		// nothing has changed since; the stored time can be that of the sweeper's next check
		in.UpdatedAt = in.CreatedAt
	}

	if in.StartAt, err = table.DecodeTime(it, table.AttrStartAt); err != nil {
		return in, err
	}
	if in.PurgedAt, err = table.DecodeTime(it, table.AttrPurgedAt); err != nil {
		return in, err
	}
	if parent := table.GetString(it, table.AttrParent); parent != "" {
		if err := json.Unmarshal([]byte(parent), &in.Parent); err != nil {
			return in, fmt.Errorf("dynamo: instance %q: parent: %w", in.InstanceID, err)
		}
	}
	if why := table.GetString(it, table.AttrDiagnosis); why != "" {
		if err := json.Unmarshal([]byte(why), &in.Diagnosis); err != nil {
			return in, fmt.Errorf("dynamo: instance %q: diagnosis: %w", in.InstanceID, err)
		}
	}

	if paused := table.GetString(it, table.AttrPaused); paused != "" {
		if err := json.Unmarshal([]byte(paused), &in.Paused); err != nil {
			return in, fmt.Errorf("dynamo: instance %q: paused: %w", in.InstanceID, err)
		}
	}
	if custom := table.GetString(it, "customStatus"); custom != "" {
		in.CustomStatus = json.RawMessage(custom)
	}
	if tags := table.GetString(it, "tags"); tags != "" {
		if err := json.Unmarshal([]byte(tags), &in.Tags); err != nil {
			return in, fmt.Errorf("dynamo: instance %q: tags: %w", in.InstanceID, err)
		}
	}
	return in, nil
}

// ReadInstance reads the instance item.
func (p *Provider) ReadInstance(ctx context.Context, instanceID string) (provider.Instance, error) {
	return p.readInstance(ctx, instanceID, provider.Strong)
}

func (p *Provider) readInstance(ctx context.Context, instanceID string, c provider.Consistency) (provider.Instance, error) {
	it, err := p.getInstance(ctx, instanceID, c)
	if err != nil {
		return provider.Instance{}, err
	}
	return decodeInstance(it)
}

// getInstance reads the instance item. It returns ErrNotFound for a tombstone.
func (p *Provider) getInstance(ctx context.Context, instanceID string, c provider.Consistency) (table.Item, error) {
	it, err := p.rawInstance(ctx, instanceID, c)
	if err != nil {
		return nil, err
	}
	if len(it) == 0 || isTombstone(it) {
		return nil, fmt.Errorf("dynamo: instance %q: %w", instanceID, provider.ErrNotFound)
	}
	return it, nil
}

// rawInstance reads the item of an instance or a tombstone. The item is empty if there is neither.
func (p *Provider) rawInstance(ctx context.Context, instanceID string, c provider.Consistency) (table.Item, error) {
	found, err := p.table.Get(ctx, instanceID, table.InstanceKey(instanceID), c)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// projection is the part of an instance that follows from its history up to a segment. It is empty if nothing changed.
type projection struct {
	instanceID, executionID string
	sequence                int64
	event                   int64 // the first event ID of the segment
	status                  provider.RuntimeStatus
	version                 string
	customStatus            history.Payload
	watermark               provider.Position
	blocked                 history.Blocked
	paused                  *history.Pause
	retention               time.Duration // the retention of an ended instance; 0 means forever
}

// changed reports whether there are changes to write.
func (u *projection) changed() bool { return u.status != "" }

// pending reports whether the instance has had no turn although its history has more than the start, for example
// because it was paused before its first turn. The sweeper may have passed the instance in the meantime, so the write
// adds it to the attention index.
func (u *projection) pending() bool { return u.status == provider.StatusPending }

// updated returns the time of the change to store. For a pending instance it is the time of the sweeper's next check.
func (u *projection) updated(now time.Time) time.Time {
	if u.pending() {
		return now.Add(wakeSoonest)
	}
	return now
}

// project writes a projection to the instance item, on condition that the execution is still the current one (R7) and
// that no later segment was projected. A slow process therefore does not undo the write of a faster one. If the
// condition fails, another process is ahead or deletes the instance, and project does nothing.
func (p *Provider) project(ctx context.Context, u projection) error {
	in := &dynamodb.UpdateItemInput{
		Key:                      table.InstanceKey(u.instanceID),
		UpdateExpression:         aws.String("SET updated = :updated, #seq = :seq" + u.assignments() + u.removals()),
		ConditionExpression:      aws.String("#execution = :execution AND (attribute_not_exists(#seq) OR #seq < :seq) AND attribute_not_exists(deleting)"),
		ExpressionAttributeNames: map[string]string{"#execution": table.AttrExecution, "#seq": "seq"},
		ExpressionAttributeValues: table.Item{
			":updated": table.Str(table.FormatTime(u.updated(p.now()))), ":execution": table.Str(u.executionID), ":seq": table.Num(u.sequence),
		},
	}
	u.values(in, p.now())
	err := p.table.Update(ctx, u.instanceID, in)
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return nil
	}
	return err
}

// firstSuccessor is the number of the execution after the first one.
const firstSuccessor = 2

// beginSuccessor returns the update that makes the turn's next execution the current one, on condition that the turn's
// own execution was (R7).
func (p *Provider) beginSuccessor(t *provider.Turn, u projection) *types.Update {
	in := &dynamodb.UpdateItemInput{
		ExpressionAttributeNames: map[string]string{"#execution": table.AttrExecution, "#seq": "seq", "#number": "number"},
		ExpressionAttributeValues: table.Item{
			":at": table.Str(table.FormatTime(p.now())), ":execution": table.Str(t.Head.ExecutionID),
			":next": table.Str(t.Next.ExecutionID), ":number": table.Num(t.Next.Start.Number),
		},
	}

	set := "SET updated = :at, #execution = :next, #number = :number" + u.assignments()
	remove := " REMOVE #seq, attention, blockedBy, diagnosis, paused"
	if t.Retention > 0 {
		set += ", due = if_not_exists(due, :due), retain = :retain"
		in.ExpressionAttributeValues[":retain"] = table.Num(int64(t.Retention / time.Second))
		in.ExpressionAttributeValues[":due"] = table.Str(dueKey(t.InstanceID, p.now().Add(pastRetention(t.Retention))))
	} else {
		remove += ", due, retain"
	}
	if t.Next.Start.Number == firstSuccessor {
		set += ", oldest = :execution"
	}
	set += remove
	u.values(in, p.now())

	return &types.Update{
		Key: table.InstanceKey(t.InstanceID), UpdateExpression: &set, ConditionExpression: aws.String("#execution = :execution"),
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
	}
}

func (u *projection) assignments() string {
	set := ""
	if u.status != "" {
		set += ", #status = :status"
	}
	if u.version != "" && u.status != "" {
		set += ", #version = :version"
	}
	if u.status.Terminal() {
		set += ", wm = :wm, inbox = :inbox" // for the next incarnation of the ID (R3)
		if u.retention > 0 {
			set += ", due = :due"
		}
	}
	if u.customStatus != nil {
		set += ", #customStatus = :customStatus"
	}
	if u.blocked.Active {
		set += ", attention = :attention, blockedBy = :blockedBy, diagnosis = :diagnosis"
	}
	if u.paused != nil {
		set += ", attention = :attention, paused = :paused"
	}
	if u.pending() {
		set += ", attention = :attention"
	}
	return set
}

// removals returns the part of the update that removes the attention of an instance that was blocked or paused, and the
// due date from before its end.
func (u *projection) removals() string {
	const attention = " REMOVE attention, blockedBy, diagnosis, paused"
	switch {
	case u.status == "":
		return ""
	case u.pending():
		return " REMOVE blockedBy, diagnosis, paused"
	case u.blocked.Active:
		return " REMOVE paused"
	case u.paused != nil:
		return " REMOVE blockedBy, diagnosis"
	case u.status.Terminal() && u.retention == 0:
		return attention + ", due"
	default:
		return attention
	}
}

// mostDiagnosis limits the message of a diagnosis. JSON can encode each byte in six, and an item has at most 400 KB. If
// the item could not be written, the instance would not become Blocked and its messages would be redelivered. The
// history contains the whole message.
const mostDiagnosis = 16 << 10

// diagnosisOf returns the diagnosis of a blocked instance, shortened for its item.
func diagnosisOf(b *history.Blocked) *history.Failure {
	why := b.Diagnosis
	if why == nil || len(why.Message) <= mostDiagnosis {
		return why
	}
	cut := *why
	cut.Message = history.TruncateMessage(why.Message, mostDiagnosis)
	return &cut
}

func (u *projection) values(in *dynamodb.UpdateItemInput, now time.Time) {
	if u.status != "" {
		in.ExpressionAttributeNames[table.NameStatus] = table.AttrStatus
		in.ExpressionAttributeValues[":status"] = table.Str(string(u.status))
	}
	if u.version != "" && u.status != "" {
		in.ExpressionAttributeNames["#version"] = "version"
		in.ExpressionAttributeValues[":version"] = table.Str(u.version)
	}
	if u.status.Terminal() {
		in.ExpressionAttributeValues[":wm"] = table.Str(u.watermark.Sequence)
		in.ExpressionAttributeValues[":inbox"] = table.Str(u.watermark.Inbox)
		if u.retention > 0 {
			in.ExpressionAttributeValues[":due"] = table.Str(dueKey(u.instanceID, now.Add(u.retention)))
		}
	}
	if u.blocked.Active {
		why, _ := json.Marshal(diagnosisOf(&u.blocked)) //nolint:errchkjson // strings and numbers: cannot fail
		in.ExpressionAttributeValues[":attention"] = table.Str(partitionOf(u.instanceID))
		in.ExpressionAttributeValues[":blockedBy"] = table.Str(u.blocked.LastBuild)
		in.ExpressionAttributeValues[":diagnosis"] = table.Str(string(why))
	}
	if u.paused != nil {
		who, _ := json.Marshal(u.paused) //nolint:errchkjson // strings and a time: cannot fail
		in.ExpressionAttributeValues[":attention"] = table.Str(table.AttentionPaused)
		in.ExpressionAttributeValues[":paused"] = table.Str(string(who))
	}
	if u.pending() {
		in.ExpressionAttributeValues[":attention"] = table.Str(table.AttentionPending)
	}
	if u.customStatus != nil {
		in.ExpressionAttributeNames["#customStatus"] = "customStatus"
		in.ExpressionAttributeValues[":customStatus"] = table.Str(string(u.customStatus))
	}
}
