// Package reference defines the reference stack: one hub whose settings are template parameters. The cdk command and
// the local cloud deploy the stack.
package reference

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

// maxCrashes is less than the receive count at which SQS moves a message to its dead-letter queue.
const maxCrashes = 90

// StackProps configures the settings of the stack that are not template parameters.
type StackProps struct {
	// FunctionsDir is cdk.TaskHubProps.FunctionsDir.
	FunctionsDir string
	// WorkQueues is cdk.TaskHubProps.WorkQueues.
	WorkQueues []string
	// Exclusive is cdk.WorkQueueProps.Exclusive for all work queues.
	Exclusive bool
	// Client is cdk.WorkQueueProps.Client for all work queues.
	Client bool
	// LargePayloads is cdk.TaskHubProps.LargePayloads.
	LargePayloads bool
	// StreamURL is cdk.TaskHubProps.StreamURL. The stack then has the output StreamUrl.
	StreamURL bool
	// Table is the name of an existing table, for example of a restored one, for cdk.PlatformProps.Table.
	Table string
	// Standalone makes a template that needs no CDK to deploy, see NewStandaloneStack. FunctionsDir and Table do not
	// apply to it.
	Standalone bool
}

// NewApp returns a CDK app with the reference stack. outdir is the directory of the cloud assembly. It must be empty if
// the cdk command runs the app.
func NewApp(outdir string, props StackProps) awscdk.App {
	var out *string
	if outdir != "" {
		out = jsii.String(outdir)
	}
	app := awscdk.NewApp(&awscdk.AppProps{
		Outdir:               out,
		AnalyticsReporting:   jsii.Bool(false),
		PerformanceReporting: jsii.Bool(false),
		TreeMetadata:         jsii.Bool(false),
	})
	if props.Standalone {
		NewStandaloneStack(app, "Perdure", props)
		return app
	}
	NewStack(app, "Perdure", props)
	return app
}

// NewStack adds a stack with one hub to scope. Its settings are template parameters, so that tests can deploy
// the same template with short timeouts.
func NewStack(scope constructs.Construct, id string, props StackProps) *cdk.TaskHub {
	stack := emptyStack(scope, id)
	p := parameters{stack}
	own := map[string]cdk.WorkQueueProps{}
	for _, queue := range props.WorkQueues {
		own[queue] = cdk.WorkQueueProps{Exclusive: props.Exclusive, Client: props.Client}
	}
	var table awsdynamodb.ITable
	if props.Table != "" {
		table = awsdynamodb.Table_FromTableName(stack, jsii.String("ExistingTable"), jsii.String(props.Table))
	}
	hub := cdk.NewTaskHub(stack, "TaskHub", cdk.TaskHubProps{
		HubName:        p.text("Hub", "default", "^[a-z][a-z0-9-]{0,19}$", "Name of the hub"),
		FunctionsDir:   props.FunctionsDir,
		WorkQueues:     props.WorkQueues,
		WorkQueueProps: own,
		LargePayloads:  props.LargePayloads,
		Architecture: awslambda.Architecture_Custom(jsii.String(p.choice("Architecture", "arm64", "x86_64")),
			nil),
		InboxTimeout:            p.seconds("InboxTimeout", 30, 1, 900),
		InboxVisibility:         p.seconds("InboxVisibility", 90, 1, 43200),
		WorkTimeout:             p.seconds("WorkTimeout", 900, 1, 900),
		LockTimeout:             p.seconds("LockTimeout", 30, 1, 43200),
		LockRenewalBuffer:       p.seconds("LockRenewalBuffer", 5, 0.1, 3600),
		CancelPollInterval:      p.seconds("CancelPollInterval", 0.25, 0.1, 3600),
		CancellationGracePeriod: p.seconds("CancellationGracePeriod", 10, 0.1, 900),
		MaxCrashes:              p.number("MaxAttempts", 10, 1, maxCrashes, nil),
		SweepRate: p.text("WatchRate", "rate(2 minutes)", `^(rate|cron)\(.+\)$`,
			"Schedule of the sweeper"),
		Timers:        p.choice("Timers", cdk.TimersSchedules, cdk.TimersRequeue),
		MaxTimerDelay: p.seconds("TimerLongestDelay", 900, 1, 900),
		ScheduleLead:  p.seconds("ScheduleLead", 120, 0, 899),
		APIKind:       p.choice("ApiKind", cdk.APIKindHTTP, cdk.APIKindFunctionURL),
		StreamURL:     props.StreamURL,
		PlatformProps: cdk.PlatformProps{Table: table},
	})
	addOutputs(stack, hub)
	return hub
}

// emptyStack returns a stack whose template works in any account and region. It has no bootstrap rule, because a local
// cloud is not bootstrapped.
func emptyStack(scope constructs.Construct, id string) awscdk.Stack {
	return awscdk.NewStack(scope, jsii.String(id), &awscdk.StackProps{
		Description: jsii.String("A perdure task hub"),
		Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{
			GenerateBootstrapVersionRule: jsii.Bool(false),
		}),
	})
}

func addOutputs(stack awscdk.Stack, hub *cdk.TaskHub) {
	output(stack, "ApiUrl", hub.APIURL)
	if hub.StreamURL != "" {
		output(stack, "StreamUrl", hub.StreamURL)
	}
	output(stack, "ConfigParameter", hub.ConfigParameter)
	output(stack, "TableName", *hub.Table.TableName())
}

func output(stack awscdk.Stack, id, value string) {
	awscdk.NewCfnOutput(stack, jsii.String(id), &awscdk.CfnOutputProps{Value: jsii.String(value)})
}

// parameters adds template parameters to a stack and returns their tokens.
type parameters struct{ stack awscdk.Stack }

func (p parameters) seconds(id string, value, least, most float64) awscdk.Duration {
	return awscdk.Duration_Seconds(p.number(id, value, least, most, jsii.String("Seconds")))
}

func (p parameters) number(id string, value, least, most float64, description *string) *float64 {
	parameter := awscdk.NewCfnParameter(p.stack, jsii.String(id), &awscdk.CfnParameterProps{
		Type: jsii.String("Number"), Default: value, MinValue: jsii.Number(least), MaxValue: jsii.Number(most),
		Description: description,
	})
	return parameter.ValueAsNumber()
}

// choice adds a parameter with allowed values. The first value is the default.
func (p parameters) choice(id string, values ...string) string {
	parameter := awscdk.NewCfnParameter(p.stack, jsii.String(id), &awscdk.CfnParameterProps{
		Default:       values[0],
		AllowedValues: jsii.Strings(values...),
	})
	return *parameter.ValueAsString()
}

func (p parameters) text(id, value, pattern, description string) string {
	parameter := awscdk.NewCfnParameter(p.stack, jsii.String(id), &awscdk.CfnParameterProps{
		Default:        value,
		AllowedPattern: jsii.String(pattern),
		Description:    jsii.String(description),
	})
	return *parameter.ValueAsString()
}
