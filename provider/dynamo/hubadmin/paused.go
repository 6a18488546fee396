package hubadmin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// paused is the pause record, an item of the hub's table. Lambda and the table cannot change atomically. A pause or
// resume can be interrupted between the two changes, and a pause and a resume can run at the same time:
//   - A mapping is recorded before it is disabled, and removed after it is enabled.
//   - While a pause may be running, a resume removes no mapping, because the pause may disable the mapping again and
//     then crash.
//   - Before a resume enables a mapping, it records the mapping's modification time. If the mapping is disabled with
//     another modification time later, the interrupted resume had enabled it, and another caller disabled it. This rule
//     does not apply if a deployment changed the mapping.
type paused struct {
	// uuids are the mappings to enable.
	uuids map[string]bool
	// last identifies the last pause. It is nil if there was none, or if an earlier release paused the hub. pausing is
	// the start time of the pause until it completes.
	last    types.AttributeValue
	pausing time.Time
	// resuming holds the modification times, and shapes the settings, of mappings when a resume enabled them.
	resuming, shapes map[string]string
}

// The attributes of the item.
const (
	attrPaused    = "paused"
	attrLastPause = "lastPause"
	attrPausing   = "pausing"
	attrResuming  = "resuming"
	attrShapes    = "shapes"
)

// mostPausing is the time after which a pause has certainly ended. It exceeds the callers' timeouts and clock skew.
const mostPausing = 10 * time.Minute

func pausedKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text("hub"), "sk": text("paused")}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// readPaused reads the item with strong consistency.
func (h *Admin) readPaused(ctx context.Context) (paused, error) {
	p := paused{uuids: map[string]bool{}}
	out, err := h.Table.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &h.Config.Table, Key: pausedKey(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return p, fmt.Errorf("hubadmin: hub %q: read pause record: %w", h.Config.Name, err)
	}
	if set, ok := out.Item[attrPaused].(*types.AttributeValueMemberSS); ok {
		for _, uuid := range set.Value {
			p.uuids[uuid] = true
		}
	}
	if at, ok := out.Item[attrPausing].(*types.AttributeValueMemberS); ok {
		p.pausing, _ = time.Parse(time.RFC3339Nano, at.Value) // ignore the format of another release
	}
	p.resuming, p.shapes = textsOf(out.Item[attrResuming]), textsOf(out.Item[attrShapes])
	p.last = out.Item[attrLastPause]
	return p, nil
}

// textsOf returns the strings in a map attribute.
func textsOf(v types.AttributeValue) map[string]string {
	all := map[string]string{}
	if m, ok := v.(*types.AttributeValueMemberM); ok {
		for name, each := range m.Value {
			if s, ok := each.(*types.AttributeValueMemberS); ok {
				all[name] = s.Value
			}
		}
	}
	return all
}

// disabledSince reports whether an interrupted resume enabled a recorded mapping, and another caller disabled it since.
func (p *paused) disabledSince(m *Mapping) bool {
	since, queried := p.resuming[m.UUID]
	shape, known := p.shapes[m.UUID]
	deployed := known && shape != m.shape
	return p.uuids[m.UUID] && queried && m.State == stateDisabled && m.modified != since && !deployed
}

// beginPause records the mappings that a pause will disable. After this write, a resume that read the item earlier
// cannot remove mappings. beginPause first removes the mappings in since, which another caller disabled.
func (h *Admin) beginPause(ctx context.Context, uuids, since []string) error {
	if len(since) > 0 {
		if err := h.update(ctx, "DELETE paused :uuids SET lastPause = :pause", "", since, nil); err != nil {
			return err
		}
	}
	return h.update(ctx, adding(uuids)+" SET lastPause = :pause, pausing = :now REMOVE resuming, shapes", "", uuids,
		map[string]types.AttributeValue{":now": text(h.Now().UTC().Format(time.RFC3339Nano))})
}

// endPause records the mappings that a pause disabled, because a concurrent resume may have removed some of them.
func (h *Admin) endPause(ctx context.Context, uuids []string) error {
	return h.update(ctx, adding(uuids)+" SET lastPause = :pause REMOVE pausing", "", uuids, nil)
}

func adding(uuids []string) string {
	if len(uuids) == 0 {
		return ""
	}
	return "ADD paused :uuids"
}

// beginResume records the modification times of the mappings that a resume will enable. It fails if a pause started
// since p was read.
func (h *Admin) beginResume(ctx context.Context, p *paused, chosen []Mapping) error {
	queried, shapes := map[string]types.AttributeValue{}, map[string]types.AttributeValue{}
	for i := range chosen {
		if m := &chosen[i]; p.uuids[m.UUID] && m.State == stateDisabled {
			queried[m.UUID], shapes[m.UUID] = text(m.modified), text(m.shape)
		}
	}
	if len(queried) == 0 {
		return nil
	}
	return h.unlessPaused(ctx, p, "SET resuming = :asked, shapes = :shapes", nil, map[string]types.AttributeValue{
		":asked": &types.AttributeValueMemberM{Value: queried}, ":shapes": &types.AttributeValueMemberM{Value: shapes},
	})
}

// forget removes mappings from the record. It fails if a pause started since p was read.
func (h *Admin) forget(ctx context.Context, p *paused, uuids ...string) error {
	if len(uuids) == 0 {
		return nil
	}
	return h.unlessPaused(ctx, p, "DELETE paused :uuids", uuids, nil)
}

func (h *Admin) unlessPaused(
	ctx context.Context, p *paused, update string, uuids []string, values map[string]types.AttributeValue,
) error {
	if p.last == nil {
		return h.update(ctx, update, "attribute_not_exists(lastPause)", uuids, values)
	}
	if values == nil {
		values = map[string]types.AttributeValue{}
	}
	values[":read"] = p.last
	return h.update(ctx, update, "lastPause = :read", uuids, values)
}

// update changes the item. It sets the values :pause, a new identifier, and :uuids if the expression uses them.
func (h *Admin) update(
	ctx context.Context, update, condition string, uuids []string, values map[string]types.AttributeValue,
) error {
	in := &dynamodb.UpdateItemInput{
		TableName: &h.Config.Table, Key: pausedKey(), UpdateExpression: &update, ExpressionAttributeValues: values,
	}
	if in.ExpressionAttributeValues == nil {
		in.ExpressionAttributeValues = map[string]types.AttributeValue{}
	}
	if strings.Contains(update, ":pause") {
		in.ExpressionAttributeValues[":pause"] = text(rand.Text())
	}
	if len(uuids) > 0 {
		in.ExpressionAttributeValues[":uuids"] = &types.AttributeValueMemberSS{Value: uuids}
	}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	_, err := h.Table.UpdateItem(ctx, in)
	if _, since := errors.AsType[*types.ConditionalCheckFailedException](err); since {
		err = errConcurrentChange
	}
	if err != nil {
		return fmt.Errorf("hubadmin: hub %q: write pause record: %w", h.Config.Name, err)
	}
	return nil
}
