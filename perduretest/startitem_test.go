package perduretest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// save writes an order in the transaction that starts its orchestration.
func save(ctx context.Context, hub *client.Client, tables dynamo.TableAPI, id string) (provider.PreparedStart, error) {
	start, err := hub.PrepareStart(ctx, "sleep", time.Hour, client.WithIdempotencyKey(id))
	if err != nil {
		return nil, err
	}
	order := &types.Put{
		TableName: aws.String("orders"), ConditionExpression: aws.String("attribute_not_exists(id)"),
		Item: map[string]types.AttributeValue{"id": text(id), "instance": text(start.InstanceID())},
	}
	_, err = tables.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{
		TransactItems: append(dynamo.TransactItems(start), types.TransactWriteItem{Put: order}),
	})
	if err != nil {
		return nil, errors.Join(start.StartError(err), err)
	}
	return start, nil
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// saved returns the instance of an order, or an empty ID if the order does not exist.
func saved(t *testing.T, tables dynamo.TableAPI, id string) string {
	t.Helper()
	out, err := tables.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("orders"), Key: map[string]types.AttributeValue{"id": text(id)},
	})
	if err != nil {
		t.Fatal(err)
	}
	instance, ok := out.Item["instance"].(*types.AttributeValueMemberS)
	if !ok {
		return ""
	}
	return instance.Value
}

// This example tests code that writes an order and starts its orchestration in one transaction.
func ExampleTableClient() { //nolint:testableexamples // it needs a test: TestExamples_eachExample_passes has one
	t := exampleT // in your test, its *testing.T

	env := perduretest.New(t, registry(), perduretest.WithTable("orders", "id", ""))
	tables := perduretest.TableClient(env)

	start, err := save(t.Context(), env.Client(), tables, "order-7") // the code under test
	if err != nil {
		t.Fatal(err)
	}
	if err := start.Wake(t.Context()); err != nil {
		t.Fatal(err)
	}

	status, err := env.Client().Wait(t.Context(), saved(t, tables, "order-7"))
	if err != nil || status.Status != client.StatusCompleted {
		t.Errorf("got %s, error %v", status.Status, err)
	}
}

// A repeated order is rejected by PrepareStart or by the transaction, and changes nothing.
func TestPrepareStart_repeatedIdempotencyKey_startsOnce(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry(), perduretest.WithTable("orders", "id", ""))
	tables, hub := perduretest.TableClient(env), env.Client()
	late, err := hub.PrepareStart(t.Context(), "sleep", time.Hour, client.WithIdempotencyKey("o-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := save(t.Context(), hub, tables, "o-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := save(t.Context(), hub, tables, "o-1"); !errors.Is(err, client.ErrAlreadyStarted) {
		t.Errorf("second start: got error %v", err)
	}
	_, err = tables.TransactWriteItems(t.Context(),
		&dynamodb.TransactWriteItemsInput{TransactItems: dynamo.TransactItems(late)})
	if err := late.StartError(err); !errors.Is(err, client.ErrAlreadyStarted) {
		t.Errorf("late commit: got error %v", err)
	}
}

// If the process crashes before Wake, the sweeper starts the instance. If the transaction fails, there is no instance.
func TestPrepareStart_transactionCommitsOrFails_startsOnlyIfCommitted(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry(), perduretest.WithTable("orders", "id", ""))
	tables := perduretest.TableClient(env)
	start, err := save(t.Context(), env.Client(), tables, "o-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := env.Client().Wait(t.Context(), start.InstanceID()); err == nil {
		t.Error("the instance started without the sweeper")
	}
	env.Advance(5 * time.Minute)
	perduretest.RunSweeper(env)
	if got := result(t, env, start.InstanceID()); got != "slept" {
		t.Errorf("got %q", got)
	}

	env.Outage(perduretest.DynamoDB, time.Hour)
	if _, err := save(t.Context(), env.Client(), tables, "o-2"); err == nil {
		t.Error("save without the table: got no error")
	}
	env.Advance(2 * time.Hour)
	if got := saved(t, tables, "o-2"); got != "" {
		t.Errorf("failed order: got instance %q", got)
	}
}

// An activity can also write an order and start its instance, in virtual time and with WithNetwork.
func TestPrepareStart_calledByAnActivity_startsTheInstance(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]perduretest.Option{
		"virtual": nil, "network": {perduretest.WithNetwork("save")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var env *perduretest.Env
			var tables dynamo.TableAPI
			r := registry()
			perdure.AddActivity(r, "save", func(ctx context.Context, id string) (string, error) {
				start, err := save(ctx, env.Client(), tables, id)
				if err != nil {
					return "", err
				}
				return start.InstanceID(), start.Wake(ctx)
			})
			perdure.AddOrchestration(r, "saves", func(ctx *perdure.OrchestrationContext, id string) (string, error) {
				return perdure.CallActivityByName[string](ctx, "save", id).Await(ctx)
			})
			env = perduretest.New(t, r, append(opts, perduretest.WithTable("orders", "id", ""))...)
			tables = perduretest.TableClient(env)
			id := result(t, env, start(t, env, "saves", "o-1"))
			if got := result(t, env, id); got != "slept" || saved(t, tables, "o-1") != id {
				t.Errorf("got %q of %q, saved ID %q", got, id, saved(t, tables, "o-1"))
			}
		})
	}
}

// A prepared start without Wake waits for the sweeper. The error of Wait suggests RunSweeper.
func TestWait_preparedStartWithoutWake_suggestsRunSweeper(t *testing.T) {
	t.Parallel()
	env := perduretest.New(t, registry(), perduretest.WithTable("orders", "id", ""))
	start, err := save(t.Context(), env.Client(), perduretest.TableClient(env), "order-7")
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.Client().Wait(t.Context(), start.InstanceID())
	idle, ok := errors.AsType[*perduretest.IdleError](err)
	if !ok || len(idle.WaitingFor) != 1 || !strings.Contains(idle.WaitingFor[0], "perduretest.RunSweeper") {
		t.Errorf("got error %v", err)
	}
	env.Advance(5 * time.Minute)
	perduretest.RunSweeper(env)
	if s, err := env.Client().Wait(t.Context(), start.InstanceID()); err != nil || s.Status != client.StatusCompleted {
		t.Errorf("got %s, error %v", s.Status, err)
	}
}

// An invalid table fails only its own test.
func TestWithTable_invalidTable_failsTheTest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tables   []perduretest.Option
		mentions string
	}{
		"twice": {
			[]perduretest.Option{perduretest.WithTable("orders", "id", ""), perduretest.WithTable("orders", "id", "")},
			`table name "orders" is empty or in use`,
		},
		"no key": {
			[]perduretest.Option{perduretest.WithTable("orders", "", "")},
			`WithTable: table "orders" requires a partition key`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFailure(t, func(t *testing.T) {
				t.Helper()
				perduretest.New(t, registry(), c.tables...)
			}, "perduretest: WithTable: ", c.mentions)
		})
	}
}
