package cdk

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/internal/policy"
)

// messagePayloadDays is the retention of payloads of messages in days. A queue and its dead-letter queue retain a
// message for 14 days each, and a redrive starts this time again.
const messagePayloadDays = 60

// addPayloads sets the payload store. It creates a bucket if LargePayloads is set without PayloadBucket.
func addPayloads(h *TaskHub) {
	if h.props.PayloadBucket != nil || !h.props.LargePayloads {
		h.Payloads = h.props.PayloadBucket
		return
	}
	props := &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		EnforceSSL:        jsii.Bool(true),
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		RemovalPolicy:     h.props.TableRemovalPolicy, // histories refer to its objects
		LifecycleRules: &[]*awss3.LifecycleRule{
			{
				Id: jsii.String("messages"), Prefix: jsii.String(h.props.HubName + "/m/"),
				Expiration: awscdk.Duration_Days(jsii.Number(messagePayloadDays)),
			},
		},
	}
	if h.props.EncryptionKey != nil {
		props.Encryption, props.EncryptionKey, props.BucketKeyEnabled = awss3.BucketEncryption_KMS,
			h.props.EncryptionKey, jsii.Bool(true)
	}
	h.Payloads = awss3.NewBucket(h.Construct, jsii.String("Payloads"), props)
}

// payloadPermissions returns permissions for payloads of the hub, or nothing without a payload store.
func payloadPermissions(h *TaskHub, actions ...string) []awsiam.PolicyStatement {
	if h.Payloads == nil {
		return nil
	}
	return []awsiam.PolicyStatement{
		policy.Allow([]string{*h.Payloads.BucketArn()}, policy.ListPayloads),
		policy.Allow([]string{*h.Payloads.ArnForObjects(jsii.String(h.props.HubName + "/*"))}, actions...),
	}
}

// payloadEnvironment returns the variables of all functions for the payload store.
func (h environments) payloadEnvironment() environment {
	if h.Payloads == nil {
		return nil
	}
	return environment{"PERDURE_PAYLOAD_BUCKET": *h.Payloads.BucketName()}
}
