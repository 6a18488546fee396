// Package hubadmin does what operators do with a deployed hub beside its instances: it pauses, resumes and examines it. It calls
// Lambda, which no other part of a hub does, and is therefore a package of its own.
package hubadmin

import (
	"context"
	"fmt"
	"maps"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/internal/sleep"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// LambdaAPI is the part of Lambda that is called. *lambda.Client implements it.
type LambdaAPI interface {
	ListEventSourceMappings(ctx context.Context, in *lambda.ListEventSourceMappingsInput, opts ...func(*lambda.Options)) (*lambda.ListEventSourceMappingsOutput, error)
	GetEventSourceMapping(ctx context.Context, in *lambda.GetEventSourceMappingInput, opts ...func(*lambda.Options)) (*lambda.GetEventSourceMappingOutput, error)
	UpdateEventSourceMapping(ctx context.Context, in *lambda.UpdateEventSourceMappingInput, opts ...func(*lambda.Options)) (*lambda.UpdateEventSourceMappingOutput, error)
}

// FunctionsAPI is what Examine asks of functions. *lambda.Client implements it.
type FunctionsAPI interface {
	GetFunctionConfiguration(ctx context.Context, in *lambda.GetFunctionConfigurationInput, opts ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error)
	GetFunctionConcurrency(ctx context.Context, in *lambda.GetFunctionConcurrencyInput, opts ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error)
	GetFunctionRecursionConfig(ctx context.Context, in *lambda.GetFunctionRecursionConfigInput, opts ...func(*lambda.Options)) (*lambda.GetFunctionRecursionConfigOutput, error)
}

// RolesAPI is what Examine asks of roles. *iam.Client implements it.
type RolesAPI interface {
	SimulatePrincipalPolicy(ctx context.Context, in *iam.SimulatePrincipalPolicyInput, opts ...func(*iam.Options)) (*iam.SimulatePrincipalPolicyOutput, error)
}

// SchedulesAPI is what Examine asks of schedules. *scheduler.Client implements it.
type SchedulesAPI interface {
	GetScheduleGroup(ctx context.Context, in *scheduler.GetScheduleGroupInput, opts ...func(*scheduler.Options)) (*scheduler.GetScheduleGroupOutput, error)
}

// EventsAPI is the part of EventBridge that is called. *eventbridge.Client implements it.
type EventsAPI interface {
	ListRuleNamesByTarget(ctx context.Context, in *eventbridge.ListRuleNamesByTargetInput, opts ...func(*eventbridge.Options)) (*eventbridge.ListRuleNamesByTargetOutput, error)
	DescribeRule(ctx context.Context, in *eventbridge.DescribeRuleInput, opts ...func(*eventbridge.Options)) (*eventbridge.DescribeRuleOutput, error)
	EnableRule(ctx context.Context, in *eventbridge.EnableRuleInput, opts ...func(*eventbridge.Options)) (*eventbridge.EnableRuleOutput, error)
	DisableRule(ctx context.Context, in *eventbridge.DisableRuleInput, opts ...func(*eventbridge.Options)) (*eventbridge.DisableRuleOutput, error)
}

// Hub is a deployed hub, as an operator sees it.
type Hub struct {
	// Where is where its table and queues are.
	Where  dynamo.Hub
	Lambda LambdaAPI
	// Events finds the rule of the watch; where it is nil the hub has none.
	Events EventsAPI
	// Table and Queues are as in dynamo.Clients.
	Table    dynamo.TableAPI
	Queues   dynamo.QueueAPI
	Describe DescribeAPI
	// Instances reads builds, workers and instances. It, Functions, Roles and Schedules are for Examine, which leaves out what is nil.
	Instances *dynamo.Provider
	Functions FunctionsAPI
	Roles     RolesAPI
	Schedules SchedulesAPI
	// Account is for Examine, which does not check the account's quota where it is nil.
	Account AccountAPI
	// ExpiryRules are those of a bucket; nil: Examine does not look at them.
	ExpiryRules func(ctx context.Context, bucket string) ([]dynamo.ExpiryRule, error)
	// ServerTime returns the time that AWS has, Now that of this machine.
	ServerTime func(ctx context.Context) (time.Time, error)
	Now        func() time.Time
	// Sleep passes the time between two looks.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Open finds a hub by its name, as dynamo.Open does.
func Open(ctx context.Context, hub string) (*Hub, error) {
	p, err := dynamo.Open(ctx, hub)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("hubadmin: hub %q: AWS configuration: %w", hub, err)
	}
	table, functions := dynamodb.NewFromConfig(cfg), lambda.NewFromConfig(cfg)
	return &Hub{
		Where: p.Hub(), Instances: p, Functions: functions, Roles: iam.NewFromConfig(cfg), Schedules: scheduler.NewFromConfig(cfg), Account: functions,
		Lambda: functions, Events: eventbridge.NewFromConfig(cfg), Table: table, Describe: table,
		Now: time.Now, ServerTime: func(ctx context.Context) (time.Time, error) { return serverTime(ctx, table, p.Hub().Table) }, //nolint:forbidigo // the clock that is examined
		Queues: sqs.NewFromConfig(cfg), Sleep: sleep.For,
		ExpiryRules: func(ctx context.Context, bucket string) ([]dynamo.ExpiryRule, error) {
			return dynamo.ExpiryRules(ctx, cfg, bucket)
		},
	}, nil
}

// serverTime reads the date of an answer.
func serverTime(ctx context.Context, client *dynamodb.Client, table string) (time.Time, error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return time.Time{}, fmt.Errorf("hubadmin: %w", err)
	}
	at, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
	return at, nil
}

// queues returns the URLs of the queues that functions are mapped to, by name.
func (h *Hub) queues() map[string]string {
	all := map[string]string{provider.QueueInbox: h.Where.InboxURL, provider.QueueTimers: h.Where.TimersURL}
	maps.Copy(all, h.Where.WorkQueues)
	return all
}
