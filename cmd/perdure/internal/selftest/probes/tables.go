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
		{Name: "dynamodb-conflict-reasons", Assumptions: []string{"A75"}, Run: p.conflictReasons},
		{Name: "dynamodb-consistency", Assumptions: []string{"A81"}, Run: p.consistency},
		{Name: "dynamodb-query", Assumptions: []string{"A82"}, Run: p.query},
		{Name: "dynamodb-limits", Assumptions: []string{"A83", "A84"}, Run: p.limits},
		{Name: "dynamodb-capacity", Assumptions: []string{"A89"}, Run: p.capacity},
		{Name: "dynamodb-index-lag", Assumptions: []string{"A85"}, Run: p.indexLag},
		{Name: "dynamodb-partition", Assumptions: []string{"A87"}, Run: p.partition, Slow: true},
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

// partition writes and reads a partition at steady rates below its limits. The client does not repeat the calls.
func (p *tableProbes) partition(ctx context.Context) (string, error) {
	const (
		bytes = 25_000 // 25 write units
		items = 40     // together less than 1 MB, which one page has, or 250 read units
		name  = "partition"
	)
	written, err := p.steadily(ctx, load{
		calls: 350, pause: 28 * time.Millisecond, what: "writes of 25 units", // 890 units a second
		call: func(ctx context.Context, n int64) error {
			_, err := p.Table.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: &p.TableName, Item: valued(name, strconv.FormatInt(n%items, 10), strings.Repeat("x", bytes)),
			}, notRepeated)
			return err
		},
	})
	if err != nil {
		return "", err
	}
	read, err := p.steadily(ctx, load{
		calls: 100, pause: 100 * time.Millisecond, what: "reads of 250 units", // 2,500 units a second
		call: func(ctx context.Context, _ int64) error {
			in := p.of(name)
			in.Select = types.SelectCount
			_, err := p.Table.Query(ctx, in, notRepeated)
			return err
		},
	})
	return written + ", " + read, err
}

// notRepeated prevents the repetitions of the SDK, which hide that a call is throttled.
func notRepeated(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
