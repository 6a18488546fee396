package peers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/bench/workload"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/localcloud"
)

func perdureOnMinistack() Peer {
	return Peer{
		Name: "perdure-ministack", Version: "this checkout, ministack 1.5.33", Server: true,
		Where: "ministack server that emulates DynamoDB and SQS in memory, over HTTP; " +
			"written in Python for tests, so most of the time is its own",
		Open: openMinistack,
	}
}

// cloud is the process of a local AWS.
type cloud struct{ *localcloud.Cloud }

// PID returns the process ID of the emulator.
func (c cloud) PID() int { return c.Cloud.PID }

func openMinistack(ctx context.Context, _ string) (*Opened, error) {
	o := &Opened{}
	c, err := localcloud.Start(ctx, "cloud")
	if err != nil {
		return nil, err
	}
	o.addServer(cloud{c})
	e := &ministackEngine{}
	config := localcloud.Config(c.Env["AWS_ENDPOINT_URL"])
	config.APIOptions = append(config.APIOptions, e.count)
	e.queues = sqs.NewFromConfig(config)
	tables := dynamodb.NewFromConfig(config)
	if err := localcloud.EnsureTable(ctx, tables, localcloud.TableInput(benchName)); err != nil {
		return o.failed(err)
	}
	where, err := e.createQueues(ctx)
	if err != nil {
		return o.failed(err)
	}
	p, err := dynamo.New(where, dynamo.Clients{Table: tables, Queues: e.queues}, dynamo.WithLogger(discard()))
	if err != nil {
		return o.failed(err)
	}
	e.c = client.New(p)
	if err := e.serve(p, where); err != nil {
		return o.failed(err)
	}
	o.Engine = e
	return o, nil
}

// ministackEngine is perdure on a server. Its loops receive from the queues, as Lambda's event source mappings do.
type ministackEngine struct {
	perdureClient
	tally

	queues *sqs.Client
	stop   context.CancelFunc
	loops  sync.WaitGroup
}

// count counts each call except receives, which wait for messages, and the client's status requests.
func (e *ministackEngine) count(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("count", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		if _, waits := in.Parameters.(*sqs.ReceiveMessageInput); waits || isStatusRequest(ctx) {
			return next.HandleInitialize(ctx, in)
		}
		defer e.add(time.Now())
		return next.HandleInitialize(ctx, in)
	}), middleware.After)
}

func (e *ministackEngine) createQueues(ctx context.Context) (dynamo.HubConfig, error) {
	where := dynamo.HubConfig{
		Name: benchName, Table: benchName, WorkQueues: map[string]string{}, DeadLetters: map[string]string{},
	}
	var errs []error
	create := func(name, suffix string, visibility time.Duration) string {
		in := &sqs.CreateQueueInput{
			QueueName: aws.String("bench-" + name + suffix), Attributes: map[string]string{
				"VisibilityTimeout": strconv.Itoa(int(visibility.Seconds())),
			},
		}
		if strings.HasSuffix(suffix, ".fifo") {
			in.Attributes["FifoQueue"], in.Attributes["ContentBasedDeduplication"] = "true", "false"
		}
		out, err := e.queues.CreateQueue(ctx, in)
		if err != nil {
			errs = append(errs, err)
			return ""
		}
		return *out.QueueUrl
	}
	both := func(name, suffix string, visibility time.Duration) string {
		where.DeadLetters[name] = create(name+"-dead", suffix, visibility)
		return create(name, suffix, visibility)
	}
	where.InboxURL = both(provider.QueueInbox, ".fifo", 90*time.Second)
	where.TimersURL = both(provider.QueueTimers, "", time.Minute)
	where.WorkQueues[perdure.DefaultQueue] = both(perdure.DefaultQueue, "", 15*time.Minute)
	return where, errors.Join(errs...)
}

// handler handles the records of an event, like a Lambda function.
type handler interface {
	HandleRecords(ctx context.Context, records []provider.Record) (failed []string)
}

// receivers is the number of loops that receive from each queue.
const receivers = 8

func (e *ministackEngine) serve(p *dynamo.Provider, where dynamo.HubConfig) error {
	r := registry()
	orchestrator, err := dispatch.NewOrchestrator(r, p, &dispatch.OrchestratorOptions{
		BuildID: benchName, Logger: discard(), HubName: where.Name, Interceptors: e.interceptors(),
	})
	if err != nil {
		return err
	}
	worker, err := dispatch.NewWorker(r, p, &dispatch.WorkerOptions{
		BuildID: benchName, Queue: perdure.DefaultQueue, Logger: discard(), HubName: where.Name,
	})
	if err != nil {
		return err
	}
	renewer, err := dispatch.NewRenewer(p, &dispatch.RenewerOptions{HubName: where.Name, Logger: discard()})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	for url, h := range map[string]handler{
		where.InboxURL: orchestrator, where.WorkQueues[perdure.DefaultQueue]: worker, where.TimersURL: renewer,
	} {
		for range receivers {
			e.loops.Go(func() { e.receive(ctx, url, h) })
		}
	}
	return nil
}

// receive receives batches from a queue, passes them to the handler, and deletes the messages that did not fail.
func (e *ministackEngine) receive(ctx context.Context, url string, h handler) {
	for ctx.Err() == nil {
		out, err := e.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1,
			MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
		})
		if err != nil || len(out.Messages) == 0 {
			continue
		}
		failed := map[string]bool{}
		for _, id := range h.HandleRecords(ctx, simhub.Records(out.Messages)) {
			failed[id] = true
		}
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
		for i, m := range out.Messages {
			if !failed[*m.MessageId] {
				in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{
					Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle,
				})
			}
		}
		if len(in.Entries) > 0 {
			_, _ = e.queues.DeleteMessageBatch(ctx, in) // messages that remain are redelivered
		}
	}
}

func (e *ministackEngine) Close() error {
	e.stop()
	e.loops.Wait()
	return nil
}

var _ workload.Counted = (*ministackEngine)(nil)
