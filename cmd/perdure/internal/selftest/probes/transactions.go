package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
	} else if showsNothing(err) {
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
	out, err := p.Table.TransactWriteItems(ctx, in, notRepeated) // a repetition has the cost of a read
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

// reasonsOf returns the codes of a cancelled transaction, one for each item, or nil for another error.
func reasonsOf(err error) (codes []string) {
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, r := range cancelled.CancellationReasons {
			codes = append(codes, aws.ToString(r.Code))
		}
	}
	return codes
}

func (p *tableProbes) reasons(ctx context.Context) (string, error) {
	if err := p.put(ctx, key("reasons", "b"), nil); err != nil {
		return "", undecided(err)
	}
	err := p.transact(ctx, nil, aws.String(absent), key("reasons", "a"), key("reasons", "b"), key("reasons", "c"))
	codes := reasonsOf(err)
	if codes == nil {
		return "", undecided(cmpErr(err, "the transaction succeeds"))
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

// conflictReasons makes transactions in which both items fail their condition, while others write the first one.
func (p *tableProbes) conflictReasons(ctx context.Context) (string, error) {
	const partition, rounds = "conflict-reasons", 20
	contended, other := key(partition, "contended"), key(partition, otherName)
	for _, i := range []item{contended, other} {
		if err := p.put(ctx, i, nil); err != nil {
			return "", undecided(err)
		}
	}
	var mu sync.Mutex
	var cancelled [][]string
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			for range rounds {
				if i%2 == 0 {
					_ = p.transact(ctx, nil, nil, contended, key(partition, strconv.Itoa(i)))
					continue
				}
				codes := reasonsOf(p.transact(ctx, nil, aws.String(absent), contended, other))
				mu.Lock()
				cancelled = append(cancelled, codes)
				mu.Unlock()
			}
		})
	}
	running.Wait()
	conflicts := 0
	for _, codes := range cancelled {
		if slices.Contains(codes, "None") {
			return "", fmt.Errorf("a failed condition is not reported: %v", codes)
		}
		if slices.Contains(codes, "TransactionConflict") && slices.Contains(codes, conditionFailed) {
			conflicts++
		}
	}
	if conflicts == 0 {
		return "", undecided(errors.New("no conflict occurred"))
	}
	return fmt.Sprintf("%d conflicts with the failed condition of the other item", conflicts), nil
}
