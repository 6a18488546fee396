// Package hubadmin pauses, resumes and checks a deployed hub. It is separate from package dynamo because it needs
// clients and permissions of Lambda, EventBridge and IAM.
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

// LambdaAPI contains the Lambda operations for event source mappings. *lambda.Client implements it.
type LambdaAPI interface {
	ListEventSourceMappings(
		ctx context.Context, in *lambda.ListEventSourceMappingsInput, opts ...func(*lambda.Options),
	) (*lambda.ListEventSourceMappingsOutput, error)
	GetEventSourceMapping(
		ctx context.Context, in *lambda.GetEventSourceMappingInput, opts ...func(*lambda.Options),
	) (*lambda.GetEventSourceMappingOutput, error)
	UpdateEventSourceMapping(
		ctx context.Context, in *lambda.UpdateEventSourceMappingInput, opts ...func(*lambda.Options),
	) (*lambda.UpdateEventSourceMappingOutput, error)
}

// FunctionsAPI contains the Lambda operations with which Check checks functions. *lambda.Client implements it.
type FunctionsAPI interface {
	GetFunctionConfiguration(
		ctx context.Context, in *lambda.GetFunctionConfigurationInput, opts ...func(*lambda.Options),
	) (*lambda.GetFunctionConfigurationOutput, error)
	GetFunctionConcurrency(
		ctx context.Context, in *lambda.GetFunctionConcurrencyInput, opts ...func(*lambda.Options),
	) (*lambda.GetFunctionConcurrencyOutput, error)
	GetFunctionRecursionConfig(
		ctx context.Context, in *lambda.GetFunctionRecursionConfigInput, opts ...func(*lambda.Options),
	) (*lambda.GetFunctionRecursionConfigOutput, error)
}

// IAMAPI contains the IAM operation with which Check checks roles. *iam.Client implements it.
type IAMAPI interface {
	SimulatePrincipalPolicy(
		ctx context.Context, in *iam.SimulatePrincipalPolicyInput, opts ...func(*iam.Options),
	) (*iam.SimulatePrincipalPolicyOutput, error)
}

// SchedulerAPI contains the EventBridge Scheduler operation with which Check checks the schedule group.
// *scheduler.Client implements it.
type SchedulerAPI interface {
	GetScheduleGroup(
		ctx context.Context, in *scheduler.GetScheduleGroupInput, opts ...func(*scheduler.Options),
	) (*scheduler.GetScheduleGroupOutput, error)
}

// EventBridgeAPI contains the EventBridge operations for the sweeper's rule. *eventbridge.Client implements it.
type EventBridgeAPI interface {
	ListRuleNamesByTarget(
		ctx context.Context, in *eventbridge.ListRuleNamesByTargetInput, opts ...func(*eventbridge.Options),
	) (*eventbridge.ListRuleNamesByTargetOutput, error)
	DescribeRule(
		ctx context.Context, in *eventbridge.DescribeRuleInput, opts ...func(*eventbridge.Options),
	) (*eventbridge.DescribeRuleOutput, error)
	EnableRule(
		ctx context.Context, in *eventbridge.EnableRuleInput, opts ...func(*eventbridge.Options),
	) (*eventbridge.EnableRuleOutput, error)
	DisableRule(
		ctx context.Context, in *eventbridge.DisableRuleInput, opts ...func(*eventbridge.Options),
	) (*eventbridge.DisableRuleOutput, error)
}

// Admin is a deployed hub with the clients to operate it. Open sets all fields.
type Admin struct {
	// Config contains the names and URLs of the hub's resources.
	Config dynamo.HubConfig
	// Lambda reads and changes the event source mappings.
	Lambda LambdaAPI
	// Events reads and changes the sweeper's rule. If it is nil, the rule is ignored.
	Events EventBridgeAPI
	// Table is the client of the hub's table.
	Table dynamo.TableAPI
	// Queues is the client of the hub's queues.
	Queues dynamo.QueueAPI

	// The following fields are for Check.

	// Describe reads the configuration of the table. It is required.
	Describe DescribeAPI
	// Instances reads builds, workers and instances. If it is nil, Check does not check them.
	Instances *dynamo.Provider
	// Functions reads the configuration of functions. If it is nil, Check does not check functions and their roles.
	Functions FunctionsAPI
	// Roles simulates the policies of roles. If it is nil, Check does not check roles.
	Roles IAMAPI
	// Schedules reads the schedule group. If it is nil, Check does not check the group.
	Schedules SchedulerAPI
	// Account reads the account's quota. If it is nil, Check does not check the quota.
	Account AccountAPI
	// ExpiryRules returns the lifecycle rules of a bucket. If it is nil, Check does not check the payload store.
	ExpiryRules func(ctx context.Context, bucket string) ([]dynamo.ExpiryRule, error)
	// ServerTime returns the time of AWS. It is required.
	ServerTime func(ctx context.Context) (time.Time, error)

	// Now returns the time of this machine.
	Now func() time.Time
	// Sleep waits for d between two polls. It returns an error if ctx ends first.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Open finds a hub by its name, like dynamo.Open, and creates the AWS clients from the default configuration.
func Open(ctx context.Context, hub string) (*Admin, error) {
	p, err := dynamo.Open(ctx, hub)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("hubadmin: hub %q: load AWS configuration: %w", hub, err)
	}
	table, functions := dynamodb.NewFromConfig(cfg), lambda.NewFromConfig(cfg)
	return &Admin{
		Config: p.Config(), Instances: p, Functions: functions, Roles: iam.NewFromConfig(cfg),
		Schedules: scheduler.NewFromConfig(cfg), Account: functions,
		Lambda: functions, Events: eventbridge.NewFromConfig(cfg), Table: table, Describe: table,
		ServerTime: func(ctx context.Context) (time.Time, error) { return serverTime(ctx, table, p.Config().Table) },
		Now:        time.Now, //nolint:forbidigo // Examine checks this clock
		Queues:     sqs.NewFromConfig(cfg), Sleep: sleep.For,
		ExpiryRules: func(ctx context.Context, bucket string) ([]dynamo.ExpiryRule, error) {
			return dynamo.ExpiryRules(ctx, cfg, bucket)
		},
	}, nil
}

// serverTime returns the time of AWS, from the Date header of a response.
func serverTime(ctx context.Context, client *dynamodb.Client, table string) (time.Time, error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return time.Time{}, fmt.Errorf("hubadmin: read the time of AWS: %w", err)
	}
	at, _ := awsmiddleware.GetServerTime(out.ResultMetadata)
	return at, nil
}

// queues returns the URLs of the inbox, the timers queue and the work queues by name.
func (h *Admin) queues() map[string]string {
	all := map[string]string{provider.QueueInbox: h.Config.InboxURL, provider.QueueTimers: h.Config.TimersURL}
	maps.Copy(all, h.Config.WorkQueues)
	return all
}
