package cdk

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

// PlatformProps configures the names, network, encryption and existing resources of a hub. The zero value of a field
// selects its default.
type PlatformProps struct {
	// NamePrefix is the prefix of the names of functions, log groups, alarms and the API. If it is set, it is also the
	// prefix of the names of the queues and the table, which CloudFormation chooses otherwise. The maximum is 30
	// characters. Default: perdure-<hub>.
	NamePrefix string

	// Vpc is the VPC of the functions. It needs access to DynamoDB, SQS, EventBridge Scheduler and CloudWatch Logs,
	// through endpoints or a NAT gateway. Default: no VPC.
	Vpc awsec2.IVpc
	// VpcSubnets selects the subnets of Vpc. Default: the private subnets.
	VpcSubnets *awsec2.SubnetSelection
	// SecurityGroups has the security groups of the functions. Default: a new security group per function.
	SecurityGroups []awsec2.ISecurityGroup

	// EncryptionKey encrypts the table, the payload store, the queues, the logs and the environments of the functions.
	// The functions and the grantees of direct grants receive permissions to use the key. The policy of a key of
	// another stack must permit logs.<region>.amazonaws.com to use it. Default: keys that AWS owns.
	EncryptionKey awskms.IKey
	// Table is an existing table with the keys and the three indexes of a hub (docs/internals/formats.md), and with TTL
	// on the attribute ttl. NewTaskHub does not change its settings. A table can have only one hub. Default: a new
	// table. If Table is set later, the stack no longer has the earlier table, and TableRemovalPolicy applies to it.
	Table awsdynamodb.ITable
	// PayloadBucket is an existing bucket in the region of the hub, used as payload store. Keys of the hub start with
	// its name. NewTaskHub does not change the lifecycle rules of the bucket. Objects with the prefix <hub>/m/ should
	// expire after 60 days, noncurrent versions soon after their deletion, and objects with the prefix <hub>/x/ never.
	// The command perdure doctor checks the rules. Default: a new bucket if LargePayloads is set.
	PayloadBucket awss3.IBucket
	// MaxReadRequestUnits and MaxWriteRequestUnits limit the on-demand request units per second of the table and of
	// each index, but not of an existing Table. DynamoDB throttles other requests, and processing slows down. Default:
	// the quota of the account.
	MaxReadRequestUnits, MaxWriteRequestUnits int

	// TableRemovalPolicy, QueueRemovalPolicy and LogRemovalPolicy apply when the stack is deleted. SNAPSHOT is not
	// supported. Default: the table is retained (destroyed with WithoutDeletionProtection), and queues and logs are
	// destroyed.
	TableRemovalPolicy, QueueRemovalPolicy, LogRemovalPolicy awscdk.RemovalPolicy

	// PermissionsBoundary is the permissions boundary of all roles. Default: none.
	PermissionsBoundary awsiam.IManagedPolicy
}

// FunctionProps configures a function. The zero value of a field selects its default.
type FunctionProps struct {
	// MemorySize is the memory size in MB, from 128 to 10,240. The CPU share is proportional to it. Default: 512 for
	// the orchestrator, 256 for other functions.
	MemorySize int
	// Code replaces the binary in FunctionsDir.
	Code *FunctionCode
}

// FunctionCode is the code of a function in S3 or ECR.
type FunctionCode struct {
	// Code is awslambda.Code_FromBucketV2 with a zip file that has a bootstrap binary, or awslambda.Code_FromEcrImage.
	// It is required.
	Code awslambda.Code
	// Image reports that Code is a container image.
	Image bool
	// BuildID identifies the build, for example by its commit. It is required. Instances that a build blocked resume
	// when another build reports.
	BuildID string
}

// WorkQueueProps configures a work queue and its worker. The zero value of a field selects its default.
type WorkQueueProps struct {
	FunctionProps

	// Timeout is the timeout of the worker function and the visibility timeout of the queue. It limits the run time of
	// an activity. Default: WorkTimeout.
	Timeout awscdk.Duration
	// Concurrency limits the concurrent invocations of the mapping, from 2 to 1,000. Default: WorkConcurrency.
	Concurrency int
	// BatchSize is the maximum number of activities that an invocation runs concurrently, from 1 to 10. Default: 10.
	BatchSize int
	// AgeAlarm is the age of the oldest work item at which the alarm of the queue fires. Default: 30 minutes.
	AgeAlarm awscdk.Duration
	// Exclusive adds a FIFO queue for activities with an exclusive key (perdure.Exclusive), with its own dead-letter
	// queue and alarms. The worker processes it through a mapping with the same Concurrency and BatchSize. Default:
	// calls with an exclusive key fail.
	Exclusive bool
	// Client adds the permissions that a client of the hub in an activity needs (lambdahandler.NewClient): for the
	// timers queue, the indexes of the table and the orchestrator function. The client can then start orchestrations
	// immediately or with a delay, raise events, cancel, query, read and list. Workers can always write to the table
	// and send to the inbox. Default: NewClient returns an error.
	Client bool
}

const (
	longestPrefix             = 30
	leastMemory, mostMemory   = 128, 10_240
	leastMapping, mostMapping = 2, 1000
)

// validateFunctions returns an error for props of functions and queues that AWS would reject.
func (p TaskHubProps) validateFunctions() error {
	if len(p.NamePrefix) > longestPrefix && !isToken(p.NamePrefix) {
		return fmt.Errorf("invalid NamePrefix %q: more than %d characters", p.NamePrefix, longestPrefix)
	}
	if slices.Contains([]awscdk.RemovalPolicy{p.TableRemovalPolicy, p.QueueRemovalPolicy, p.LogRemovalPolicy},
		awscdk.RemovalPolicy_SNAPSHOT) {
		return errors.New("removal policy SNAPSHOT is not supported: " +
			"use DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE")
	}
	if !slices.Contains([]string{"", MetricsByHub, MetricsByName}, p.Metrics) {
		return fmt.Errorf("invalid Metrics %q: use %s or %s", p.Metrics, MetricsByHub, MetricsByName)
	}
	if !slices.Contains([]string{"", "debug", "info", "warn"}, p.LogLevel) {
		return fmt.Errorf("invalid LogLevel %q: use debug, info or warn", p.LogLevel)
	}
	functions := map[string]FunctionProps{
		"OrchestratorProps": p.OrchestratorProps, "RenewerProps": p.RenewerProps, "APIProps": p.APIProps,
	}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueueProps)) {
		if !slices.Contains(p.WorkQueues, name) {
			return fmt.Errorf("WorkQueueProps: unknown queue %q: add it to WorkQueues", name)
		}
		if err := p.WorkQueueProps[name].validate(); err != nil {
			return fmt.Errorf("WorkQueueProps of %q: %w", name, err)
		}
	}
	for _, name := range p.WorkQueues {
		functions["WorkQueueProps of "+name] = p.WorkQueueProps[name].FunctionProps
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if err := functions[name].validate(p.FunctionsDir); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (f FunctionProps) validate(dir string) error {
	switch {
	case f.MemorySize != 0 && (f.MemorySize < leastMemory || f.MemorySize > mostMemory):
		return fmt.Errorf("invalid MemorySize %d: must be from %d to %d", f.MemorySize, leastMemory, mostMemory)
	case f.Code == nil && dir == "":
		return errors.New("set FunctionsDir or Code")
	case f.Code != nil && (f.Code.Code == nil || f.Code.BuildID == ""):
		return errors.New("incomplete code: Code and BuildID are required")
	}
	return nil
}

func (w WorkQueueProps) validate() error {
	switch {
	case w.BatchSize < 0 || w.BatchSize > batchSize:
		return fmt.Errorf("invalid BatchSize %d: must be from 1 to %d", w.BatchSize, batchSize)
	case w.Concurrency != 0 && (w.Concurrency < leastMapping || w.Concurrency > mostMapping):
		return fmt.Errorf("invalid Concurrency %d: must be from %d to %d", w.Concurrency, leastMapping, mostMapping)
	}
	return nil
}

// queueProps returns the props of a work queue, or of its queue for exclusive keys, with the defaults of the hub.
func (h *TaskHub) queueProps(name string) WorkQueueProps {
	w := h.props.WorkQueueProps[strings.TrimSuffix(name, exclusiveSuffix)]
	if w.Timeout == nil {
		w.Timeout = h.props.WorkTimeout
	}
	if w.Concurrency == 0 {
		w.Concurrency = h.props.WorkConcurrency
	}
	if w.BatchSize == 0 {
		w.BatchSize = batchSize
	}
	if w.AgeAlarm == nil {
		w.AgeAlarm = awscdk.Duration_Seconds(jsii.Number(workAgeSeconds))
	}
	return w
}

// givenName returns a name if NamePrefix is set. With nil, CloudFormation chooses the name.
func (h *TaskHub) givenName(part string) *string {
	if h.props.NamePrefix == "" {
		return nil
	}
	return h.name(part)
}

// keyPermissions returns the permissions for the key, or nothing without a key.
func (h *TaskHub) keyPermissions() []awsiam.PolicyStatement {
	if h.props.EncryptionKey == nil {
		return nil
	}
	return []awsiam.PolicyStatement{policy.Allow([]string{*h.props.EncryptionKey.KeyArn()}, policy.UseKey...)}
}

// admitLogs permits CloudWatch Logs to use the key for the log groups of the account.
func (h *TaskHub) admitLogs() {
	if h.props.EncryptionKey == nil {
		return
	}
	groups := h.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("logs"), Resource: jsii.String("log-group"), ResourceName: jsii.String("*"),
		ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
	h.props.EncryptionKey.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey",
			"kms:ReEncryptFrom", "kms:ReEncryptTo"),
		Resources: jsii.Strings("*"), // of this key
		Principals: &[]awsiam.IPrincipal{
			awsiam.NewServicePrincipal(jsii.String("logs."+*h.stack.Region()+".amazonaws.com"), nil),
		},
		Conditions: &map[string]any{"ArnLike": map[string]any{"kms:EncryptionContext:aws:logs:arn": groups}},
	}), jsii.Bool(true))
}

// networkPermissions returns the permissions for a VPC, or nothing without one. EC2 does not support resources for
// them.
func (h permissions) networkPermissions() []awsiam.PolicyStatement {
	if h.props.Vpc == nil {
		return nil
	}
	return []awsiam.PolicyStatement{policy.Allow([]string{"*"},
		"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
		"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses")}
}
