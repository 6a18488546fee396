package simaws_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/simaws"
)

type txItem = ddbtypes.TransactWriteItem

func transact(tb testing.TB, c *simaws.Cloud, items ...txItem) error {
	tb.Helper()

	_, err := c.Table.TransactWriteItems(tb.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: items})

	return err
}

func putTx(it item) txItem { return txItem{Put: &ddbtypes.Put{Item: it}} }

func putNew(it item) txItem {
	return txItem{Put: &ddbtypes.Put{
		Item: it, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: ddbtypes.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func addOne(sk string) txItem {
	return txItem{Update: &ddbtypes.Update{
		Key: key(sk), UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": num("1")},
	}}
}

func checkExists(sk string) txItem {
	return txItem{ConditionCheck: &ddbtypes.ConditionCheck{
		Key: key(sk), ConditionExpression: aws.String("attribute_exists(pk)"),
	}}
}

// reasons returns the codes and the reasons of a cancelled transaction.
func reasons(tb testing.TB, err error) (codes []string, all []ddbtypes.CancellationReason) {
	tb.Helper()

	var cancelled *ddbtypes.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		tb.Fatalf("not cancelled: %v", err)
	}

	for _, r := range cancelled.CancellationReasons {
		codes = append(codes, *r.Code)
	}

	return codes, cancelled.CancellationReasons
}

func TestTransactWriteItems_conditionFails_writesNothing(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	put(t, c, with("old", item{"nonce": str("mine")}))
	put(t, c, key("there"))

	err := transact(t, c,
		putTx(key("a")), putNew(with("old", nil)), addOne("n"), checkExists("gone"), checkExists("there"))

	codes, all := reasons(t, err)
	want := []string{"None", "ConditionalCheckFailed", "None", "ConditionalCheckFailed", "None"}

	if diff := cmp.Diff(want, codes); diff != "" {
		t.Fatal(diff)
	}

	sameItem(t, all[1].Item, with("old", item{"nonce": str("mine")}))
	sameItem(t, all[3].Item, nil)
	sameItem(t, get(t, c, key("a")), nil)
	sameItem(t, get(t, c, key("n")), nil)

	wantCode(t, transact(t, c, putTx(key("a")), addOne("n"), checkExists("there"),
		txItem{Delete: &ddbtypes.Delete{Key: key("x")}}), "")
	sameItem(t, get(t, c, key("n")), with("n", item{"n": num("1")}))
}

func TestTransactWriteItems_invalidInput_isRejected(t *testing.T) {
	t.Parallel()

	many := func(n, size int) []txItem {
		items := make([]txItem, n)
		for i := range items {
			items[i] = putTx(with(strconv.Itoa(i), item{"v": str(strings.Repeat("x", size))}))
		}

		return items
	}

	tests := map[string]struct {
		items []txItem
		want  string
	}{
		"none":            {nil, isInvalid},
		"100":             {many(100, 1), ""},
		"101":             {many(101, 1), isInvalid},
		"4 MB":            {many(10, 399<<10), ""},
		"over 4 MB":       {many(11, 399<<10), isInvalid},
		"item over limit": {many(1, 400<<10), isInvalid},
		"same item twice": {[]txItem{putTx(key("1")), addOne("1")}, isInvalid},
		"empty action":    {[]txItem{{}}, isInvalid},
		"two actions": {
			[]txItem{{Put: &ddbtypes.Put{Item: key("1")}, Delete: &ddbtypes.Delete{Key: key("2")}}}, isInvalid,
		},
		"check of nothing": {
			[]txItem{{ConditionCheck: &ddbtypes.ConditionCheck{Key: key("1")}}}, isInvalid,
		},
		"update of nothing": {[]txItem{{Update: &ddbtypes.Update{Key: key("1")}}}, isInvalid},
		"unused value": {
			[]txItem{{Put: &ddbtypes.Put{Item: key("1"), ExpressionAttributeValues: item{":a": num("1")}}}}, isInvalid,
		},
	}

	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			wantCode(t, transact(t, simaws.New(), tt.items...), tt.want)
		})
	}
}

func TestTransactWriteItems_updateIsInvalid_isACancellationReason(t *testing.T) {
	t.Parallel()

	c := simaws.New()
	err := transact(t, c, putTx(key("a")), txItem{Update: &ddbtypes.Update{
		Key: key("b"), UpdateExpression: aws.String("SET n = n + :one"),
		ExpressionAttributeValues: item{":one": num("1")},
	}})

	if codes, _ := reasons(t, err); !cmp.Equal(codes, []string{"None", "ValidationError"}) {
		t.Fatal(codes)
	}

	sameItem(t, get(t, c, key("a")), nil)
}

func TestTransactWriteItems_repeatedToken_isAppliedOnce(t *testing.T) {
	t.Parallel()

	now := newClock()
	c := simaws.New(simaws.WithClock(now.time))
	run := func(token string, items ...txItem) error {
		_, err := c.Table.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: items, ClientRequestToken: &token,
		})

		return err
	}
	count := func(want string) {
		t.Helper()
		sameItem(t, get(t, c, key("n")), with("n", item{"n": num(want)}))
	}

	wantCode(t, run("t1", addOne("n")), "")
	wantCode(t, run("t1", addOne("n")), "")
	count("1")
	wantCode(t, run("t1", addOne("other")), "IdempotentParameterMismatchException")
	wantCode(t, run("t2", addOne("n")), "")
	count("2")

	now.add(10*time.Minute - 1)
	wantCode(t, run("t1", addOne("n")), "")
	count("2")

	now.add(1)
	wantCode(t, run("t1", addOne("n")), "")
	count("3")
	wantCode(t, run(strings.Repeat("t", 37), addOne("n")), isInvalid)

	wantCode(t, run("t4", checkExists("none")), "TransactionCanceledException")
	put(t, c, key("none"))
	wantCode(t, run("t4", checkExists("none")), "")
}

func TestTransactWriteItems_concurrentCalls_loseNoUpdate(t *testing.T) {
	t.Parallel()

	const workers, rounds = 8, 50

	c := simaws.New()

	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range rounds {
				other := txItem{Update: &ddbtypes.Update{
					Key:              item{"pk": str(fmt.Sprint("q", w)), "sk": str("n")},
					UpdateExpression: aws.String("ADD n :one"), ExpressionAttributeValues: item{":one": num("1")},
				}}
				if err := transact(t, c, other, addOne("a"), addOne("b")); err != nil {
					t.Error(err)
				}
			}
		})
	}

	wg.Wait()

	for _, sk := range []string{"a", "b"} {
		sameItem(t, get(t, c, key(sk)), with(sk, item{"n": num(strconv.Itoa(workers * rounds))}))
	}
}
