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

// paused is what is written down of pauses and resumes, in an item of the hub's table. Lambda and the table cannot change in one step, so
// that either verb may die between them, and the other run meanwhile:
//   - a mapping is written down before it is disabled, and forgotten after it is enabled;
//   - while a pause may be at work, a resume forgets nothing: what it finds enabled may be disabled the next moment, by a pause that dies;
//   - before a resume asks for a mapping it writes down since when that is disabled. A mapping that was changed since then was enabled,
//     although the resume that died has not forgotten it, and is disabled for another reason. Unless a deployment has changed it: that it was
//     enabled does not follow then.
type paused struct {
	// uuids are the mappings to enable.
	uuids map[string]bool
	// last names the last pause; nil is one of an earlier release, or none. pausing is when it began, until it ends.
	last    types.AttributeValue
	pausing time.Time
	// resuming is since when mappings were disabled that a resume has asked for, shapes how they were deployed then.
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

// mostPausing is how long a pause may be at work: longer than any caller waits, by any clock.
const mostPausing = 10 * time.Minute

func pausedKey() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": text("hub"), "sk": text("paused")}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// readPaused reads the item, strongly consistent.
func (h *Hub) readPaused(ctx context.Context) (paused, error) {
	p := paused{uuids: map[string]bool{}}
	out, err := h.Table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &h.Where.Table, Key: pausedKey(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return p, fmt.Errorf("hubadmin: hub %q: what is paused: %w", h.Where.Name, err)
	}
	if set, ok := out.Item[attrPaused].(*types.AttributeValueMemberSS); ok {
		for _, uuid := range set.Value {
			p.uuids[uuid] = true
		}
	}
	if at, ok := out.Item[attrPausing].(*types.AttributeValueMemberS); ok {
		p.pausing, _ = time.Parse(time.RFC3339Nano, at.Value) // what cannot be read is of another release, and over
	}
	p.resuming, p.shapes = textsOf(out.Item[attrResuming]), textsOf(out.Item[attrShapes])
	p.last = out.Item[attrLastPause]
	return p, nil
}

// textsOf are the texts in a map.
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

// disabledSince reports whether a mapping that is written down was enabled by a resume that died, and disabled by somebody since.
func (p *paused) disabledSince(m *Mapping) bool {
	since, asked := p.resuming[m.UUID]
	shape, known := p.shapes[m.UUID]
	deployed := known && shape != m.shape
	return p.uuids[m.UUID] && asked && m.State == stateDisabled && m.modified != since && !deployed
}

// begin writes down what a pause will disable. A resume that has read the item before forgets nothing from here on. What somebody
// has disabled since is forgotten first.
func (h *Hub) beginPause(ctx context.Context, uuids, since []string) error {
	if len(since) > 0 {
		if err := h.update(ctx, "DELETE paused :uuids SET lastPause = :pause", "", since, nil); err != nil {
			return err
		}
	}
	return h.update(ctx, adding(uuids)+" SET lastPause = :pause, pausing = :now REMOVE resuming, shapes", "", uuids,
		map[string]types.AttributeValue{":now": text(h.Now().UTC().Format(time.RFC3339Nano))})
}

// endPause writes down what a pause has disabled: a resume may have found some enabled, and forgotten them, before they were.
func (h *Hub) endPause(ctx context.Context, uuids []string) error {
	return h.update(ctx, adding(uuids)+" SET lastPause = :pause REMOVE pausing", "", uuids, nil)
}

func adding(uuids []string) string {
	if len(uuids) == 0 {
		return ""
	}
	return "ADD paused :uuids"
}

// beginResume writes down since when the mappings are disabled that a resume asks for, unless there was a pause since p was read.
func (h *Hub) beginResume(ctx context.Context, p *paused, chosen []Mapping) error {
	asked, shapes := map[string]types.AttributeValue{}, map[string]types.AttributeValue{}
	for i := range chosen {
		if m := &chosen[i]; p.uuids[m.UUID] && m.State == stateDisabled {
			asked[m.UUID], shapes[m.UUID] = text(m.modified), text(m.shape)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	return h.unlessPaused(ctx, p, "SET resuming = :asked, shapes = :shapes", nil, map[string]types.AttributeValue{
		":asked": &types.AttributeValueMemberM{Value: asked}, ":shapes": &types.AttributeValueMemberM{Value: shapes},
	})
}

// forget takes mappings out of those that are written down, unless there was a pause since p was read.
func (h *Hub) forget(ctx context.Context, p *paused, uuids ...string) error {
	if len(uuids) == 0 {
		return nil
	}
	return h.unlessPaused(ctx, p, "DELETE paused :uuids", uuids, nil)
}

func (h *Hub) unlessPaused(ctx context.Context, p *paused, update string, uuids []string, values map[string]types.AttributeValue) error {
	if p.last == nil {
		return h.update(ctx, update, "attribute_not_exists(lastPause)", uuids, values)
	}
	if values == nil {
		values = map[string]types.AttributeValue{}
	}
	values[":read"] = p.last
	return h.update(ctx, update, "lastPause = :read", uuids, values)
}

// update changes the item. Of the values it adds :pause, a new name, and :uuids, where the update has them.
func (h *Hub) update(ctx context.Context, update, condition string, uuids []string, values map[string]types.AttributeValue) error {
	in := &dynamodb.UpdateItemInput{TableName: &h.Where.Table, Key: pausedKey(), UpdateExpression: &update, ExpressionAttributeValues: values}
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
		err = errMeanwhile
	}
	if err != nil {
		return fmt.Errorf("hubadmin: hub %q: what is paused could not be written down: %w", h.Where.Name, err)
	}
	return nil
}
