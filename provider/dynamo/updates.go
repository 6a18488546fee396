package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// The results of updates are items next to that of the instance, so that a repeated call finds the result whichever
// execution is current.
const (
	skAnswers   = "u#" // and a digest of the update's ID
	attrOutcome = "outcome"
)

const (
	// mostAnswers is the maximum number of results in one transaction of up to 100 writes and 4 MB.
	mostAnswers      = 90
	mostAnswersBytes = 3 << 20
	// mostErrorBytes is the maximum size of a stored error: an item has at most 400 KB.
	mostErrorBytes = 200 << 10
)

func answerKey(instanceID, updateID string) item {
	return item{attrPK: str(idPrefix + instanceID), attrSK: str(skAnswers + digest("update", updateID))}
}

// PutUpdateResults writes results in transactions that also mark the instance. A deletion therefore knows that there
// are results, and no result is written after it has started.
func (p *Provider) PutUpdateResults(ctx context.Context, answers ...provider.UpdateResult) error {
	for len(answers) > 0 {
		puts, n, err := p.putsOf(answers)
		if err == nil {
			err = p.putAnswers(ctx, &answers[0], puts)
		}
		if err != nil {
			return err
		}
		answers = answers[n:]
	}
	return nil
}

// putsOf returns the writes of as many results as fit one transaction, and their number. If an update has several
// results, it writes the first.
func (p *Provider) putsOf(answers []provider.UpdateResult) (puts []*types.Put, n int, err error) {
	written, bytes := map[string]bool{}, 0
	for ; n < len(answers) && len(puts) < mostAnswers; n++ {
		a := &answers[n]
		if written[a.UpdateID] {
			continue
		}
		put, size, err := p.putAnswer(a)
		if err != nil {
			return nil, 0, err
		}
		if bytes += size; bytes > mostAnswersBytes && n > 0 {
			break
		}
		written[a.UpdateID] = true
		puts = append(puts, put)
	}
	return puts, n, nil
}

// putAnswers writes the missing results of updates of one incarnation.
func (p *Provider) putAnswers(ctx context.Context, of *provider.UpdateResult, puts []*types.Put) error {
	for len(puts) > 0 {
		writes := []types.TransactWriteItem{{Update: p.markAnswered(of)}}
		for _, put := range puts {
			writes = append(writes, types.TransactWriteItem{Put: put})
		}
		err := p.transact(ctx, of.InstanceID, writes)
		if err == nil {
			return nil
		}
		if _, gone := refusedItem(err, 0); gone {
			return nil // the incarnation has ended or is being deleted, so the result has no reader
		}
		var left []*types.Put
		for i, put := range puts {
			if _, there := refusedItem(err, i+1); !there {
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

// markAnswered marks an instance as having results, on condition that the incarnation is the same and is not being
// deleted.
func (p *Provider) markAnswered(a *provider.UpdateResult) *types.Update {
	return &types.Update{
		TableName: &p.hub.Table, Key: instanceKey(a.InstanceID), UpdateExpression: aws.String("SET answered = :yes"),
		ConditionExpression:       aws.String("startId = :life AND attribute_not_exists(deleting)"),
		ExpressionAttributeValues: item{":yes": &types.AttributeValueMemberBOOL{Value: true}, ":life": str(a.StartID)},
	}
}

// putAnswer returns the write of a result and its size. An existing result of the incarnation stays, unless it is
// UpdateResultExpired or its retention has passed.
func (p *Provider) putAnswer(a *provider.UpdateResult) (put *types.Put, bytes int, err error) {
	now := p.now()
	it := answerKey(a.InstanceID, a.UpdateID)
	it[attrStartID] = str(a.StartID)
	it["updateId"] = str(a.UpdateID)
	it["name"] = str(a.Name)
	it[attrOutcome] = str(string(a.Outcome))
	it[attrExecution] = str(a.ExecutionID)
	it["answeredAt"] = str(formatTime(now))
	it[attrTTL] = unix(now.Add(provider.UpdateResultRetention))
	if a.EventID > 0 {
		it["eventId"] = num(a.EventID)
	}
	if a.Reason != "" {
		it["reason"] = str(a.Reason)
	}
	if a.Result != nil {
		it["result"] = str(string(a.Result))
	}
	const rest = 1 << 10
	bytes = rest + len(a.UpdateID) + len(a.Name) + len(a.Result)
	if a.Error != nil {
		doc, err := errorOf(a)
		if err != nil {
			return nil, 0, fmt.Errorf("dynamo: instance %q: result of update %q: %w", a.InstanceID, a.UpdateID, err)
		}
		bytes += len(doc)
		it["error"] = str(doc)
	}

	return &types.Put{
		TableName: &p.hub.Table, Item: it,
		ConditionExpression:       aws.String(notExists + " OR startId <> :life OR #outcome = :forgotten OR #until < :today"),
		ExpressionAttributeNames:  map[string]string{"#outcome": attrOutcome, "#until": attrTTL},
		ExpressionAttributeValues: item{":life": str(a.StartID), ":forgotten": str(string(provider.UpdateResultExpired)), ":today": unix(now)},
	}, bytes, nil
}

// errorOf returns the error of a result. If it is too large for an item, its causes are omitted, because the history
// contains them.
func errorOf(a *provider.UpdateResult) (string, error) {
	doc, err := json.Marshal(a.Error)
	if err == nil && len(doc) > mostErrorBytes {
		alone := *a.Error
		alone.Cause = nil
		doc, err = json.Marshal(&alone)
	}
	return string(doc), err
}

// ReadUpdate reads a result. It ignores a result whose retention has passed, because DynamoDB can take days to delete
// it.
func (p *Provider) ReadUpdate(ctx context.Context, instanceID, updateID string) (provider.UpdateResult, error) {
	var out *dynamodb.GetItemOutput
	err := call(ctx, "DynamoDB.GetItem", instanceID, func() (err error) {
		out, err = p.table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.hub.Table, Key: answerKey(instanceID, updateID), ConsistentRead: aws.Bool(true)})
		return err
	})
	if err != nil {
		return provider.UpdateResult{}, err
	}
	if it := out.Item; len(it) > 0 && getNumber(it, attrTTL) >= p.now().Unix() {
		return decodeAnswer(instanceID, it)
	}
	return provider.UpdateResult{}, fmt.Errorf("dynamo: instance %q: result of update %q: %w", instanceID, updateID,
		provider.ErrNotFound)
}

func decodeAnswer(instanceID string, it item) (provider.UpdateResult, error) {
	a := provider.UpdateResult{
		InstanceID: instanceID, StartID: getString(it, attrStartID), UpdateID: getString(it, "updateId"), Name: getString(it, "name"),
		Outcome: provider.UpdateOutcome(getString(it, attrOutcome)), Reason: getString(it, "reason"), ExecutionID: getString(it, attrExecution),
		EventID: getNumber(it, "eventId"),
	}
	if result := getString(it, "result"); result != "" {
		a.Result = history.Payload(result)
	}
	if doc := getString(it, "error"); doc != "" {
		if err := json.Unmarshal([]byte(doc), &a.Error); err != nil {
			return a, fmt.Errorf("dynamo: instance %q: result of update %q: %w", instanceID, a.UpdateID, err)
		}
	}
	return a, nil
}

// eraseAnswers deletes the results of an instance that is being deleted, after which no result is written. It reads
// only keys, page by page, and continues where an earlier call stopped.
func (p *Provider) eraseAnswers(ctx context.Context, it item, progress *progress) error {
	if it[attrAnswered] == nil {
		return nil
	}
	pk := getString(it, attrPK)
	instanceID := strings.TrimPrefix(pk, idPrefix)
	in := &dynamodb.QueryInput{
		TableName: &p.hub.Table, ConsistentRead: aws.Bool(true), ProjectionExpression: aws.String("#sk"),
		KeyConditionExpression:    aws.String("pk = :pk AND begins_with(sk, :sk)"),
		ExpressionAttributeNames:  map[string]string{"#sk": attrSK},
		ExpressionAttributeValues: item{valuePK: str(pk), valueSK: str(skAnswers)},
	}
	for page, err := range p.query(ctx, instanceID, in) {
		if err != nil {
			return err
		}
		removals := make([]func() error, len(page))
		for i, answer := range page {
			removals[i] = func() error { return p.removeItem(ctx, instanceID, item{attrPK: str(pk), attrSK: answer[attrSK]}) }
		}
		if err := together(removals...); err != nil {
			return err
		}
		if err := progress.goesOn(ctx); err != nil {
			return err
		}
	}
	return nil
}
