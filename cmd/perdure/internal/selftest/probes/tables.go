package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure/provider/dynamo"
)

// tableProbes checks assumptions about DynamoDB.
type tableProbes struct {
	clock

	Table     dynamo.TableAPI
	TableName string
}

func (p *tableProbes) checks() []Check {
	return []Check{
		{Name: "dynamodb-condition", Assumptions: []string{"A71", "A72", "A91"}, Run: p.condition},
		{Name: "dynamodb-transaction", Assumptions: []string{"A73"}, Run: p.transaction},
		{Name: "dynamodb-reasons", Assumptions: []string{"A74"}, Run: p.reasons},
		{Name: "dynamodb-token", Assumptions: []string{"A76", "A77", "A78"}, Run: p.token},
		{Name: "dynamodb-conflict", Assumptions: []string{"A79"}, Run: p.conflict},
		{Name: "dynamodb-consistency", Assumptions: []string{"A81"}, Run: p.consistency},
		{Name: "dynamodb-query", Assumptions: []string{"A82"}, Run: p.query},
		{Name: "dynamodb-limits", Assumptions: []string{"A83", "A84"}, Run: p.limits},
		{Name: "dynamodb-capacity", Assumptions: []string{"A89"}, Run: p.capacity},
		{Name: "dynamodb-index-lag", Assumptions: []string{"A85"}, Run: p.indexLag},
	}
}

const (
	mostActions      = 100 // of a transaction
	mostItemBytes    = 400 << 10
	mostPartitionKey = 2048
	mostSortKey      = 1024
	writers          = 10
	absent           = "attribute_not_exists(pk)"
	index            = "byGS"

	conditionFailed = "ConditionalCheckFailed"
	conflictCode    = "TransactionConflictException"
	invalidRequest  = "ValidationException"
)

type item = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func key(pk, sk string) item { return item{"pk": text(pk), "sk": text(sk)} }

// valued returns an item with a value.
func valued(pk, sk, value string) item {
	i := key(pk, sk)
	i["value"] = text(value)
	return i
}

// valueOf returns the value of an item.
func valueOf(i item) string {
	if v, ok := i["value"].(*types.AttributeValueMemberS); ok {
		return v.Value
	}
	return ""
}

func (p *tableProbes) put(ctx context.Context, i item, condition *string) error {
	_, err := p.Table.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &p.TableName, Item: i, ConditionExpression: condition,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

func (p *tableProbes) get(ctx context.Context, pk, sk string) (item, error) {
	out, err := p.Table.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &p.TableName, Key: key(pk, sk), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, undecided(fmt.Errorf("get: %w", err))
	}
	return out.Item, nil
}

func (p *tableProbes) condition(ctx context.Context) (string, error) {
	errs := make([]error, writers)
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() { errs[i] = p.put(ctx, valued("condition", "a", strconv.Itoa(i)), aws.String(absent)) })
	}
	running.Wait()
	winner := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if winner < 0 { // the SDK repeats a put whose response is lost
		return "", undecided(fmt.Errorf("no put succeeds: %w", errs[0]))
	}
	for i, err := range errs {
		if i == winner {
			continue
		}
		refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		switch {
		case err == nil:
			return "", errors.New("two puts succeed")
		case !ok:
			return "", undecided(err)
		case valueOf(refused.Item) != strconv.Itoa(winner):
			return "", fmt.Errorf("the rejection contains %v", refused.Item)
		}
	}
	if _, err := p.Table.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &p.TableName, Key: key("condition", "missing"),
	}); err != nil {
		return "", fmt.Errorf("delete of an absent item: %w", err)
	}
	return fmt.Sprintf("one of %d puts succeeded", writers), nil
}

// transact writes items in a transaction. Items of a condition must be absent.
func (p *tableProbes) transact(ctx context.Context, token *string, condition *string, items ...item) error {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: token}
	for _, i := range items {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{
			Put: &types.Put{TableName: &p.TableName, Item: i, ConditionExpression: condition},
		})
	}
	_, err := p.Table.TransactWriteItems(ctx, in)
	return err
}

func (p *tableProbes) transaction(ctx context.Context) (string, error) {
	items := make([]item, mostActions)
	for i := range items {
		items[i] = valued("transaction", strconv.Itoa(i), "")
	}
	if err := p.transact(ctx, nil, nil, items...); err != nil {
		return "", fmt.Errorf("%d items are rejected: %w", mostActions, err)
	}
	more := slices.Concat(items, []item{key("transaction", "more")})
	if err := p.transact(ctx, nil, nil, more...); codeOf(err) != invalidRequest {
		return "", fmt.Errorf("%d items: %w", mostActions+1, cmpErr(err, "accepted"))
	}
	const large, count = 390 << 10, 11 // together more than 4 MB
	items = items[:count]
	for i := range items {
		items[i] = valued("transaction", strconv.Itoa(i), strings.Repeat("x", large))
	}
	if err := p.transact(ctx, nil, nil, items...); err == nil {
		return "", errors.New("more than 4 MB are accepted")
	} else if isDenied(err) {
		return "", undecided(err)
	}
	if err := p.transact(ctx, nil, aws.String(absent), key("transaction", "new"), key("transaction", "0")); err == nil {
		return "", errors.New("a transaction with a failed condition succeeds")
	}
	if found, err := p.get(ctx, "transaction", "new"); err != nil || found != nil {
		return "", cmpErr(err, "a part of a cancelled transaction was written")
	}
	return "100 items accepted, 101 or over 4 MB rejected; nothing of a cancelled one is written", nil
}

// capacity measures the write units of a transaction with items of 1.5 KB.
func (p *tableProbes) capacity(ctx context.Context) (string, error) {
	const items, bytes, want = 3, 1500, 3 * 2 * 2 // two units for each of two KB
	in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
	for n := range items {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName: &p.TableName, Item: valued("capacity", strconv.Itoa(n), strings.Repeat("x", bytes)),
		}})
	}
	out, err := p.Table.TransactWriteItems(ctx, in, func(o *dynamodb.Options) {
		o.Retryer = aws.NopRetryer{} // a repetition has the cost of a read
	})
	if err != nil {
		return "", undecided(err)
	}
	units := 0.0
	for i := range out.ConsumedCapacity {
		units += aws.ToFloat64(out.ConsumedCapacity[i].CapacityUnits)
	}
	if units != want {
		return "", fmt.Errorf("a transaction with %d items of %d bytes costs %v write units, want %d", items, bytes,
			units, want)
	}
	return fmt.Sprintf("%v write units for %d items of %d bytes", units, items, bytes), nil
}

func (p *tableProbes) reasons(ctx context.Context) (string, error) {
	if err := p.put(ctx, key("reasons", "b"), nil); err != nil {
		return "", undecided(err)
	}
	err := p.transact(ctx, nil, aws.String(absent), key("reasons", "a"), key("reasons", "b"), key("reasons", "c"))
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		return "", undecided(cmpErr(err, "the transaction succeeds"))
	}
	var codes []string
	for _, r := range cancelled.CancellationReasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	if !slices.Equal(codes, []string{"None", conditionFailed, "None"}) {
		return "", fmt.Errorf("got the reasons %v", codes)
	}
	return strings.Join(codes, ", "), nil
}

func (p *tableProbes) token(ctx context.Context) (string, error) {
	repeated := aws.String("repeated-" + strconv.FormatInt(p.Now().UnixNano(), 10))
	first := valued("token", "a", "first")
	if err := p.transact(ctx, repeated, nil, first); err != nil {
		return "", undecided(err)
	}
	if err := p.put(ctx, valued("token", "a", "second"), nil); err != nil {
		return "", undecided(err)
	}
	if err := p.transact(ctx, repeated, nil, first); err != nil {
		return "", fmt.Errorf("the repetition fails: %w", err)
	}
	if found, err := p.get(ctx, "token", "a"); err != nil || valueOf(found) != "second" {
		return "", cmpErr(err, "the repetition writes")
	}

	cancelled := aws.String("cancelled-" + strconv.FormatInt(p.Now().UnixNano(), 10))
	if err := p.transact(ctx, cancelled, aws.String(absent), first); err == nil {
		return "", undecided(errors.New("a transaction with a failed condition succeeds"))
	}
	if _, err := p.Table.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: &p.TableName, Key: key("token", "a"),
	}); err != nil {
		return "", undecided(err)
	}
	if err := p.transact(ctx, cancelled, aws.String(absent), first); err != nil {
		return "", fmt.Errorf("a cancelled transaction is not tried again: %w", err)
	}
	accepted, err := p.reordered(ctx)
	return "a repetition changes nothing, a cancelled transaction is tried again, another order of a map is " +
		accepted, err
}

// reordered repeats a transaction with an item of many attributes. The SDK writes them in a random order. The error for
// another request is accepted too.
func (p *tableProbes) reordered(ctx context.Context) (string, error) {
	const attributes, repetitions = 20, 5
	i := key("token", "reordered")
	for n := range attributes {
		i["a"+strconv.Itoa(n)] = text("value")
	}
	token := aws.String("reordered-" + strconv.FormatInt(p.Now().UnixNano(), 10))
	for range repetitions {
		err := p.transact(ctx, token, nil, i)
		if _, mismatch := errors.AsType[*types.IdempotentParameterMismatchException](err); mismatch {
			return "rejected", nil
		}
		if err != nil {
			return "", fmt.Errorf("another order of a map: %w", err)
		}
	}
	return "accepted", nil
}

// conflict writes an item concurrently, alone and in transactions.
func (p *tableProbes) conflict(ctx context.Context) (string, error) {
	const rounds = 20
	var mu sync.Mutex
	conflicts := 0
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			for range rounds {
				contended := valued("conflict", "a", strconv.Itoa(i))
				if i%2 == 0 {
					_ = p.transact(ctx, nil, nil, contended, key("conflict", strconv.Itoa(i)))
					continue
				}
				if err := p.put(ctx, contended, nil); codeOf(err) == conflictCode {
					mu.Lock()
					conflicts++
					mu.Unlock()
				}
			}
		})
	}
	running.Wait()
	if conflicts == 0 {
		return "", undecided(errors.New("no conflict occurred"))
	}
	return fmt.Sprintf("%d of %d puts conflicted", conflicts, rounds*writers/2), nil //nolint:mnd // half of the writers
}

func (p *tableProbes) consistency(ctx context.Context) (string, error) {
	const writes = 50
	for i := range writes {
		want := strconv.Itoa(i)
		if err := p.put(ctx, valued("consistency", "a", want), nil); err != nil {
			return "", undecided(err)
		}
		found, err := p.get(ctx, "consistency", "a")
		if err != nil {
			return "", err
		}
		if valueOf(found) != want {
			return "", fmt.Errorf("write %d is not visible", i)
		}
	}
	return fmt.Sprintf("%d of %d writes visible", writes, writes), nil
}

// of returns a query of a partition.
func (p *tableProbes) of(pk string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &p.TableName, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: item{":pk": text(pk)},
	}
}

func (p *tableProbes) query(ctx context.Context) (string, error) {
	keys := []string{"~", "a", "é", "B", "\U0001F600", "0", "b"}
	for _, sk := range keys {
		if err := p.put(ctx, key("query", sk), nil); err != nil {
			return "", undecided(err)
		}
	}
	out, err := p.Table.Query(ctx, p.of("query"))
	if err != nil {
		return "", undecided(err)
	}
	slices.Sort(keys) // by bytes
	var got []string
	for _, i := range out.Items {
		if sk, ok := i["sk"].(*types.AttributeValueMemberS); ok {
			got = append(got, sk.Value)
		}
	}
	if !slices.Equal(got, keys) {
		return "", fmt.Errorf("got the order %q", got)
	}

	const large, count = 300 << 10, 5 // a page may contain the item that exceeds 1 MB
	for i := range count {
		if err := p.put(ctx, valued("pages", strconv.Itoa(i), strings.Repeat("x", large)), nil); err != nil {
			return "", undecided(err)
		}
	}
	page, err := p.Table.Query(ctx, p.of("pages"))
	if err != nil {
		return "", undecided(err)
	}
	if page.LastEvaluatedKey == nil || len(page.Items) >= count {
		return "", fmt.Errorf("a page has %d items of 300 KB", len(page.Items))
	}
	return fmt.Sprintf("order of bytes, %d items of 300 KB in a page", len(page.Items)), nil
}

func (p *tableProbes) limits(ctx context.Context) (string, error) {
	overhead := len("pk") + len("limits") + len("sk") + len("a") + len("value")
	for _, c := range []struct {
		name     string
		item     item
		accepted bool
	}{
		{"400 KB", valued("limits", "a", strings.Repeat("x", mostItemBytes-overhead)), true},
		{"more than 400 KB", valued("limits", "a", strings.Repeat("x", mostItemBytes-overhead+1)), false},
		{"a partition key of 2,048 bytes", key(strings.Repeat("p", mostPartitionKey), "a"), true},
		{"a partition key of 2,049 bytes", key(strings.Repeat("p", mostPartitionKey+1), "a"), false},
		{"a sort key of 1,024 bytes", key("limits", strings.Repeat("s", mostSortKey)), true},
		{"a sort key of 1,025 bytes", key("limits", strings.Repeat("s", mostSortKey+1)), false},
	} {
		err := p.put(ctx, c.item, nil)
		switch {
		case c.accepted && err != nil:
			return "", fmt.Errorf("%s: %w", c.name, err)
		case !c.accepted && codeOf(err) != invalidRequest:
			return "", fmt.Errorf("%s: %w", c.name, cmpErr(err, "accepted"))
		}
	}
	return "400 KB, keys of 2,048 and 1,024 bytes", nil
}

// indexLag measures the time until an index has an item.
func (p *tableProbes) indexLag(ctx context.Context) (string, error) {
	began := p.Now()
	for sk, indexed := range map[string]bool{"in": true, "out": false} {
		i := key("lag", sk)
		if indexed {
			i["gs"] = text("lag")
		}
		if err := p.put(ctx, i, nil); err != nil {
			return "", undecided(err)
		}
	}
	const limit, pause = 10 * time.Second, 10 * time.Millisecond
	err := p.until(ctx, limit, pause, func() (missing, err error) {
		out, err := p.Table.Query(ctx, &dynamodb.QueryInput{
			TableName: &p.TableName, IndexName: aws.String(index), KeyConditionExpression: aws.String("gs = :gs"),
			ExpressionAttributeValues: item{":gs": text("lag")},
		})
		switch {
		case err != nil:
			return nil, undecided(err)
		case len(out.Items) > 1:
			return nil, errors.New("the index has an item without its key")
		case len(out.Items) == 0:
			missing = fmt.Errorf("not in the index after %v", limit)
		}
		return missing, nil
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("in the index after %d ms", p.Now().Sub(began).Milliseconds()), nil
}
