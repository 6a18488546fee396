package awscheck_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/tests/awscheck"
	"github.com/perdure/perdure/tests/localcloud"
)

// The emulator accepts a delay of more than 15 minutes.
func TestStart_emulatorAcceptsInvalidRequest_stopReportsIt(t *testing.T) {
	c, err := awscheck.Start(t.Context(), "cloud", "--enforce-iam")
	if err != nil {
		t.Fatal(err)
	}
	client := sqs.NewFromConfig(localcloud.Config(c.Env["AWS_ENDPOINT_URL"]))
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err == nil {
		_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: queue.QueueUrl, MessageBody: aws.String("b"), DelaySeconds: 901,
		})
	}
	stopped := c.Stop()
	want := "AWS would reject 1 kinds of requests:\nsqs:SendMessage of root, 1 times: DelaySeconds: 901 is not from 0 to 900"
	if err != nil || stopped == nil || !strings.Contains(stopped.Error(), want) {
		t.Errorf("got error %v, after stop %v", err, stopped)
	}
}

func TestStart_invalidCommand_isAnError(t *testing.T) {
	if c, err := awscheck.Start(t.Context(), "no-such-command"); err == nil {
		_ = c.Stop()
		t.Error("got no error")
	}
}
