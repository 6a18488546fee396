package simaws

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// tokenLifetime is the time for which DynamoDB stores a ClientRequestToken. maxToken is the maximum length of a token.
const (
	tokenLifetime = 10 * time.Minute
	maxToken      = 36
)

// tokens stores the transactions with a ClientRequestToken.
type tokens struct {
	mu   sync.Mutex
	seed maphash.Seed
	made map[string]transaction
	aged []agedToken // in order of age
}

// transaction is a hash of the request, which must be equal in a repetition.
type transaction struct {
	hash  uint64
	until int64
}

type agedToken struct {
	token string
	until int64
}

// known reports whether a transaction was executed. It returns an error if the token was used for another transaction.
func (t *tokens) known(token string, items []ddbtypes.TransactWriteItem, now int64) (bool, error) {
	if len(token) < 1 || len(token) > maxToken {
		return false, invalid("1 validation error detected: Value '%s' at 'clientRequestToken' failed to satisfy "+
			"constraint: Member must have length between 1 and %d", token, maxToken)
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	made, ok := t.made[token]
	if !ok || made.until <= now {
		return false, nil
	}

	if made.hash != t.hash(items) {
		return false, &ddbtypes.IdempotentParameterMismatchException{
			Message: aws.String("Parameters do not match for a ClientRequestToken used before"),
		}
	}

	return true, nil
}

// add stores a transaction and deletes expired transactions.
func (t *tokens) add(token string, items []ddbtypes.TransactWriteItem, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.made == nil {
		t.made, t.seed = map[string]transaction{}, maphash.MakeSeed()
	}

	for len(t.aged) > 0 && t.aged[0].until <= now {
		if oldest := t.aged[0]; t.made[oldest.token].until == oldest.until {
			delete(t.made, oldest.token)
		}

		t.aged = t.aged[1:]
	}

	until := now + int64(tokenLifetime)
	t.made[token] = transaction{t.hash(items), until}
	t.aged = append(t.aged, agedToken{token, until})
}

// hash returns a hash of all parts of the request that DynamoDB compares.
func (t *tokens) hash(items []ddbtypes.TransactWriteItem) uint64 {
	h := hasher{}
	h.SetSeed(t.seed)

	for _, it := range items {
		switch {
		case it.Put != nil:
			h.request("put", it.Put.Item, it.Put.ConditionExpression, nil, it.Put.ExpressionAttributeNames,
				it.Put.ExpressionAttributeValues)
		case it.Update != nil:
			h.request("update", it.Update.Key, it.Update.ConditionExpression, it.Update.UpdateExpression,
				it.Update.ExpressionAttributeNames, it.Update.ExpressionAttributeValues)
		case it.Delete != nil:
			h.request("delete", it.Delete.Key, it.Delete.ConditionExpression, nil, it.Delete.ExpressionAttributeNames,
				it.Delete.ExpressionAttributeValues)
		case it.ConditionCheck != nil:
			c := it.ConditionCheck
			h.request("check", c.Key, c.ConditionExpression, nil, c.ExpressionAttributeNames,
				c.ExpressionAttributeValues)
		}
	}

	return h.Sum64()
}

// hasher hashes texts and values with their lengths and types, so that different sequences have different hashes.
type hasher struct {
	maphash.Hash
}

func (h *hasher) request(
	action string, it item, condition, update *string, names map[string]string, values item,
) {
	h.text(action)
	h.item(it)
	h.text(aws.ToString(condition))
	h.text(aws.ToString(update))

	for _, name := range slices.Sorted(maps.Keys(names)) {
		h.text(name)
		h.text(names[name])
	}

	h.item(values)
}

func (h *hasher) text(s string) {
	h.number(len(s))
	_, _ = h.WriteString(s) // never fails
}

func (h *hasher) number(n int) {
	maphash.WriteComparable(&h.Hash, n)
}

func (h *hasher) item(it item) {
	h.number(len(it))

	for _, name := range slices.Sorted(maps.Keys(it)) {
		h.text(name)
		h.value(it[name])
	}
}

func (h *hasher) value(v ddbtypes.AttributeValue) {
	h.text(typeOf(v))

	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		h.text(v.Value)
	case *ddbtypes.AttributeValueMemberN:
		h.text(v.Value)
	case *ddbtypes.AttributeValueMemberB:
		h.text(string(v.Value))
	case *ddbtypes.AttributeValueMemberBOOL:
		maphash.WriteComparable(&h.Hash, v.Value)
	case *ddbtypes.AttributeValueMemberM:
		h.item(v.Value)
	case *ddbtypes.AttributeValueMemberL:
		h.number(len(v.Value))

		for _, member := range v.Value {
			h.value(member)
		}
	default:
		h.set(v)
	}
}

func (h *hasher) set(v ddbtypes.AttributeValue) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberSS:
		h.number(len(v.Value))

		for _, s := range v.Value {
			h.text(s)
		}
	case *ddbtypes.AttributeValueMemberNS:
		h.number(len(v.Value))

		for _, s := range v.Value {
			h.text(s)
		}
	case *ddbtypes.AttributeValueMemberBS:
		h.number(len(v.Value))

		for _, b := range v.Value {
			h.text(string(b))
		}
	}
}
