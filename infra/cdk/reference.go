package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// ReferenceStackProps is what the reference stack cannot take as a parameter.
type ReferenceStackProps struct {
	// FunctionsDir as in TaskHubProps.
	FunctionsDir string
	// WorkQueues as in TaskHubProps.
	WorkQueues []string
	// Exclusive is as in WorkQueueProps, for all work queues.
	Exclusive bool
	// Client is as in WorkQueueProps, for all work queues.
	Client bool
	// LargePayloads is as in TaskHubProps.
	LargePayloads bool
}

// NewApp is the CDK app of the reference stack. outdir is where the cloud
// assembly is written; empty leaves it to the cdk command, which would not find
// it elsewhere.
func NewApp(outdir string, props ReferenceStackProps) awscdk.App {
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
	NewReferenceStack(app, "Perdure", props)
	return app
}

// NewReferenceStack is one hub whose settings are the template's parameters, so
// that tests deploy the very template with short times.
func NewReferenceStack(scope constructs.Construct, id string, props ReferenceStackProps) *TaskHub {
	stack := awscdk.NewStack(scope, jsii.String(id), &awscdk.StackProps{
		Description: jsii.String("A perdure task hub"),
		// Agnostic of account and region, and without the rule that asks for a
		// bootstrapped account, which a local cloud is not.
		Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{
			GenerateBootstrapVersionRule: jsii.Bool(false),
		}),
	})
	p := parameters{stack}
	own := map[string]WorkQueueProps{}
	for _, queue := range props.WorkQueues {
		own[queue] = WorkQueueProps{Exclusive: props.Exclusive, Client: props.Client}
	}
	hub := NewTaskHub(stack, "TaskHub", TaskHubProps{
		HubName:                 p.text("Hub", "default", "^[a-z][a-z0-9-]{0,19}$", "The name the hub is found by"),
		FunctionsDir:            props.FunctionsDir,
		WorkQueues:              props.WorkQueues,
		WorkQueueProps:          own,
		LargePayloads:           props.LargePayloads,
		Architecture:            awslambda.Architecture_Custom(jsii.String(p.choice("Architecture", "arm64", "x86_64")), nil),
		InboxTimeout:            p.seconds("InboxTimeout", 30, 1, 900),
		InboxVisibility:         p.seconds("InboxVisibility", 90, 1, 43200),
		WorkTimeout:             p.seconds("WorkTimeout", 900, 1, 900),
		LockTimeout:             p.seconds("LockTimeout", 30, 1, 43200),
		LockRenewalBuffer:       p.seconds("LockRenewalBuffer", 5, 0.1, 3600),
		CancelPollInterval:      p.seconds("CancelPollInterval", 0.25, 0.1, 3600),
		CancellationGracePeriod: p.seconds("CancellationGracePeriod", 10, 0.1, 900),
		MaxAttempts:             p.count("MaxAttempts", maxAttempts, 1, maxReceiveCount-10), // beside three deliveries before
		WatchRate:               p.text("WatchRate", "rate(2 minutes)", `^(rate|cron)\(.+\)$`, "How often the renewer keeps watch"),
		Timers:                  p.choice("Timers", TimersSchedules, TimersHops),
		TimerLongestDelay:       p.seconds("TimerLongestDelay", 900, 1, 900),
		ScheduleLead:            p.seconds("ScheduleLead", 120, 0, 899),
		APIKind:                 p.choice("ApiKind", APIKindHTTP, APIKindFunctionURL),
	})
	output(stack, "ApiUrl", hub.APIURL)
	output(stack, "ConfigParameter", hub.ConfigParameter)
	output(stack, "TableName", *hub.Table.TableName())
	return hub
}

func output(stack awscdk.Stack, id, value string) {
	awscdk.NewCfnOutput(stack, jsii.String(id), &awscdk.CfnOutputProps{Value: jsii.String(value)})
}

// parameters adds template parameters to a stack and gives the tokens for them.
type parameters struct{ stack awscdk.Stack }

func (p parameters) seconds(id string, value, least, most float64) awscdk.Duration {
	parameter := awscdk.NewCfnParameter(p.stack, jsii.String(id), &awscdk.CfnParameterProps{
		Type:        jsii.String("Number"),
		Default:     value,
		MinValue:    jsii.Number(least),
		MaxValue:    jsii.Number(most),
		Description: jsii.String("Seconds"),
	})
	return awscdk.Duration_Seconds(parameter.ValueAsNumber())
}

func (p parameters) count(id string, value, least, most float64) *float64 {
	parameter := awscdk.NewCfnParameter(p.stack, jsii.String(id), &awscdk.CfnParameterProps{
		Type:     jsii.String("Number"),
		Default:  value,
		MinValue: jsii.Number(least),
		MaxValue: jsii.Number(most),
	})
	return parameter.ValueAsNumber()
}

// choice takes the first of the values as its default.
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
