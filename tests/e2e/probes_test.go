package e2e_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/perdure/perdure/internal/awsrequest"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// probe is a call of an AWS service. If it is permitted, it has no effect on the instances of other tests.
type probe struct {
	name string
	call func(ctx context.Context, cfg aws.Config) error
}

// probes calls the resources of the hub.
type probes struct {
	hub dynamo.HubConfig
	all []probe
}

func newProbes(t *testing.T) *probes {
	t.Helper()
	opened, err := dynamo.Open(t.Context(), "e2e") // with the permissions of root
	if err != nil {
		t.Fatal(err)
	}
	p := &probes{hub: opened.Config()}
	p.addTable()
	p.addQueues()
	p.addFunctions()
	p.addOthers()
	return p
}

func (p *probes) add(name string, call func(ctx context.Context, cfg aws.Config) error) {
	p.all = append(p.all, probe{name, call})
}

// addTable adds calls with conditions that fail.
func (p *probes) addTable() {
	absent := func(pk string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: "absent"},
		}
	}
	exists := aws.String("attribute_exists(pk)")
	put := func(pk string) func(context.Context, aws.Config) error {
		return func(ctx context.Context, cfg aws.Config) error {
			_, err := dynamodb.NewFromConfig(cfg).PutItem(ctx, &dynamodb.PutItemInput{
				TableName: &p.hub.Table, Item: absent(pk), ConditionExpression: exists,
			})
			return err
		}
	}
	p.add("read-table", func(ctx context.Context, cfg aws.Config) error {
		out, err := dynamodb.NewFromConfig(cfg).Query(ctx, &dynamodb.QueryInput{
			TableName: &p.hub.Table, KeyConditionExpression: aws.String("pk = :pk AND begins_with(sk, :sk)"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":pk": &types.AttributeValueMemberS{Value: "hub"}, ":sk": &types.AttributeValueMemberS{Value: "key#"},
			},
		})
		if err == nil && len(out.Items) == 0 {
			return errors.New("the hub has no signing keys")
		}
		return err
	})
	p.add("write-table", put("i#nobody"))
	p.add("write-notes", put("n#nobody"))
	p.add("delete-items", func(ctx context.Context, cfg aws.Config) error {
		_, err := dynamodb.NewFromConfig(cfg).DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: &p.hub.Table, Key: absent("i#nobody"), ConditionExpression: exists,
		})
		return err
	})
}

// addQueues adds calls of all queues. A message is for an instance that does not exist.
func (p *probes) addQueues() {
	const (
		message = `{"v":1,"kind":"wake","instanceId":"perdure:report-build"}`
		timer   = `{"v":1,"instanceId":"nobody","executionId":"none","seq":1,"timerId":1,` +
			`"fireAt":"2026-01-01T00:00:00Z"}`
		work = `{"v":1,"instanceId":"nobody","executionId":"none","seq":1,"activityId":2,"name":"nap",` +
			`"queue":"default","attempt":1,"input":0}`
	)
	for name, body := range map[string]string{
		provider.QueueInbox: message, provider.QueueTimers: timer, "default": work,
	} {
		own := p.hub.WorkQueues[name]
		switch name {
		case provider.QueueInbox:
			own = p.hub.InboxURL
		case provider.QueueTimers:
			own = p.hub.TimersURL
		}
		if name == "default" {
			name = "work"
		}
		p.add("send-"+name, func(ctx context.Context, cfg aws.Config) error { return send(ctx, cfg, own, body) })
		p.add("receive-"+name, func(ctx context.Context, cfg aws.Config) error { return receive(ctx, cfg, own) })
	}
	letters := []string{
		p.hub.DeadLetters[provider.QueueInbox], p.hub.DeadLetters[provider.QueueTimers], p.hub.DeadLetters["default"],
	}
	bodies := []string{message, timer, work}
	p.add("send-dead-letters", func(ctx context.Context, cfg aws.Config) (err error) {
		for i, url := range letters {
			if err = send(ctx, cfg, url, bodies[i]); err == nil {
				return nil
			}
		}
		return err
	})
	p.add("receive-dead-letters", func(ctx context.Context, cfg aws.Config) error {
		return receive(ctx, cfg, letters[0])
	})
}

func send(ctx context.Context, cfg aws.Config, url, body string) error {
	in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
	if strings.HasSuffix(url, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String("rights"), aws.String(strconv.FormatInt(time.Now().UnixNano(), 10))
	}
	_, err := sqs.NewFromConfig(cfg).SendMessage(ctx, in)
	return err
}

// receive leaves a received message visible.
func receive(ctx context.Context, cfg aws.Config, url string) error {
	queues := sqs.NewFromConfig(cfg)
	_, err := queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 0})
	return err
}

// addFunctions adds direct invocations without an effect.
func (p *probes) addFunctions() {
	for _, name := range []string{"orchestrator", "api", "renewer"} {
		p.add("invoke-"+name, func(ctx context.Context, cfg aws.Config) error {
			_, err := awslambda.NewFromConfig(cfg).Invoke(ctx, &awslambda.InvokeInput{
				FunctionName: aws.String("perdure-e2e-" + name), InvocationType: lambdatypes.InvocationTypeDryRun,
			})
			return err
		})
	}
}

func (p *probes) addOthers() {
	parameter := dynamo.ParameterName("e2e")
	p.add("configuration", func(ctx context.Context, cfg aws.Config) error {
		_, err := ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: &parameter})
		return err
	})
	p.add("write-configuration", func(ctx context.Context, cfg aws.Config) error {
		_, err := ssm.NewFromConfig(cfg).PutParameter(ctx, &ssm.PutParameterInput{
			Name: &parameter, Value: aws.String("{}"), Type: ssmtypes.ParameterTypeString, Overwrite: aws.Bool(false),
		})
		return err
	})
	p.add("create-schedules", func(ctx context.Context, cfg aws.Config) error {
		_, err := scheduler.NewFromConfig(cfg).UpdateSchedule(ctx, &scheduler.UpdateScheduleInput{
			Name: aws.String("nobody"), GroupName: &p.hub.ScheduleGroup, ScheduleExpression: aws.String("rate(1 hour)"),
			FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: schedulertypes.FlexibleTimeWindowModeOff},
			Target: &schedulertypes.Target{
				Arn: &p.hub.TimersARN, RoleArn: &p.hub.ScheduleRoleARN, Input: aws.String("{}"),
			},
		})
		return err
	})
	p.add("delete-schedules", func(ctx context.Context, cfg aws.Config) error {
		_, err := scheduler.NewFromConfig(cfg).DeleteSchedule(ctx,
			&scheduler.DeleteScheduleInput{Name: aws.String("nobody"), GroupName: &p.hub.ScheduleGroup})
		return err
	})
	const object = "e2e/m/rights"
	p.addPayload("write-payloads", func(ctx context.Context, b dynamo.BucketAPI) error {
		return b.PutObject(ctx, p.hub.PayloadBucket, object, []byte("1"))
	})
	p.addPayload("read-payloads", func(ctx context.Context, b dynamo.BucketAPI) error {
		_, err := b.GetObject(ctx, p.hub.PayloadBucket, object, 1)
		return err
	})
	p.addPayload("delete-payloads", func(ctx context.Context, b dynamo.BucketAPI) error {
		return b.DeleteObjects(ctx, p.hub.PayloadBucket, []string{object})
	})
}

// addPayload adds a call of S3. If its response is lost, it is repeated, as the SDK does for the other services and the
// engine for S3.
func (p *probes) addPayload(name string, call func(context.Context, dynamo.BucketAPI) error) {
	const tries = 3
	p.add(name, func(ctx context.Context, cfg aws.Config) (err error) {
		bucket := dynamo.NewBucket(cfg)
		for range tries {
			if err = call(ctx, bucket); !awsrequest.IsTransient(err) {
				return err
			}
		}
		return err
	})
}
