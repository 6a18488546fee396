package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/tokens"
)

// addConfig adds the SSM parameter with the configuration of the hub. Clients read the parameter to find the hub by its
// name.
func (h *TaskHub) addConfig() {
	h.ConfigParameter = "/perdure/" + h.props.HubName + "/config"
	awsssm.NewCfnParameter(h.Construct, jsii.String("Config"), &awsssm.CfnParameterProps{
		Name:        jsii.String(h.ConfigParameter),
		Type:        jsii.String("String"),
		Description: jsii.String("Configuration of perdure hub " + h.props.HubName),
		Value: jsii.String(tokens.Object(append([]tokens.Field{
			{"table", tokens.Quote(*h.Table.TableName())},
			{"inboxUrl", tokens.Quote(*h.Inbox.QueueUrl())},
			{"workQueues", queueURLs(h.workQueues())},
			{"timersUrl", tokens.Quote(*h.Timers.QueueUrl())},
			{"deadLetters", queueURLs(h.deadLetters())},
			{timersName, tokens.Quote(h.props.Timers)},
			{"scheduleGroup", tokens.Quote(h.schedule.group)},
			{"scheduleRoleArn", tokens.Quote(*h.schedule.role.RoleArn())},
			{"timersArn", tokens.Quote(*h.Timers.QueueArn())},
			{"timersDeadLettersArn", tokens.Quote(*h.TimersDeadLetters.QueueArn())},
			{"apiUrl", tokens.Quote(h.APIURL)},
			{orchestratorPart, tokens.Quote(h.queryTarget())},
		}, payloadConfig(h)...))),
	})
}

// payloadConfig returns the name of the payload store, or nothing if the hub has none.
func payloadConfig(h *TaskHub) []tokens.Field {
	if h.Payloads == nil {
		return nil
	}
	return []tokens.Field{{"payloadBucket", tokens.Quote(*h.Payloads.BucketName())}}
}
