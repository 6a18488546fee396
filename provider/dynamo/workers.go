package dynamo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/awscall"
	"github.com/perdure/perdure/provider/dynamo/internal/table"
)

// skWorkers is the prefix of the hub's items about the workers of a queue: w#<queue>.
const skWorkers = "w#"

// attrStartedAt is the time when the last worker of a queue started.
const attrStartedAt = "startedAt"

// ReportWorker updates one item and costs one write unit.
func (p *Provider) ReportWorker(ctx context.Context, r provider.WorkerReport) error {
	now := table.Str(table.FormatTime(p.now()))
	in := &dynamodb.UpdateItemInput{
		Key:                       table.Item{table.AttrPK: table.Str(table.PKHub), table.AttrSK: table.Str(skWorkers + r.Queue)},
		UpdateExpression:          aws.String("SET #seen = :now, #build = :build"),
		ExpressionAttributeNames:  map[string]string{"#seen": attrSeenAt, "#build": table.AttrBuild},
		ExpressionAttributeValues: table.Item{":now": now, ":build": table.Str(r.BuildID)},
	}
	if !r.StartedAt.IsZero() {
		*in.UpdateExpression += ", #started = :now"
		in.ExpressionAttributeNames["#started"] = attrStartedAt
	}
	return p.table.Update(ctx, "", in)
}

// ReadWorkers makes one eventually consistent query.
func (p *Provider) ReadWorkers(ctx context.Context) (map[string]provider.WorkerReport, error) {
	reports := map[string]provider.WorkerReport{}
	for page, err := range p.table.Query(ctx, "", table.HubQuery(skWorkers)) {
		if err != nil {
			return nil, err
		}
		for _, it := range page {
			r := provider.WorkerReport{Queue: strings.TrimPrefix(table.GetString(it, table.AttrSK), skWorkers), BuildID: table.GetString(it, table.AttrBuild)}
			// an unreadable time is from another release, and counts as unknown
			r.SeenAt, _ = time.Parse(table.TimeFormat, table.GetString(it, attrSeenAt))
			r.StartedAt, _ = time.Parse(table.TimeFormat, table.GetString(it, attrStartedAt))
			reports[r.Queue] = r
		}
	}
	return reports, nil
}

// CountWorkItems reads the attributes of all work queues concurrently.
func (p *Provider) CountWorkItems(ctx context.Context) (map[string]int, error) {
	var mu sync.Mutex
	counts := map[string]int{}
	calls := make([]func() error, 0, len(p.hub.WorkQueues))
	for name, url := range p.hub.WorkQueues {
		calls = append(calls, func() error {
			n, err := p.countMessages(ctx, url)
			mu.Lock()
			defer mu.Unlock()
			counts[name] = n
			return err
		})
	}
	return counts, awscall.Parallel(calls...)
}

func (p *Provider) countMessages(ctx context.Context, url string) (n int, err error) {
	counts, err := p.attributesOf(ctx, url, types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
	for _, some := range counts {
		n += some
	}
	return n, err
}

// attributesOf reads numeric attributes of a queue.
func (p *Provider) attributesOf(ctx context.Context, url string, names ...types.QueueAttributeName) (map[types.QueueAttributeName]int, error) {
	var out *sqs.GetQueueAttributesOutput
	err := awscall.Do(ctx, "SQS.GetQueueAttributes", "", func() (err error) {
		out, err = p.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
		return err
	})
	if err != nil {
		return nil, err
	}
	numbers := map[types.QueueAttributeName]int{}
	for _, name := range names {
		if numbers[name], err = strconv.Atoi(out.Attributes[string(name)]); err != nil {
			return nil, fmt.Errorf("dynamo: queue %s: attribute %s is %q", url, name, out.Attributes[string(name)])
		}
	}
	return numbers, nil
}
