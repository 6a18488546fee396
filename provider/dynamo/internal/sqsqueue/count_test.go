package sqsqueue

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo/internal/sqsfake"
)

// oneMissing has all queues but one.
type oneMissing struct {
	sqsfake.Queues

	missing string
}

func (q *oneMissing) GetQueueAttributes(
	_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	if *in.QueueUrl == q.missing {
		return nil, &types.QueueDoesNotExist{}
	}
	attributes := map[string]string{}
	for _, name := range in.AttributeNames {
		attributes[string(name)] = "1"
	}
	return &sqs.GetQueueAttributesOutput{Attributes: attributes}, nil
}

// SQS does not say which queue does not exist, for example after half of a deployment.
func TestCountWorkItems_queueDoesNotExist_errorNamesQueue(t *testing.T) {
	t.Parallel()
	q := New(&oneMissing{missing: "https://sqs/1/b"}, Config{
		WorkQueues: map[string]string{"a": "https://sqs/1/a", "b": "https://sqs/1/b", "c": "https://sqs/1/c"},
	}, nil)
	_, err := q.CountWorkItems(t.Context())
	failed, ok := errors.AsType[*provider.Error](err)
	if !ok || failed.Op != "SQS.GetQueueAttributes" || !strings.Contains(err.Error(), "queue https://sqs/1/b: ") {
		t.Errorf("got error %v, want one that names the queue", err)
	}
}
