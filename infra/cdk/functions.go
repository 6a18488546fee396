package cdk

import (
	"path/filepath"
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/jsii-runtime-go"
)

// apiTimeoutSeconds stays under the 30 s after which API Gateway gives up.
const apiTimeoutSeconds = 29

// orchestratorPart is what the orchestrator is called in names, folders and the hub's configuration.
const orchestratorPart = "orchestrator"

// functionSpec is what one function has of its own.
type functionSpec struct {
	id, part    string // construct id, and the name's last part
	binary      string // the folder under FunctionsDir
	memory      float64
	own         FunctionProps
	timeout     awscdk.Duration
	concurrency int
	environment environment
	permissions []awsiam.PolicyStatement
}

func (h *TaskHub) addFunctions() {
	functions, env, may := functionMaker{h}, environments{h}, permissions{h}

	h.Orchestrator = functions.add(functionSpec{
		id: "Orchestrator", part: orchestratorPart, binary: orchestratorPart, memory: 512, own: h.props.OrchestratorProps,
		timeout:     h.props.InboxTimeout,
		environment: env.orchestratorEnvironment(), permissions: may.orchestratorPermissions(),
	})

	for i := range h.WorkQueues {
		work := &h.WorkQueues[i]
		own := h.queueProps(work.Name)
		work.Worker = functions.add(functionSpec{
			id: "Worker-" + work.Name, part: "worker-" + work.Name, binary: "worker", memory: 256, own: own.FunctionProps,
			timeout:     own.Timeout,
			environment: env.workerEnvironment(work.Name), permissions: may.workerPermissions(*work),
		})
	}

	h.Renewer = functions.add(functionSpec{
		id: "Renewer", part: "renewer", binary: "renewer", memory: 256, own: h.props.RenewerProps,
		timeout:     awscdk.Duration_Seconds(jsii.Number(renewerTimeoutSeconds)),
		environment: env.renewerEnvironment(), permissions: may.renewerPermissions(),
	})

	h.API = functions.add(functionSpec{
		id: "Api", part: "api", binary: "api", memory: 256, own: h.props.APIProps,
		timeout:     awscdk.Duration_Seconds(jsii.Number(apiTimeoutSeconds)),
		concurrency: h.props.APIConcurrency,
		environment: env.apiEnvironment(), permissions: may.apiPermissions(),
	})
}

// functionMaker makes the functions of a hub.
type functionMaker struct{ *TaskHub }

func (h functionMaker) add(spec functionSpec) awslambda.Function {
	logs := h.addLogs(spec)
	code := spec.own.Code
	if code == nil {
		code = h.binary(spec)
	}
	h.builds[spec.id] = code.BuildID

	props := h.commonProps()
	props.FunctionName = h.name(spec.part)
	props.MemorySize = jsii.Number(spec.memory)
	if spec.own.MemorySize > 0 {
		props.MemorySize = jsii.Number(spec.own.MemorySize)
	}
	props.Timeout = spec.timeout
	props.ReservedConcurrentExecutions = optionalNumber(spec.concurrency)
	props.Environment = spec.environment.with("PERDURE_BUILD_ID", code.BuildID)
	props.Role = h.functionRole(spec, logs)
	props.LogGroup = logs

	props.Code = code.Code
	if code.Image {
		props.Handler, props.Runtime = awslambda.Handler_FROM_IMAGE(), awslambda.Runtime_FROM_IMAGE()
	}
	return awslambda.NewFunction(h.Construct, jsii.String(spec.id), props)
}

// commonProps are what all functions have.
func (h functionMaker) commonProps() *awslambda.FunctionProps {
	props := &awslambda.FunctionProps{
		Handler:      jsii.String("bootstrap"),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: h.props.Architecture,
		// A chain of turns is a loop between Lambda and SQS; unless it is allowed,
		// Lambda drops it after about 16 rounds (R19).
		RecursiveLoop:    awslambda.RecursiveLoop_ALLOW,
		LoggingFormat:    awslambda.LoggingFormat_JSON,
		SystemLogLevelV2: awslambda.SystemLogLevel_WARN, // START and REPORT lines cost more than the turns
		Vpc:              h.props.Vpc,
		VpcSubnets:       h.props.VpcSubnets,
	}
	if len(h.props.SecurityGroups) > 0 {
		props.SecurityGroups = &h.props.SecurityGroups
	}
	if h.props.EncryptionKey != nil {
		props.EnvironmentEncryption = h.props.EncryptionKey
	}
	if h.props.LogLevel != "" {
		// Lambda leaves out what is below its own level, too.
		props.ApplicationLogLevelV2 = map[string]awslambda.ApplicationLogLevel{
			"debug": awslambda.ApplicationLogLevel_DEBUG, "info": awslambda.ApplicationLogLevel_INFO, "warn": awslambda.ApplicationLogLevel_WARN,
		}[h.props.LogLevel]
	}
	if h.props.Canary != nil {
		// What runs in an old version goes on, and an alias can be pointed back at it.
		// A version that is replaced stays, for its last activities; one whose deployment was turned back goes, or the same build could not be deployed again: Lambda
		// publishes no second version of what has not changed.
		props.CurrentVersionOptions = &awslambda.VersionOptions{RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE}
	}
	return props
}

// binary is the code of a function in FunctionsDir, and its content's hash.
func (h functionMaker) binary(spec functionSpec) *FunctionCode {
	asset := awss3assets.NewAsset(h.Construct, jsii.String(spec.id+"Binary"), &awss3assets.AssetProps{
		Path: jsii.String(filepath.Join(h.props.FunctionsDir, spec.binary)),
	})
	// The warning is about keys whose content may change; this one is its content's hash.
	awscdk.Annotations_Of(asset).AcknowledgeWarning(
		jsii.String("@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified"), nil)
	return &FunctionCode{Code: awslambda.Code_FromBucketV2(asset.Bucket(), asset.S3ObjectKey(), nil), BuildID: *asset.AssetHash()}
}

func (h functionMaker) addLogs(spec functionSpec) awslogs.LogGroup {
	props := &awslogs.LogGroupProps{
		LogGroupName:  jsii.String("/aws/lambda/" + *h.name(spec.part)),
		Retention:     h.props.LogRetention,
		RemovalPolicy: h.props.LogRemovalPolicy,
	}
	if h.props.EncryptionKey != nil {
		props.EncryptionKey = h.props.EncryptionKey
	}
	return awslogs.NewLogGroup(h.Construct, jsii.String(spec.id+"Logs"), props)
}

// functionRole is inline, so that a role is there whole or not at all when the
// first mapping is created.
func (h functionMaker) functionRole(spec functionSpec, logs awslogs.LogGroup) awsiam.Role {
	writeLogs := allow([]string{*logs.LogGroupArn()}, "logs:CreateLogStream", "logs:PutLogEvents")
	return awsiam.NewRole(h.Construct, jsii.String(spec.id+"Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			"hub": policyDocument(slices.Concat(spec.permissions, []awsiam.PolicyStatement{writeLogs}, h.keyPermissions(), permissions(h).networkPermissions())...),
		},
		PermissionsBoundary: h.props.PermissionsBoundary,
	})
}

// functions lists every function, in the order they are made.
func (h *TaskHub) functions() []awslambda.Function {
	all := []awslambda.Function{h.Orchestrator}
	for _, work := range h.WorkQueues {
		all = append(all, work.Worker)
	}
	return append(all, h.Renewer, h.API)
}

func optionalNumber(n int) *float64 {
	if n == 0 {
		return nil
	}
	return jsii.Number(n)
}
