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

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

// apiTimeoutSeconds is less than the timeout of API Gateway, 30 s.
const apiTimeoutSeconds = 29

// orchestratorPart is the name of the orchestrator in resource names, directories and the configuration of the hub.
const orchestratorPart = "orchestrator"

// functionSpec configures a function.
type functionSpec struct {
	id, part    string // construct ID, and suffix of the function name
	binary      string // the subdirectory of FunctionsDir
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
		id: "Orchestrator", part: orchestratorPart, binary: orchestratorPart, memory: 512,
		own:         h.props.OrchestratorProps,
		timeout:     h.props.InboxTimeout,
		environment: env.orchestratorEnvironment(), permissions: may.orchestratorPermissions(),
	})

	for i := range h.WorkQueues {
		work := &h.WorkQueues[i]
		own := h.queueProps(work.Name)
		work.Worker = functions.add(functionSpec{
			id: "Worker-" + work.Name, part: "worker-" + work.Name, binary: "worker", memory: 256,
			own:         own.FunctionProps,
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

// functionMaker creates the functions of a hub.
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

func (h functionMaker) commonProps() *awslambda.FunctionProps {
	props := &awslambda.FunctionProps{
		Handler:      jsii.String("bootstrap"),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: h.props.Architecture,
		// Turns form a loop between Lambda and SQS. Lambda drops a loop after about 16 invocations unless it is
		// allowed.
		RecursiveLoop:    awslambda.RecursiveLoop_ALLOW,
		LoggingFormat:    awslambda.LoggingFormat_JSON,
		SystemLogLevelV2: awslambda.SystemLogLevel_WARN, // START and REPORT lines would cost more than the turns
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
		props.ApplicationLogLevelV2 = lambdaLogLevel(h.props.LogLevel)
	}
	if h.props.Canary != nil {
		// A replaced version is retained for its running activities and for a rollback. The version of a rolled back
		// deployment is deleted, because Lambda does not publish a second version of the same code.
		props.CurrentVersionOptions = &awslambda.VersionOptions{
			RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
		}
	}
	return props
}

// lambdaLogLevel returns the level below which Lambda drops lines of a function with a log level. A function drops its
// own lines, so Lambda only has to keep the others. Lambda assigns INFO to lines without a level, such as stack traces,
// and to lines without a time that it recognizes. A level above INFO could also drop the metrics of alarms.
func lambdaLogLevel(level string) awslambda.ApplicationLogLevel {
	if level == "debug" {
		return awslambda.ApplicationLogLevel_DEBUG
	}
	return awslambda.ApplicationLogLevel_INFO
}

// binary returns the code of a function in FunctionsDir with its hash as build ID.
func (h functionMaker) binary(spec functionSpec) *FunctionCode {
	asset := awss3assets.NewAsset(h.Construct, jsii.String(spec.id+"Binary"), &awss3assets.AssetProps{
		Path: jsii.String(filepath.Join(h.props.FunctionsDir, spec.binary)),
	})
	// The warning concerns keys with changing content. This key is the hash of its content.
	awscdk.Annotations_Of(asset).AcknowledgeWarning(
		jsii.String("@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified"), nil)
	return &FunctionCode{
		Code: awslambda.Code_FromBucketV2(asset.Bucket(), asset.S3ObjectKey(), nil), BuildID: *asset.AssetHash(),
	}
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

// functionRole creates a role with an inline policy, so that the role is complete when the first mapping is created.
func (h functionMaker) functionRole(spec functionSpec, logs awslogs.LogGroup) awsiam.Role {
	writeLogs := policy.Allow([]string{*logs.LogGroupArn()}, "logs:CreateLogStream", "logs:PutLogEvents")
	return awsiam.NewRole(h.Construct, jsii.String(spec.id+"Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			"hub": policy.Document(slices.Concat(spec.permissions, []awsiam.PolicyStatement{writeLogs},
				h.keyPermissions(), permissions(h).networkPermissions())...),
		},
		PermissionsBoundary: h.props.PermissionsBoundary,
	})
}

// functions returns all functions in the order of their creation.
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
