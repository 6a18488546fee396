// Package updates stores the results of updates as items next to the instance. A repeated call thereby finds the result
// even if another execution is the current one.
package updates

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// Store reads and writes the results of updates. It is safe for concurrent use.
type Store struct {
	table *table.Table
	now   func() time.Time
}

// New returns the results of updates in a table.
func New(t *table.Table, now func() time.Time) *Store { return &Store{table: t, now: now} }

// The results of updates are items next to the instance item. They do not belong to an execution.
const (
	skResults   = "u#" // and a digest of the update's ID
	attrOutcome = "outcome"
)

const (
	// maxResults is the maximum number of results in one transaction of up to 100 writes and 4 MB.
	maxResults          = 90
	maxTransactionBytes = 3 << 20
	// maxErrorBytes is the maximum size of a stored error, because an item has at most 400 KB.
	maxErrorBytes = 200 << 10
)

func resultKey(instanceID, updateID string) table.Item {
	return table.Key(table.IDPrefix+instanceID, skResults+table.Digest("update", updateID))
}

// Put writes results in transactions that also mark the instance. The mark shows a deletion that there are results, and
// no result is written after the deletion has started.
func (us *Store) Put(ctx context.Context, results ...provider.UpdateResult) error {
	for len(results) > 0 {
		puts, n, err := us.nextTransaction(results)
		if err == nil {
			err = us.putResults(ctx, &results[0], puts)
		}
		if err != nil {
			return err
		}
		results = results[n:]
	}
	return nil
}

// nextTransaction returns the writes of the results that fit one transaction, and their number. If an update has
// several results, it writes the first one.
func (us *Store) nextTransaction(results []provider.UpdateResult) (puts []*types.Put, n int, err error) {
	written, bytes := map[string]bool{}, 0
	for ; n < len(results) && len(puts) < maxResults; n++ {
		a := &results[n]
		if written[a.UpdateID] {
			continue
		}
		put, size, err := us.encode(a)
		if err != nil {
			return nil, 0, err
		}
		if bytes += size; bytes > maxTransactionBytes && n > 0 {
			break
		}
		written[a.UpdateID] = true
		puts = append(puts, put)
	}
	return puts, n, nil
}

// putResults writes the missing results of updates of one incarnation.
func (us *Store) putResults(ctx context.Context, of *provider.UpdateResult, puts []*types.Put) error {
	for len(puts) > 0 {
		writes := []types.TransactWriteItem{{Update: us.markInstance(of)}}
		for _, put := range puts {
			writes = append(writes, types.TransactWriteItem{Put: put})
		}
		err := us.table.Transact(ctx, of.InstanceID, writes)
		if err == nil {
			return nil
		}
		if _, gone := table.FailedItem(err, 0); gone {
			return nil // the incarnation has ended or is being deleted, so the result has no reader
		}
		var left []*types.Put
		for i, put := range puts {
			if _, there := table.FailedItem(err, i+1); !there {
				left = append(left, put)
			}
		}
		if len(left) == len(puts) {
			return err
		}
		puts = left
	}
	return nil
}

// markInstance marks an instance as having results, on condition that the incarnation is the same and is not being
// deleted.
func (us *Store) markInstance(a *provider.UpdateResult) *types.Update {
	return &types.Update{
		Key:                 table.InstanceKey(a.InstanceID),
		UpdateExpression:    aws.String("SET answered = :yes"),
		ConditionExpression: aws.String("startId = :life AND attribute_not_exists(deleting)"),
		ExpressionAttributeValues: table.Item{
			":yes":  &types.AttributeValueMemberBOOL{Value: true},
			":life": table.Str(a.StartID),
		},
	}
}

// encode returns the write of a result and its size. An existing result of the incarnation is not replaced, unless it
// is UpdateResultExpired or its retention has passed.
func (us *Store) encode(a *provider.UpdateResult) (put *types.Put, bytes int, err error) {
	now := us.now()
	it := resultKey(a.InstanceID, a.UpdateID)
	it[table.AttrStartID] = table.Str(a.StartID)
	it["updateId"] = table.Str(a.UpdateID)
	it["name"] = table.Str(a.Name)
	it[attrOutcome] = table.Str(string(a.Outcome))
	it[table.AttrExecution] = table.Str(a.ExecutionID)
	it["answeredAt"] = table.Str(table.FormatTime(now))
	it[table.AttrTTL] = table.Unix(now.Add(provider.UpdateResultRetention))
	if a.EventID > 0 {
		it["eventId"] = table.Num(a.EventID)
	}
	if a.Reason != "" {
		it["reason"] = table.Str(a.Reason)
	}
	if a.Result != nil {
		it["result"] = table.Str(string(a.Result))
	}
	const rest = 1 << 10
	bytes = rest + len(a.UpdateID) + len(a.Name) + len(a.Result)
	if a.Error != nil {
		doc, err := encodeError(a)
		if err != nil {
			return nil, 0, fmt.Errorf("dynamo: instance %q: result of update %q: %w", a.InstanceID, a.UpdateID, err)
		}
		bytes += len(doc)
		it["error"] = table.Str(doc)
	}

	return &types.Put{
		Item: it,
		ConditionExpression: aws.String(
			table.NotExists + " OR startId <> :life OR #outcome = :forgotten OR #until < :today",
		),
		ExpressionAttributeNames: map[string]string{"#outcome": attrOutcome, "#until": table.AttrTTL},
		ExpressionAttributeValues: table.Item{
			":life":      table.Str(a.StartID),
			":forgotten": table.Str(string(provider.UpdateResultExpired)),
			":today":     table.Unix(now),
		},
	}, bytes, nil
}

// encodeError returns the error of a result. If it is too large for an item, its causes are omitted, because the
// history contains them.
func encodeError(a *provider.UpdateResult) (string, error) {
	doc, err := json.Marshal(a.Error)
	if err == nil && len(doc) > maxErrorBytes {
		alone := *a.Error
		alone.Cause = nil
		doc, err = json.Marshal(&alone)
	}
	return string(doc), err
}

// Read reads a result. It ignores a result whose retention has passed, because DynamoDB can take days to delete
// it.
func (us *Store) Read(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	found, err := us.table.Get(ctx, instanceID, resultKey(instanceID, updateID), provider.Strong)
	if err != nil {
		return provider.UpdateResult{}, err
	}
	if it := found; len(it) > 0 && table.GetNumber(it, table.AttrTTL) >= us.now().Unix() {
		return decode(instanceID, it)
	}
	return provider.UpdateResult{}, fmt.Errorf("dynamo: instance %q: result of update %q: %w", instanceID, updateID,
		provider.ErrNotFound)
}

func decode(instanceID string, it table.Item) (provider.UpdateResult, error) {
	a := provider.UpdateResult{
		InstanceID:  instanceID,
		StartID:     table.GetString(it, table.AttrStartID),
		UpdateID:    table.GetString(it, "updateId"),
		Name:        table.GetString(it, "name"),
		Outcome:     provider.UpdateOutcome(table.GetString(it, attrOutcome)),
		Reason:      table.GetString(it, "reason"),
		ExecutionID: table.GetString(it, table.AttrExecution),
		EventID:     table.GetNumber(it, "eventId"),
	}
	if result := table.GetString(it, "result"); result != "" {
		a.Result = history.Payload(result)
	}
	if doc := table.GetString(it, "error"); doc != "" {
		if err := json.Unmarshal([]byte(doc), &a.Error); err != nil {
			return a, fmt.Errorf("dynamo: instance %q: result of update %q: %w", instanceID, a.UpdateID, err)
		}
	}
	return a, nil
}

// DeleteAll deletes the results of an instance that is being deleted. No result is written after the start of the
// deletion. It reads only keys, page by page, and calls progress after each page.
func (us *Store) DeleteAll(ctx context.Context, it table.Item, progress func(ctx context.Context) error) error {
	if it[table.AttrHasUpdateResults] == nil {
		return nil
	}
	pk := table.GetString(it, table.AttrPK)
	instanceID := table.InstanceIDOf(it)
	in := table.PrefixQuery(pk, skResults, provider.Strong)
	in.ProjectionExpression = aws.String("#sk")
	in.ExpressionAttributeNames = table.Names(table.AttrSK)
	for page, err := range us.table.Query(ctx, instanceID, in) {
		if err != nil {
			return err
		}
		err := awscall.ForEach(len(page), func(i int) error {
			return us.table.DeleteItem(ctx, instanceID, table.Key(pk, table.GetString(page[i], table.AttrSK)))
		})
		if err == nil {
			err = progress(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
