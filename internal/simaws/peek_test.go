package simaws_test

import (
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/simaws"
)

func TestTable_heads_areTheFirstOfEachPartition(t *testing.T) {
	t.Parallel()
	cloud := simaws.New(simaws.WithTable(simaws.TableConfig{
		PartitionKey: "pk", SortKey: "sk", Indexes: []simaws.Index{{Name: "byDay", PartitionKey: "day", SortKey: "at"}},
	}))
	for id, at := range map[string][]string{"a": {"1", "8"}, "b": {"1", "3"}, "c": {"2", "5"}} {
		put(t, cloud, item{"pk": str(id), "sk": str("x"), "day": str(at[0]), "at": str(at[1])})
	}
	if got := maps.Collect(cloud.Table.Heads("byDay")); !maps.Equal(got, map[string]string{"1": "3", "2": "5"}) {
		t.Errorf("%v", got)
	}
	if got := maps.Collect(cloud.Table.Heads("another")); len(got) > 0 {
		t.Errorf("of an unknown index: %v", got)
	}
}

func TestQueues_len_countsInvisibleMessages(t *testing.T) {
	t.Parallel()
	cloud := simaws.New()
	url := cloud.Queues.Create("q", simaws.QueueConfig{VisibilityTimeout: time.Hour})
	for _, body := range []string{"a", "b"} {
		entry := sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
		if _, err := cloud.Queues.SendMessage(t.Context(), &entry); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cloud.Queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	if n := cloud.Queues.Len(url); n != 2 {
		t.Errorf("%d messages", n)
	}
	if n := cloud.Queues.Len("sim://another"); n != 0 {
		t.Errorf("%d messages in an unknown queue", n)
	}
}

func TestTable_storedBytes_includeItemsAndIndexEntries(t *testing.T) {
	t.Parallel()
	cloud := simaws.New(simaws.WithTable(simaws.TableConfig{
		PartitionKey: "pk", SortKey: "sk",
		Indexes: []simaws.Index{{Name: "byDay", PartitionKey: "day", SortKey: "at", Include: []string{}}},
	}))
	put(t, cloud, item{"pk": str("a"), "sk": str("x"), "data": str("12345")}) // 6 bytes of keys, 9 of data
	if got, want := cloud.Table.StoredBytes(), int64(100+6+9); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
	// 6 bytes of keys, 7 bytes of index keys
	put(t, cloud, item{"pk": str("a"), "sk": str("x"), "day": str("1"), "at": str("8")})
	if got, want := cloud.Table.StoredBytes(), int64(2*(100+6+7)); got != want {
		t.Errorf("with an index entry: %d bytes, want %d", got, want)
	}
}
