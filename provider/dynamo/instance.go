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
)

// timeFormat has a fixed width, so that text sorts as time does.
const timeFormat = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

func instanceItem(in provider.Instance) (item, error) {
	it := instanceKey(in.InstanceID)
	it["name"], it["status"], it["startId"] = str(in.Name), str(string(in.Status)), str(in.StartID)
	it["execution"], it["number"] = str(in.ExecutionID), num(in.ExecutionNumber)
	it[attrShard], it[attrCreated] = str(shardOf(in.InstanceID)), str(createdKey(in))
	it["updated"] = str(formatTime(in.UpdatedAt))
	if in.Version != "" {
		it["version"] = str(in.Version)
	}
	if len(in.Tags) > 0 {
		b, err := json.Marshal(in.Tags)
		if err != nil {
			return nil, fmt.Errorf("dynamo: instance %q: tags: %w", in.InstanceID, err)
		}
		it["tags"] = str(string(b))
	}
	return it, nil
}

// createdKey sorts by time and is unique, so that a page can go on exactly where the last one ended.
func createdKey(in provider.Instance) string {
	return formatTime(in.CreatedAt) + "#" + digest(in.InstanceID)[:8]
}

func decodeInstance(it item) (provider.Instance, error) {
	id := getString(it, attrPK)
	in := provider.Instance{
		InstanceID: id[min(2, len(id)):], ExecutionID: getString(it, "execution"), ExecutionNumber: getNumber(it, "number"),
		Name: getString(it, "name"), Version: getString(it, "version"), Status: provider.RuntimeStatus(getString(it, "status")),
		StartID: getString(it, "startId"),
	}
	var err error
	created := getString(it, attrCreated)
	if in.CreatedAt, err = time.Parse(timeFormat, created[:min(len(timeFormat), len(created))]); err != nil {
		return in, fmt.Errorf("dynamo: instance %q: created: %w", in.InstanceID, err)
	}
	if in.UpdatedAt, err = time.Parse(timeFormat, getString(it, "updated")); err != nil {
		return in, fmt.Errorf("dynamo: instance %q: updated: %w", in.InstanceID, err)
	}
	if custom := getString(it, "customStatus"); custom != "" {
		in.CustomStatus = json.RawMessage(custom)
	}
	if tags := getString(it, "tags"); tags != "" {
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
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", instanceID, func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: instanceKey(instanceID), ConsistentRead: aws.Bool(bool(c))})
		return err
	})
	if err != nil {
		return provider.Instance{}, err
	}
	if len(out.Item) == 0 {
		return provider.Instance{}, fmt.Errorf("dynamo: instance %q: %w", instanceID, provider.ErrNotFound)
	}
	return decodeInstance(out.Item)
}

// projection is what history says of an instance, up to a segment. What did not change is empty.
type projection struct {
	instanceID, executionID string
	sequence                int64
	status                  provider.RuntimeStatus
	version                 string
	customStatus            history.Payload
	watermark               provider.Position
}

// changed reports whether there is anything to write.
func (u *projection) changed() bool { return u.status != "" || u.customStatus != nil }

// project writes what history says onto the instance item, on the condition that the instance's execution is still this one
// (R7) and no later segment was projected: a slow sender must not undo what a faster one has written. When the condition
// fails somebody has gone further, and nothing is left to do.
func (p *Provider) project(ctx context.Context, u projection) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &p.hub.Table, Key: instanceKey(u.instanceID),
		UpdateExpression:         aws.String("SET #updated = :updated, #seq = :seq" + u.assignments()),
		ConditionExpression:      aws.String("#execution = :execution AND (attribute_not_exists(#seq) OR #seq < :seq)"),
		ExpressionAttributeNames: map[string]string{"#updated": "updated", "#execution": "execution", "#seq": "seq"},
		ExpressionAttributeValues: item{
			":updated": str(formatTime(p.now())), ":execution": str(u.executionID), ":seq": num(u.sequence),
		},
	}
	u.values(in)
	err := call(ctx, "DynamoDB.UpdateItem", u.instanceID, func() error {
		_, err := p.table.UpdateItem(ctx, in)
		return err
	})
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return nil
	}
	return err
}

func (u *projection) assignments() string {
	set := ""
	if u.status != "" {
		set += ", #status = :status, #version = :version"
	}
	if u.status.Terminal() {
		set += ", wm = :wm, inbox = :inbox" // for the next life of the id (R3)
	}
	if u.customStatus != nil {
		set += ", #customStatus = :customStatus"
	}
	return set
}

func (u *projection) values(in *dynamodb.UpdateItemInput) {
	if u.status != "" {
		in.ExpressionAttributeNames["#status"], in.ExpressionAttributeNames["#version"] = "status", "version"
		in.ExpressionAttributeValues[":status"], in.ExpressionAttributeValues[":version"] = str(string(u.status)), str(u.version)
	}
	if u.status.Terminal() {
		in.ExpressionAttributeValues[":wm"], in.ExpressionAttributeValues[":inbox"] = str(u.watermark.Sequence), str(u.watermark.Inbox)
	}
	if u.customStatus != nil {
		in.ExpressionAttributeNames["#customStatus"] = "customStatus"
		in.ExpressionAttributeValues[":customStatus"] = str(string(u.customStatus))
	}
}
