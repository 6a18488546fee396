package meter

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// Prefixes of partition keys (docs/internals/formats.md).
const (
	prefixInstance     = "i#"
	prefixExecution    = "x#"
	prefixInterruption = "n#"
)

// owner identifies the instance of a call by a partition key or a message. The key of an execution requires that an
// earlier call named its instance.
type owner struct {
	pk        string
	execution string // an execution of the instance that the same item names
	message   *string
}

// targetOwner returns the owner of the timer that a schedule sends.
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
	case strings.HasPrefix(o.pk, prefixInstance):
		o.execution = text(it["execution"])
	case text(it["instance"]) != "": // the first segment of an execution names its instance
		o.execution, o.pk = strings.TrimPrefix(o.pk, prefixExecution), prefixInstance+text(it["instance"])
	}
	return []owner{o}
}

// transactionOwner returns the owners of the items of a transaction, which are of one instance.
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

// valueOwners returns the owner of the partition that a query reads.
func valueOwners(values map[string]types.AttributeValue) []owner {
	for _, v := range values {
		if pk := text(v); strings.HasPrefix(pk, prefixInstance) || strings.HasPrefix(pk, prefixExecution) {
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

// instances returns the instance of each owner, or one empty ID if there are no owners. The lock is held.
func (m *Meter) instances(owners []owner) []string {
	ids := make([]string, 0, len(owners))
	for _, o := range owners {
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
	if id, ok := strings.CutPrefix(o.pk, prefixInterruption); ok {
		return id
	}
	if id, ok := strings.CutPrefix(o.pk, prefixInstance); ok {
		m.learn(o.execution, id)
		return id
	}
	return m.owners[strings.TrimPrefix(o.pk, prefixExecution)]
}

// learn stores the instance of an execution.
func (m *Meter) learn(execution, instance string) {
	if execution != "" && instance != "" {
		m.owners[execution] = instance
	}
}
