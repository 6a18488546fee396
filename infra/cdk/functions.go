package cdk

import (
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/jsii-runtime-go"
)

// apiTimeoutSeconds stays under the 30 s after which API Gateway gives up.
const apiTimeoutSeconds = 29

// functionSpec is what one function has of its own.
type functionSpec struct {
	id, part    string // construct id, and the name's last part
	binary      string // the folder under FunctionsDir
	memory      float64
	timeout     awscdk.Duration
	concurrency int
	environment environment
	permissions []awsiam.PolicyStatement
}

func (h *TaskHub) addFunctions() {
	h.Orchestrator = h.addFunction(functionSpec{
		id: "Orchestrator", part: "orchestrator", binary: "orchestrator", memory: 512,
		timeout:     h.props.InboxTimeout,
		environment: h.orchestratorEnvironment(), permissions: h.orchestratorPermissions(),
	})
	for i := range h.WorkQueues {
		work := &h.WorkQueues[i]
		work.Worker = h.addFunction(functionSpec{
			id: "Worker-" + work.Name, part: "worker-" + work.Name, binary: "worker", memory: 256,
			timeout:     h.props.WorkTimeout,
			environment: h.workerEnvironment(work.Name), permissions: h.workerPermissions(*work),
		})
	}
	h.Renewer = h.addFunction(functionSpec{
		id: "Renewer", part: "renewer", binary: "renewer", memory: 256,
		timeout:     awscdk.Duration_Seconds(jsii.Number(renewerTimeoutSeconds)),
		environment: h.renewerEnvironment(), permissions: h.renewerPermissions(),
	})
	h.API = h.addFunction(functionSpec{
		id: "Api", part: "api", binary: "api", memory: 256,
		timeout:     awscdk.Duration_Seconds(jsii.Number(apiTimeoutSeconds)),
		concurrency: h.props.APIConcurrency,
		environment: h.apiEnvironment(), permissions: h.apiPermissions(),
	})
}

func (h *TaskHub) addFunction(spec functionSpec) awslambda.Function {
	asset := awss3assets.NewAsset(h.Construct, jsii.String(spec.id+"Binary"), &awss3assets.AssetProps{
		Path: jsii.String(filepath.Join(h.props.FunctionsDir, spec.binary)),
	})
	// The warning is about keys whose content may change; this one is its content's hash.
	awscdk.Annotations_Of(asset).AcknowledgeWarning(
		jsii.String("@aws-cdk/aws-lambda:codeFromBucketObjectVersionNotSpecified"), nil)
	logs := awslogs.NewLogGroup(h.Construct, jsii.String(spec.id+"Logs"), &awslogs.LogGroupProps{
		LogGroupName:  jsii.String("/aws/lambda/" + *h.name(spec.part)),
		Retention:     h.props.LogRetention,
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	return awslambda.NewFunction(h.Construct, jsii.String(spec.id), &awslambda.FunctionProps{
		FunctionName:                 h.name(spec.part),
		Code:                         awslambda.Code_FromBucketV2(asset.Bucket(), asset.S3ObjectKey(), nil),
		Handler:                      jsii.String("bootstrap"),
		Runtime:                      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture:                 h.props.Architecture,
		MemorySize:                   jsii.Number(spec.memory),
		Timeout:                      spec.timeout,
		ReservedConcurrentExecutions: optionalNumber(spec.concurrency),
		Environment:                  spec.environment.with("PERDURE_BUILD_ID", *asset.AssetHash()),
		Role:                         h.functionRole(spec, logs),
		// A chain of turns is a loop between Lambda and SQS; unless it is allowed,
		// Lambda drops it after about 16 rounds (R19).
		RecursiveLoop:    awslambda.RecursiveLoop_ALLOW,
		LogGroup:         logs,
		LoggingFormat:    awslambda.LoggingFormat_JSON,
		SystemLogLevelV2: awslambda.SystemLogLevel_WARN, // START and REPORT lines cost more than the turns
	})
}

// functionRole is inline, so that a role is there whole or not at all when the
// first mapping is created.
func (h *TaskHub) functionRole(spec functionSpec, logs awslogs.LogGroup) awsiam.Role {
	writeLogs := allow([]string{*logs.LogGroupArn()}, "logs:CreateLogStream", "logs:PutLogEvents")
	return awsiam.NewRole(h.Construct, jsii.String(spec.id+"Role"), &awsiam.RoleProps{
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		InlinePolicies: &map[string]awsiam.PolicyDocument{
			"hub": policyDocument(append(spec.permissions, writeLogs)...),
		},
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
