package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsssm"
	"github.com/aws/jsii-runtime-go"
)

// addConfig writes the one parameter a hub is found by: a caller needs a hub's
// name and credentials, and nothing else.
func (h *TaskHub) addConfig() {
	h.ConfigParameter = "/perdure/" + h.props.HubName + "/config"
	awsssm.NewCfnParameter(h.Construct, jsii.String("Config"), &awsssm.CfnParameterProps{
		Name:        jsii.String(h.ConfigParameter),
		Type:        jsii.String("String"),
		Description: jsii.String("Where perdure hub " + h.props.HubName + " lies"),
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
			{orchestratorPart, quoted(h.asked())},
		}, payloadConfig(h)...))),
	})
}

// payloadConfig says where large payloads lie; nothing where the hub has no bucket.
func payloadConfig(h *TaskHub) []jsonField {
	if h.Payloads == nil {
		return nil
	}
	return []jsonField{{"payloadBucket", quoted(*h.Payloads.BucketName())}}
}
