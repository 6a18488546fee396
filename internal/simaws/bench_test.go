package simaws_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/simaws"
)

// segment returns an item of the size and shape of a history segment.
func segment(pk, sk string) item {
	return item{
		"pk": str(pk), "sk": str(sk), "nonce": str("01JD0000000000000000000000"), "parts": num("1"),
		"wm": str("18800000000000000001"), "events": &ddbtypes.AttributeValueMemberB{Value: make([]byte, 700)},
	}
}

func BenchmarkPutItem(b *testing.B) {
	c := simaws.New()
	notExists := aws.String("attribute_not_exists(pk)")

	b.ReportAllocs()

	for i := range b.N {
		_, err := c.Table.PutItem(b.Context(), &dynamodb.PutItemInput{
			Item:                segment("x#"+strconv.Itoa(i/8), "h#"+strconv.Itoa(i%8)),
			ConditionExpression: notExists,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTransactWriteItems3(b *testing.B) {
	c := simaws.New()
	notExists := aws.String("attribute_not_exists(pk)")

	b.ReportAllocs()

	for i := range b.N {
		pk := "x#" + strconv.Itoa(i)

		_, err := c.Table.TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []ddbtypes.TransactWriteItem{
				{Put: &ddbtypes.Put{Item: segment(pk, "h#0"), ConditionExpression: notExists}},
				{Put: &ddbtypes.Put{Item: segment(pk, "c")}},
				{Update: &ddbtypes.Update{
					Key: item{"pk": str("i#" + pk), "sk": str("i")}, UpdateExpression: aws.String("SET execution = :x"),
					ExpressionAttributeValues: item{":x": str(pk)},
				}},
			},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkQuery50(b *testing.B) {
	c := simaws.New()
	for i := range 50 {
		put(b, c, segment("x", fmt.Sprintf("h#%010d", i)))
	}

	in := &dynamodb.QueryInput{
		KeyConditionExpression:    aws.String("pk = :p AND begins_with(sk, :h)"),
		ExpressionAttributeValues: item{":p": str("x"), ":h": str("h#")}, ConsistentRead: aws.Bool(true),
	}

	b.ReportAllocs()

	for range b.N {
		out, err := c.Table.Query(b.Context(), in)
		if err != nil || len(out.Items) != 50 {
			b.Fatal(len(out.Items), err)
		}
	}
}

func BenchmarkMapping(b *testing.B) {
	for _, name := range []string{"work", "inbox.fifo"} {
		b.Run(name, func(b *testing.B) {
			c := simaws.New()
			url := c.Queues.Create(name, simaws.QueueConfig{})

			var handled sync.WaitGroup

			handled.Add(b.N)
			c.Map(url, simaws.Mapping{
				Concurrency: 100,
				Invoke: func(_ context.Context, ms []sqstypes.Message) ([]string, error) {
					handled.Add(-len(ms))

					return nil, nil
				},
			})

			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()

			go c.Serve(ctx)

			b.ReportAllocs()
			sendMany(b, c, url)
			handled.Wait()
		})
	}
}

// sendMany sends b.N messages of 300 bytes, to 1,000 message groups if the queue has groups.
func sendMany(b *testing.B, c *simaws.Cloud, url string) {
	b.Helper()

	body := fmt.Sprintf("%0300d", 0)

	for i := range b.N {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
		if url == "sim://inbox.fifo" {
			in.MessageGroupId = aws.String(strconv.Itoa(i % 1000))
			in.MessageDeduplicationId = aws.String(strconv.Itoa(i))
		}

		if _, err := c.Queues.SendMessage(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
