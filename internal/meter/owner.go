package meter

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// Prefixes of partition keys (docs/internals/formats.md).
const (
	ofInstance     = "i#"
	ofExecution    = "x#"
	ofInterruption = "n#"
)

// owner is what a call says of whose it is: a partition key, which of an execution needs what was seen before, or a message.
type owner struct {
	pk string
	// execution is one that the same item or message names with its instance.
	execution string
	message   *string
}

// targetOwner is whose timer a schedule sends.
func targetOwner(t *schedulertypes.Target) []owner {
	if t == nil || t.Input == nil {
		return nil
	}
	return []owner{{message: t.Input}}
}

func keyOwner(key map[string]types.AttributeValue) []owner { return []owner{{pk: text(key["pk"])}} }

func itemOwner(it map[string]types.AttributeValue) []owner {
	o := owner{pk: text(it["pk"])}
	switch {
	case strings.HasPrefix(o.pk, ofInstance):
		o.execution = text(it["execution"])
	case text(it["instance"]) != "": // the first segment of an execution names its instance
		o.execution, o.pk = strings.TrimPrefix(o.pk, ofExecution), ofInstance+text(it["instance"])
	}
	return []owner{o}
}

// transactionOwner: a transaction is one instance's, in whatever items.
func transactionOwner(writes []types.TransactWriteItem) []owner {
	var all []owner
	for i := range writes {
		if put := writes[i].Put; put != nil {
			all = append(all, itemOwner(put.Item)...)
		} else if up := writes[i].Update; up != nil {
			all = append(all, keyOwner(up.Key)...)
		}
	}
	return all
}

// valueOwners finds the partition of a query among its values.
func valueOwners(values map[string]types.AttributeValue) []owner {
	for _, v := range values {
		if pk := text(v); strings.HasPrefix(pk, ofInstance) || strings.HasPrefix(pk, ofExecution) {
			return []owner{{pk: pk}}
		}
	}
	return nil
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// instances are those that a call was made for, each once for each of its entries; one empty id where none is known. The lock is held.
func (m *Meter) instances(whose []owner) []string {
	ids := make([]string, 0, len(whose))
	for _, o := range whose {
		ids = append(ids, m.instance(o))
	}
	if len(ids) == 0 {
		return []string{""}
	}
	return ids
}

func (m *Meter) instance(o owner) string {
	if o.message != nil {
		var body struct {
			InstanceID  string `json:"instanceId"`
			ExecutionID string `json:"executionId"`
		}
		if err := json.Unmarshal([]byte(*o.message), &body); err != nil {
			return ""
		}
		m.learn(body.ExecutionID, body.InstanceID)
		return body.InstanceID
	}
	if id, ok := strings.CutPrefix(o.pk, ofInterruption); ok {
		return id
	}
	if id, ok := strings.CutPrefix(o.pk, ofInstance); ok {
		m.learn(o.execution, id)
		return id
	}
	return m.owners[strings.TrimPrefix(o.pk, ofExecution)]
}

// learn remembers whose an execution is.
func (m *Meter) learn(execution, instance string) {
	if execution != "" && instance != "" {
		m.owners[execution] = instance
	}
}
