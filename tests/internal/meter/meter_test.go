package meter_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simsdk"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/internal/meter"
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func metered(t *testing.T, intercept simaws.Interceptor) (dynamo.Clients, *simaws.Cloud, *meter.Meter) {
	t.Helper()
	cloud := simaws.New(simaws.WithInterceptor(intercept))
	cfg, m := simsdk.Config(), meter.New()
	m.AddTo(&cfg)
	return simsdk.Clients(cloud, cfg), cloud, m
}

func TestMeter_tableCalls_useReportedCapacity(t *testing.T) {
	t.Parallel()
	clients, cloud, m := metered(t, nil)
	put := &dynamodb.PutItemInput{
		TableName: aws.String("perdure"), Item: item{
			"pk": str("i#order-1"), "sk": str("i"), "execution": str("X1"), "data": str(strings.Repeat("x", 2500)),
		},
	}
	if _, err := clients.Table.PutItem(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	if put.ReturnConsumedCapacity != "" {
		t.Error("the caller's input was changed")
	}
	get := &dynamodb.GetItemInput{TableName: aws.String("perdure"), Key: item{"pk": str("i#order-1"), "sk": str("i")}}
	if out, err := clients.Table.GetItem(t.Context(), get); err != nil || len(out.Item) != 4 {
		t.Fatal(out, err)
	}
	query := &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
		ConsistentRead: aws.Bool(true), ExpressionAttributeValues: item{
			":pk": str("x#X1"),
		},
	}
	if _, err := clients.Table.Query(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	c := m.Counts()
	if got := c[meter.Kind{Call: "DynamoDB.PutItem", Instance: "order-1"}]; got.Calls != 1 ||
		got.Usage[pricing.WriteUnits] != 3 || got.Bytes < 2500 {
		t.Errorf("the put: %+v", got)
	}
	if got := c[meter.Kind{Call: "DynamoDB.GetItem", Instance: "order-1"}]; got.Usage[pricing.ReadUnits] != 0.5 {
		t.Errorf("the get: %+v", got)
	}
	if got := c[meter.Kind{Call: "DynamoDB.Query", Instance: "order-1"}]; got.Usage[pricing.ReadUnits] != 1 {
		t.Errorf("the query of an execution of a known instance: %+v", got)
	}
	if used := cloud.Capacity(); c.Usage()[pricing.WriteUnits] != used.Write ||
		c.Usage()[pricing.ReadUnits] != used.Read {
		t.Errorf("%v, and the table consumed %+v", c.Usage(), used)
	}
}

// AWS bills a write whose condition fails, but does not report its capacity.
func TestMeter_failedConditions_areBilled(t *testing.T) {
	t.Parallel()
	clients, cloud, m := metered(t, nil)
	large := item{"pk": str("x#X1"), "sk": str("h#1"), "data": str(strings.Repeat("x", 3000))}
	put := &dynamodb.PutItemInput{
		TableName: aws.String("perdure"), Item: large, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	_, first := clients.Table.PutItem(t.Context(), put)
	put.Item = item{"pk": str("x#X1"), "sk": str("h#1")}
	_, second := clients.Table.PutItem(t.Context(), put)
	tx := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ReturnValuesOnConditionCheckFailure: put.ReturnValuesOnConditionCheckFailure,
	}}}}
	_, third := clients.Table.TransactWriteItems(t.Context(), tx)
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](second); first != nil || !refused ||
		third == nil {
		t.Fatal(first, second, third)
	}
	by := m.Counts().ByCall()
	if got := by[meter.Kind{Call: "DynamoDB.PutItem"}]; got.Calls != 2 || got.Failed != 1 ||
		got.Usage[pricing.WriteUnits] != 3+3 {
		t.Errorf("puts %+v", got)
	}
	if got := by[meter.Kind{Call: "DynamoDB.TransactWriteItems"}]; got.Usage[pricing.WriteUnits] != 2*3 {
		t.Errorf("transactions %+v", got)
	}
	if used := cloud.Capacity(); used.Write != by.Usage()[pricing.WriteUnits] {
		t.Errorf("%v, and the table consumed %+v", by.Usage(), used)
	}
}

func TestMeter_retries_areCounted(t *testing.T) {
	t.Parallel()
	left := 2
	clients, _, m := metered(t, func(_ context.Context, _ simaws.Call, next func() error) error {
		if left--; left >= 0 {
			return &types.ThrottlingException{}
		}
		return next()
	})
	in := &dynamodb.GetItemInput{TableName: aws.String("perdure"), Key: item{"pk": str("i#a"), "sk": str("i")}}
	if _, err := clients.Table.GetItem(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if got := m.Counts()[meter.Kind{Call: "DynamoDB.GetItem", Instance: "a"}]; got.Calls != 3 || got.Failed != 2 ||
		got.Usage[pricing.ReadUnits] != 0.5 {
		t.Errorf("%+v", got)
	}
}

// SQS bills a request per 64 KB. The instances of the messages in a request share its cost.
func TestMeter_queueCalls_areBilledBySizeAndSharedByMessages(t *testing.T) {
	t.Parallel()
	clients, cloud, m := metered(t, nil)
	inbox := cloud.Queues.Create("inbox.fifo", simaws.QueueConfig{})
	work := cloud.Queues.Create("work", simaws.QueueConfig{})
	message := func(instance string, bytes int) *string {
		data := strings.Repeat("x", bytes)
		return aws.String(`{"instanceId":"` + instance + `","executionId":"` + instance + `-x","data":"` + data + `"}`)
	}
	send := &sqs.SendMessageBatchInput{QueueUrl: &inbox, Entries: []sqstypes.SendMessageBatchRequestEntry{
		{
			Id: aws.String("1"), MessageBody: message("a", 40<<10), MessageGroupId: aws.String("a"),
			MessageDeduplicationId: aws.String("a"),
		},
		{
			Id: aws.String("2"), MessageBody: message("b", 40<<10), MessageGroupId: aws.String("b"),
			MessageDeduplicationId: aws.String("b"),
		},
	}}
	if _, err := clients.Queues.SendMessageBatch(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	send = &sqs.SendMessageBatchInput{
		QueueUrl: &work, Entries: []sqstypes.SendMessageBatchRequestEntry{
			{Id: aws.String("1"), MessageBody: message("a", 10)},
		},
	}
	if _, err := clients.Queues.SendMessageBatch(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	c := m.Counts()
	for _, id := range []string{"a", "b"} {
		if got := c[meter.Kind{Call: "SQS.SendMessageBatch", Queue: "fifo", Instance: id}]; got.Calls != 0.5 ||
			got.Usage[pricing.FIFORequests] != 1 {
			t.Errorf("%s: %+v, want half of two requests", id, got)
		}
	}
	if got := c.Of("a")[meter.Kind{Call: "SQS.SendMessageBatch", Queue: "standard", Instance: "a"}]; got.Calls != 1 ||
		got.Usage[pricing.StandardRequests] != 1 {
		t.Errorf("the work item: %+v", got)
	}
	if got := c.ByCall().Usage(); got[pricing.FIFORequests] != 2 || got[pricing.StandardRequests] != 1 {
		t.Errorf("total usage %v", got)
	}
	// The meter reads the execution IDs from the messages.
	query := &dynamodb.QueryInput{
		TableName: aws.String("perdure"), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: item{
			":pk": str("x#b-x"),
		},
	}
	if _, err := clients.Table.Query(t.Context(), query); err != nil {
		t.Fatal(err)
	}
	if got := m.Counts().Of("b"); got[meter.Kind{Call: "DynamoDB.Query", Instance: "b"}].Calls != 1 {
		t.Errorf("usage of b: %v", got)
	}
	m.Reset()
	if got := m.Counts(); len(got) != 0 {
		t.Errorf("usage after a reset: %v", got)
	}
}

// The meter counts an unknown call by its name, without a price.
func TestMeter_unknownCall_isUnpriced(t *testing.T) {
	t.Parallel()
	m := meter.New()
	m.Observe(&dynamodb.ScanInput{}, nil, nil, 10, 20)
	m.Observe(&sqs.SendMessageInput{}, nil, errors.New("no"), 0, 0)
	c := m.Counts()
	if got := c[meter.Kind{Call: "DynamoDB.Scan"}]; got.Calls != 1 || got.Bytes != 30 || got.Unpriced != 1 {
		t.Errorf("the scan: %+v", got)
	}
	if got := c.Unpriced(); !slices.Equal(got, []string{"DynamoDB.Scan", "SQS.SendMessage"}) {
		t.Errorf("calls without a price: %v", got)
	}
}

// Calls other than those with items and messages also name their instances.
func TestMeter_otherCalls_nameTheirInstances(t *testing.T) {
	t.Parallel()
	clients, _, m := metered(t, nil)
	message := `{"instanceId":"order-1","executionId":"X1"}`
	m.Observe(&scheduler.CreateScheduleInput{Target: &schedulertypes.Target{Input: &message}}, nil, nil, 0, 0)
	m.Observe(&scheduler.UpdateScheduleInput{Target: &schedulertypes.Target{Input: &message}}, nil, nil, 0, 0)
	m.Observe(&scheduler.DeleteScheduleInput{}, nil, nil, 0, 0)
	m.Observe(&lambda.InvokeInput{Payload: []byte(message)}, nil, nil, 0, 0)
	m.Observe(&dynamodb.GetItemInput{Key: item{"pk": str("n#order-1")}}, nil, nil, 0, 0)
	bucket, key := m.Bucket(clients.Bucket), provider.PayloadKey("X1", "hash")
	if err := bucket.PutObject(t.Context(), "b", key, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	if data, err := bucket.GetObject(t.Context(), "b", key, 10); err != nil || string(data) != "abc" {
		t.Fatal(string(data), err)
	}
	c := m.Counts()
	for call, instance := range map[string]string{
		"Scheduler.CreateSchedule": "order-1", "Scheduler.UpdateSchedule": "order-1", "Scheduler.DeleteSchedule": "",
		"Lambda.Invoke":    "order-1",
		"DynamoDB.GetItem": "order-1", "S3.PutObject": "order-1", "S3.GetObject": "order-1",
	} {
		if got := c[meter.Kind{Call: call, Instance: instance}]; got.Calls != 1 {
			t.Errorf("%s of %q: %+v", call, instance, got)
		}
	}
	if u := c.Usage(); u[pricing.ObjectWrites] != 1 || u[pricing.ObjectReads] != 1 || u[pricing.Invocations] != 1 ||
		len(c.Unpriced()) > 0 {
		t.Errorf("%v, %v", u, c.Unpriced())
	}
}
