package simaws

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Limits of DynamoDB, from "Service, account, and table quotas" and the API reference.
const (
	maxItemSize         = 400 << 10
	maxPageSize         = 1 << 20
	maxTransactionSize  = 4 << 20
	maxTransactionItems = 100
	maxPartitionKey     = 2048
	maxSortKey          = 1024
)

// TableConfig describes the table of a Cloud.
type TableConfig struct {
	// Name is the name that calls must specify. If it is empty, calls may specify any name.
	Name string
	// PartitionKey and SortKey name the attributes of the primary key. SortKey is optional.
	PartitionKey, SortKey string
	// Indexes are the secondary indexes.
	Indexes []Index
	// NumberKeys names the key attributes that are numbers. The others are strings.
	NumberKeys []string
}

// Index describes a global secondary index. It is sparse, so it does not contain items without its keys.
type Index struct {
	Name string
	// PartitionKey and SortKey name the attributes of the index key. SortKey is optional.
	PartitionKey, SortKey string
	// Include names the projected attributes, in addition to the keys of the index and the table. Nil projects all.
	Include []string
}

// shardCount is the number of locks, one for each bit of a mask.
const shardCount = 64

// Table simulates a DynamoDB table. It implements any interface that consists of its methods of the SDK client.
type Table struct {
	schema
	storage

	cloud       *Cloud
	indexes     []*index
	expressions expressions
	tokens      tokens
	past        past

	others map[string]*Table // other tables by name
}

// schema describes the keys of a table.
type schema struct {
	TableConfig

	space string // the prefix of the partitions of another table that shares the storage
}

// storage contains the items of a table. Each shard has a lock, and a mask selects shards.
type storage struct {
	seed   maphash.Seed
	shards *[shardCount]shard
}

// shard contains the partitions whose keys hash to it.
type shard struct {
	mu         sync.Mutex
	partitions map[string]*rows
}

// key is a primary key as text. Equal keys have equal texts, and the field sort has the order of the keys.
type key struct {
	partition, sort string
}

func newTable(c *Cloud, config TableConfig) *Table {
	t := &Table{
		schema: schema{TableConfig: config}, storage: storage{maphash.MakeSeed(), &[shardCount]shard{}}, cloud: c,
	}
	if config.PartitionKey == "" || config.PartitionKey == config.SortKey {
		panic(fmt.Sprintf("simaws: table %q requires a partition key that differs from its sort key", config.Name))
	}

	for i := range t.shards {
		t.shards[i].partitions = map[string]*rows{}
	}

	for _, ix := range config.Indexes {
		if ix.Name == "" || ix.PartitionKey == "" || t.index(ix.Name) != nil {
			panic(fmt.Sprintf("simaws: index %q requires a unique name and a partition key", ix.Name))
		}

		t.indexes = append(t.indexes, newIndex(t, ix))
	}

	return t
}

// Add adds another table. Calls can name the table, even in one transaction with the first table. The table has no
// indexes and no Lag, and backups do not contain it. Call Add before any other call.
func (t *Table) Add(config TableConfig) {
	if config.Name == "" || t.Name == "" || config.Name == t.Name || t.others[config.Name] != nil ||
		len(config.Indexes) > 0 {
		panic(fmt.Sprintf("simaws: table %q requires a unique name, and no indexes", config.Name))
	}

	other := newTable(t.cloud, config)
	other.storage, other.space = t.storage, config.Name+"\x00"

	if t.others == nil {
		t.others = map[string]*Table{}
	}

	t.others[config.Name] = other
}

// everyShard is the mask of all shards.
const everyShard = ^uint64(0)

// shardOf returns the mask of the shard of a partition.
func (st *storage) shardOf(partition string) uint64 {
	return 1 << (maphash.String(st.seed, partition) % shardCount)
}

// lock locks the shards of a mask, always in the same order.
func (st *storage) lock(mask uint64) {
	for ; mask != 0; mask &= mask - 1 {
		st.shards[bits.TrailingZeros64(mask)].mu.Lock()
	}
}

func (st *storage) unlock(mask uint64) {
	for ; mask != 0; mask &= mask - 1 {
		st.shards[bits.TrailingZeros64(mask)].mu.Unlock()
	}
}

// partition returns the rows of a partition, or nil if it is empty. Its shard must be locked.
func (st *storage) partition(name string, mask uint64) *rows {
	return st.shardByMask(mask).partitions[name]
}

// row returns the row of a key, or nil if there is none. Its shard must be locked.
func (st *storage) row(k key, mask uint64) *row {
	if p := st.partition(k.partition, mask); p != nil {
		return p.find(k.sort, "")
	}

	return nil
}

// named returns the table that a call names.
func (t *Table) named(name *string) (*Table, error) {
	if t.Name == "" || (name != nil && *name == t.Name) {
		return t, nil
	}

	if name != nil && t.others[*name] != nil {
		return t.others[*name], nil
	}

	message := "Requested resource not found"

	return nil, &ddbtypes.ResourceNotFoundException{Message: &message}
}

// keyText returns the value of a key attribute as a text in key order. problem describes an invalid value.
func (sc *schema) keyText(name string, v ddbtypes.AttributeValue) (text, problem string) {
	expected := "S"
	if slices.Contains(sc.NumberKeys, name) {
		expected = "N"
	}

	if got := typeOf(v); got != expected {
		return "", fmt.Sprintf("Type mismatch for key %s expected: %s actual: %s", name, expected, got)
	}

	if n, ok := v.(*ddbtypes.AttributeValueMemberN); ok {
		return sortableNumber(n.Value), ""
	}

	s, _ := v.(*ddbtypes.AttributeValueMemberS)

	return s.Value, ""
}

// keyOf returns the primary key of an item to put.
func (sc *schema) keyOf(it item) (key, error) {
	var (
		k   key
		err error
	)

	k.partition, err = sc.keyAttribute(it, sc.PartitionKey, maxPartitionKey)
	k.partition = sc.space + k.partition

	if err != nil || sc.SortKey == "" {
		return k, err
	}

	k.sort, err = sc.keyAttribute(it, sc.SortKey, maxSortKey)

	return k, err
}

// exactKey returns a primary key from a map that must not contain other attributes.
func (sc *schema) exactKey(it item) (key, error) {
	attributes := 2
	if sc.SortKey == "" {
		attributes = 1
	}

	if len(it) != attributes {
		return key{}, invalid("The provided key element does not match the schema")
	}

	k, err := sc.keyOf(it)
	if err != nil && (it[sc.PartitionKey] == nil || (attributes > 1 && it[sc.SortKey] == nil)) {
		return key{}, invalid("The provided key element does not match the schema")
	}

	return k, err
}

func (sc *schema) keyAttribute(it item, name string, most int) (string, error) {
	v := it[name]
	if v == nil {
		return "", invalid("One or more parameter values were invalid: Missing the key %s in the item", name)
	}

	text, problem := sc.keyText(name, v)

	switch {
	case problem != "":
		return "", invalid("One or more parameter values were invalid: %s", problem)
	case text == "":
		return "", invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot "+
			"contain an empty string value. Key: %s", name)
	case len(text) > most:
		return "", invalid("One or more parameter values were invalid: Size of key %s has exceeded the maximum size "+
			"limit of %d bytes", name, most)
	}

	return text, nil
}

// expressions caches parsed expressions by their text, because programs use few expressions often.
type expressions struct {
	conditions, filters, keys, updates sync.Map
}

// parsed returns the cached result of parse for a text, or nil if text is nil.
func parsed[T any](cache *sync.Map, text *string, parse func(string) (*T, error)) (*T, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // the expression is absent
	}

	if known, ok := cache.Load(*text); ok {
		if v, ok := known.(*T); ok {
			return v, nil
		}
	}

	v, err := parse(*text)
	if err != nil {
		return nil, err
	}

	cache.Store(*text, v)

	return v, nil
}

func (e *expressions) condition(text *string) (*condition, error) {
	return parsed(&e.conditions, text, func(text string) (*condition, error) {
		return parseCondition("ConditionExpression", text)
	})
}

func (e *expressions) filter(text *string) (*condition, error) {
	return parsed(&e.filters, text, func(text string) (*condition, error) {
		return parseCondition("FilterExpression", text)
	})
}

func (e *expressions) key(text *string) (*condition, error) {
	return parsed(&e.keys, text, func(text string) (*condition, error) {
		return parseCondition("KeyConditionExpression", text)
	})
}

func (e *expressions) update(text *string) (*update, error) {
	return parsed(&e.updates, text, parseUpdate)
}

// shardByMask returns the shard of a mask with one bit.
func (st *storage) shardByMask(mask uint64) *shard { return &st.shards[bits.TrailingZeros64(mask)] }
