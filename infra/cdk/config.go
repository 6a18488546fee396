package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"
)

// addConfig adds the SSM parameter with the configuration of the hub. Clients read the parameter to find the hub by its
// name.
func (h *TaskHub) addConfig() {
	h.ConfigParameter = "/perdure/" + h.props.HubName + "/config"
	awsssm.NewCfnParameter(h.Construct, jsii.String("Config"), &awsssm.CfnParameterProps{
		Name:        jsii.String(h.ConfigParameter),
		Type:        jsii.String("String"),
		Description: jsii.String("Configuration of perdure hub " + h.props.HubName),
		Value: jsii.String(jsonObject(append([]jsonField{
			{"table", quoted(*h.Table.TableName())},
			{"inboxUrl", quoted(*h.Inbox.QueueUrl())},
			{"workQueues", queueURLs(h.workQueues())},
			{"timersUrl", quoted(*h.Timers.QueueUrl())},
			{"deadLetters", queueURLs(h.deadLetters())},
			{"timers", quoted(h.props.Timers)},
			{"scheduleGroup", quoted(h.schedule.group)},
			{"scheduleRoleArn", quoted(*h.schedule.role.RoleArn())},
			{"timersArn", quoted(*h.Timers.QueueArn())},
			{"timersDeadLettersArn", quoted(*h.TimersDeadLetters.QueueArn())},
			{"apiUrl", quoted(h.APIURL)},
			{orchestratorPart, quoted(h.queryTarget())},
		}, payloadConfig(h)...))),
	})
}

// payloadConfig returns the name of the payload store, or nothing if the hub has none.
func payloadConfig(h *TaskHub) []jsonField {
	if h.Payloads == nil {
		return nil
	}
	return []jsonField{{"payloadBucket", quoted(*h.Payloads.BucketName())}}
}
