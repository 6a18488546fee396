package differential_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/tests/localcloud"
)

// tableAPI has the methods of both table clients.
type tableAPI interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.UpdateItemOutput, error,
	)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (
		*dynamodb.DeleteItemOutput, error,
	)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	TransactWriteItems(
		context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options),
	) (*dynamodb.TransactWriteItemsOutput, error)
}

// queueAPI has the methods of both queue clients.
type queueAPI interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (
		*sqs.SendMessageBatchOutput, error,
	)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(
		context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options),
	) (*sqs.ChangeMessageVisibilityOutput, error)
}

var (
	_ tableAPI = (*simaws.Table)(nil)
	_ tableAPI = (*dynamodb.Client)(nil)
	_ queueAPI = (*simaws.Queues)(nil)
	_ queueAPI = (*sqs.Client)(nil)
)

const tableName = "perdure-differential"

// unique returns a suffix for names that earlier runs against the same emulator have not used.
var unique = sync.OnceValue(func() string { //nolint:gochecknoglobals // one value for the run
	return fmt.Sprintf("%x", time.Now().UnixNano())
})

// config shares its connections between all clients. It does not retry, because a retry of an applied conditional write
// would fail.
var config = sync.OnceValue(func() aws.Config { //nolint:gochecknoglobals // one value for the run
	c := localcloud.Config(os.Getenv(realCloud.variable))
	c.RetryMaxAttempts = 1

	return c
})

// index is the name of the index in both tables. It is sparse, sorted by a number, and has a projected attribute.
const index = "byG"

func simulatedTable() tableAPI {
	return simaws.New(simaws.WithTable(simaws.TableConfig{
		Name: realTable(), PartitionKey: "pk", SortKey: "sk", NumberKeys: []string{"rank"},
		Indexes: []simaws.Index{{Name: index, PartitionKey: "g", SortKey: "rank", Include: []string{"a"}}},
	})).Table
}

// realTable creates the table of the emulator once. Each test uses its own partitions.
var realTable = sync.OnceValue(func() string { //nolint:gochecknoglobals // one value for the run
	name := tableName + unique()
	attribute := func(name string, t ddbtypes.ScalarAttributeType) ddbtypes.AttributeDefinition {
		return ddbtypes.AttributeDefinition{AttributeName: &name, AttributeType: t}
	}
	keys := func(partition, sort string) []ddbtypes.KeySchemaElement {
		return []ddbtypes.KeySchemaElement{
			{AttributeName: &partition, KeyType: ddbtypes.KeyTypeHash}, {
				AttributeName: &sort, KeyType: ddbtypes.KeyTypeRange,
			},
		}
	}

	err := localcloud.EnsureTable(context.Background(), dynamodb.NewFromConfig(config()), &dynamodb.CreateTableInput{
		TableName: &name, BillingMode: ddbtypes.BillingModePayPerRequest, KeySchema: keys("pk", "sk"),
		AttributeDefinitions: []ddbtypes.AttributeDefinition{
			attribute("pk", "S"), attribute("sk", "S"), attribute("g", "S"), attribute("rank", "N"),
		},
		GlobalSecondaryIndexes: []ddbtypes.GlobalSecondaryIndex{{
			IndexName: aws.String(index), KeySchema: keys("g", "rank"),
			Projection: &ddbtypes.Projection{
				ProjectionType: ddbtypes.ProjectionTypeInclude, NonKeyAttributes: []string{"a"},
			},
		}},
	})
	if err != nil {
		panic(err)
	}

	return name
})

// queue is a queue of the simulation or the emulator.
type queue struct {
	queueAPI

	url string
}

// queues creates the same queue in the simulation and the emulator.
func queues(tb testing.TB, name string, visibility time.Duration, maxReceive int) (sim, emulator queue) {
	tb.Helper()

	suffix := ""
	if strings.HasSuffix(name, ".fifo") {
		suffix = ".fifo"
	}

	base := strings.TrimSuffix(name, suffix) + unique()
	client := sqs.NewFromConfig(config())
	create := func(name string, attributes map[string]string) string {
		if suffix != "" {
			attributes["FifoQueue"] = "true"
		}

		out, err := client.CreateQueue(tb.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
		if err != nil {
			tb.Fatal(err)
		}

		return *out.QueueUrl
	}

	cloud := simaws.New()
	simulated := simaws.QueueConfig{VisibilityTimeout: visibility}
	attributes := map[string]string{"VisibilityTimeout": fmt.Sprint(int(visibility.Seconds()))}

	if maxReceive > 0 {
		dead := base + "-dead" + suffix
		create(dead, map[string]string{})
		cloud.Queues.Create(dead, simaws.QueueConfig{})

		simulated.DeadLetterQueue, simulated.MaxReceiveCount = dead, maxReceive
		attributes["RedrivePolicy"] = fmt.Sprintf(
			`{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:%s","maxReceiveCount":"%d"}`, dead, maxReceive)
	}

	return queue{cloud.Queues, cloud.Queues.Create(base+suffix, simulated)}, queue{
		client, create(base+suffix, attributes),
	}
}

// dead returns the dead-letter queue of a queue.
func (q queue) dead() queue {
	base, isFIFO := strings.CutSuffix(q.url, ".fifo")
	q.url = base + "-dead"

	if isFIFO {
		q.url += ".fifo"
	}

	return q
}

// code returns the code of an API error without its prefix, or "" without an error.
func code(err error) string {
	if err == nil {
		return ""
	}

	var api smithy.APIError
	if !errors.As(err, &api) {
		return err.Error()
	}

	return strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService.")
}

// show formats an item in the same way for both sides.
func show(it map[string]ddbtypes.AttributeValue) string {
	if it == nil {
		return "-"
	}

	fields := []string{}

	for name, v := range it {
		switch v := v.(type) {
		case *ddbtypes.AttributeValueMemberS:
			fields = append(fields, name+"="+v.Value)
		case *ddbtypes.AttributeValueMemberN:
			fields = append(fields, name+"=#"+v.Value)
		default:
			fields = append(fields, fmt.Sprintf("%s=%T", name, v))
		}
	}

	slices.Sort(fields)

	return "{" + strings.Join(fields, " ") + "}"
}

// units formats consumed capacity.
func units(cs ...ddbtypes.ConsumedCapacity) string {
	total := 0.0
	for _, c := range cs {
		total += aws.ToFloat64(c.CapacityUnits)
	}

	return fmt.Sprint(total)
}
