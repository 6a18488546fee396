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
)

// PlatformProps is where and under whose rules a hub lives. The zero value of each
// field is its default.
type PlatformProps struct {
	// NamePrefix begins the name of whatever a hub names: of its functions, logs,
	// alarms and API; and, where it is set, of its queues and its table, which
	// CloudFormation names otherwise. At most 30 characters. Default: perdure-<hub>.
	NamePrefix string

	// Vpc is where the functions run. It needs a way to DynamoDB, SQS, EventBridge
	// Scheduler and CloudWatch Logs: endpoints, or a NAT. Default: no VPC.
	Vpc awsec2.IVpc
	// VpcSubnets of Vpc. Default: its private subnets.
	VpcSubnets *awsec2.SubnetSelection
	// SecurityGroups of the functions. Default: one that is made, a function.
	SecurityGroups []awsec2.ISecurityGroup

	// EncryptionKey encrypts the table, the bucket, the queues, the logs and the environment of the
	// functions. The functions may use it; who is granted access past the API may too.
	// A key of another stack must let logs.<region>.amazonaws.com use it.
	// Default: the keys that AWS owns.
	EncryptionKey awskms.IKey
	// Table is one that exists, with the keys and the three indexes of a hub's table
	// (docs/formats.md) and with TTL on the attribute ttl. A table holds one hub.
	// Default: a table is made.
	Table awsdynamodb.ITable
	// PayloadBucket is a bucket for large payloads that exists, in the hub's region. The hub's
	// lie below its name. No rule is added to its lifecycle: what is below <hub>/m/ should expire after
	// 60 days, versions of what is deleted soon after, and nothing below <hub>/x/ ever; perdure doctor
	// looks. Default: one is made where the hub has LargePayloads.
	PayloadBucket awss3.IBucket
	// MaxReadRequestUnits and MaxWriteRequestUnits cap what the table, and each of its
	// indexes, takes a second on demand; beyond that requests are throttled, and the work goes
	// on more slowly. Default: the account's quota.
	MaxReadRequestUnits, MaxWriteRequestUnits int

	// TableRemovalPolicy, QueueRemovalPolicy and LogRemovalPolicy are what becomes of
	// them when the stack is deleted. Default: the table is retained (destroyed with
	// WithoutDeletionProtection), queues and logs are destroyed. Of none of them a snapshot can be taken.
	TableRemovalPolicy, QueueRemovalPolicy, LogRemovalPolicy awscdk.RemovalPolicy

	// PermissionsBoundary of every role that is made. Default: none.
	PermissionsBoundary awsiam.IManagedPolicy
}

// FunctionProps is what one function has of its own. The zero value of each field
// is its default.
type FunctionProps struct {
	// MemorySize in MB, from 128 to 10,240; processor comes with it.
	MemorySize int
	// Code instead of the binary in FunctionsDir.
	Code *FunctionCode
}

// FunctionCode is code that lies in S3 or ECR.
type FunctionCode struct {
	// Code is awslambda.Code_FromBucketV2 of a zip with a bootstrap, or
	// awslambda.Code_FromEcrImage.
	Code awslambda.Code
	// Image says that Code is an image.
	Image bool
	// BuildID names the state of the code, for instance by its commit. Required: the
	// instances that a build has blocked go on once another build reports.
	BuildID string
}

// WorkQueueProps is what one work queue and its worker have of their own. The zero
// value of each field is its default.
type WorkQueueProps struct {
	FunctionProps

	// Timeout bounds an activity in the worker, and is the visibility of the queue.
	// Default: WorkTimeout.
	Timeout awscdk.Duration
	// Concurrency caps the invocations of the mapping, 2 to 1,000. Default: WorkConcurrency.
	Concurrency int
	// BatchSize is how many activities an invocation runs side by side, 1 to 10. Default: 10.
	BatchSize int
	// AgeAlarm is from which age of its oldest work item on the queue is in alarm. Default: 30 minutes.
	AgeAlarm awscdk.Duration
	// Exclusive gives the queue what perdure.Exclusive needs: a FIFO queue beside it, with dead letters and alarms of its own, which
	// the worker serves too, by a mapping with the same Concurrency and BatchSize. Default: an activity that is called with an
	// exclusive key fails.
	Exclusive bool
	// Client lets the activities of the queue hold a client of the hub (lambdahandler.NewClient): they may start
	// orchestrations, at once or with a delay, raise events, cancel, read and list. A worker may write to the table and
	// send to the inbox in any case; this adds the timers queue, and the indexes for lists.
	// Default: the worker is not told where timers go, and NewClient returns an error.
	Client bool
}

const (
	longestPrefix             = 30
	leastMemory, mostMemory   = 128, 10_240
	leastMapping, mostMapping = 2, 1000
)

// validateFunctions refuses props of functions and queues that AWS would refuse.
func (p TaskHubProps) validateFunctions() error {
	if len(p.NamePrefix) > longestPrefix && !isToken(p.NamePrefix) {
		return fmt.Errorf("task hub %s: NamePrefix %q has more than %d characters", p.HubName, p.NamePrefix, longestPrefix)
	}
	if slices.Contains([]awscdk.RemovalPolicy{p.TableRemovalPolicy, p.QueueRemovalPolicy, p.LogRemovalPolicy}, awscdk.RemovalPolicy_SNAPSHOT) {
		return fmt.Errorf("task hub %s: CloudFormation makes no snapshots of tables, queues and logs: a removal policy is DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE", p.HubName)
	}
	if !slices.Contains([]string{"", MetricsByHub, MetricsByName}, p.Metrics) {
		return fmt.Errorf("task hub %s: Metrics %q is neither %s nor %s", p.HubName, p.Metrics, MetricsByHub, MetricsByName)
	}
	if !slices.Contains([]string{"", "debug", "info", "warn"}, p.LogLevel) {
		return fmt.Errorf("task hub %s: LogLevel %q is none of debug, info, warn: the alarms rest on lines of level warn", p.HubName, p.LogLevel)
	}
	functions := map[string]FunctionProps{"OrchestratorProps": p.OrchestratorProps, "RenewerProps": p.RenewerProps, "APIProps": p.APIProps}
	for _, name := range slices.Sorted(maps.Keys(p.WorkQueueProps)) {
		if !slices.Contains(p.WorkQueues, name) {
			return fmt.Errorf("task hub %s: WorkQueueProps has %q, which is not in WorkQueues", p.HubName, name)
		}
		if err := p.WorkQueueProps[name].validate(); err != nil {
			return fmt.Errorf("task hub %s: WorkQueueProps of %q: %w", p.HubName, name, err)
		}
	}
	for _, name := range p.WorkQueues {
		functions["WorkQueueProps of "+name] = p.WorkQueueProps[name].FunctionProps
	}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if err := functions[name].validate(p.FunctionsDir); err != nil {
			return fmt.Errorf("task hub %s: %s: %w", p.HubName, name, err)
		}
	}
	return nil
}

func (f FunctionProps) validate(dir string) error {
	switch {
	case f.MemorySize != 0 && (f.MemorySize < leastMemory || f.MemorySize > mostMemory):
		return fmt.Errorf("field MemorySize: %d is not from %d to %d", f.MemorySize, leastMemory, mostMemory)
	case f.Code == nil && dir == "":
		return errors.New("there is neither FunctionsDir nor Code")
	case f.Code != nil && (f.Code.Code == nil || f.Code.BuildID == ""):
		return errors.New("field Code lacks Code or BuildID")
	}
	return nil
}

func (w WorkQueueProps) validate() error {
	switch {
	case w.BatchSize < 0 || w.BatchSize > batchSize:
		return fmt.Errorf("field BatchSize: %d is not from 1 to %d", w.BatchSize, batchSize)
	case w.Concurrency != 0 && (w.Concurrency < leastMapping || w.Concurrency > mostMapping):
		return fmt.Errorf("field Concurrency: %d is not from %d to %d", w.Concurrency, leastMapping, mostMapping)
	}
	return nil
}

// queueProps is what a work queue, and the one for exclusive keys beside it, has of its own, with the hub's defaults.
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

// givenName is a name where the prefix was set; nil leaves it to CloudFormation.
func (h *TaskHub) givenName(part string) *string {
	if h.props.NamePrefix == "" {
		return nil
	}
	return h.name(part)
}

// useKey are the rights that functions, and schedules, need for what the key encrypts.
var useKey = []string{
	"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext",
	"kms:ReEncryptFrom", "kms:ReEncryptTo",
}

// keyPermissions is empty without a key.
func (h *TaskHub) keyPermissions() []awsiam.PolicyStatement {
	if h.props.EncryptionKey == nil {
		return nil
	}
	return []awsiam.PolicyStatement{allow([]string{*h.props.EncryptionKey.KeyArn()}, useKey...)}
}

// admitLogs lets CloudWatch Logs use the key for the groups of this account.
func (h *TaskHub) admitLogs() {
	if h.props.EncryptionKey == nil {
		return
	}
	groups := h.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("logs"), Resource: jsii.String("log-group"), ResourceName: jsii.String("*"), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
	h.props.EncryptionKey.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:    jsii.Strings("kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"),
		Resources:  jsii.Strings("*"), // of this key
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("logs."+*h.stack.Region()+".amazonaws.com"), nil)},
		Conditions: &map[string]any{"ArnLike": map[string]any{"kms:EncryptionContext:aws:logs:arn": groups}},
	}), jsii.Bool(true))
}

// networkPermissions is empty without a VPC. EC2 knows no resources for them.
func (h permissions) networkPermissions() []awsiam.PolicyStatement {
	if h.props.Vpc == nil {
		return nil
	}
	return []awsiam.PolicyStatement{allow([]string{"*"},
		"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
		"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses")}
}
