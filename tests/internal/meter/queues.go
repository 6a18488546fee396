package meter

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure/internal/pricing"
)

// The types of queues, which have different prices.
const (
	fifo     = "fifo"
	standard = "standard"
)

// requestBytes is the size that SQS bills as one request, 64 KB.
const requestBytes = 64 << 10

// Requests returns the number of requests that SQS bills for a call with this many bytes of messages.
func Requests(bytes int) float64 {
	return float64(max(1, (bytes+requestBytes-1)/requestBytes))
}

// QueueOf returns the type of a queue, "fifo" or "standard", and the billed item of its requests.
func QueueOf(url string) (kind string, billed pricing.Item) {
	if strings.HasSuffix(url, ".fifo") {
		return fifo, pricing.FIFORequests
	}
	return standard, pricing.StandardRequests
}

func queueCall(operation string, url *string, entries, bytes int, owners []owner) observation {
	kind, billed := QueueOf(aws.ToString(url))
	return observation{
		kind:   Kind{Call: "SQS." + operation, Queue: kind},
		count:  Count{Entries: float64(entries), Usage: pricing.Usage{billed: Requests(bytes)}},
		owners: owners,
	}
}

// messageBytes returns the billed size of a message: its body and its attributes.
func messageBytes(body *string, attributes map[string]sqstypes.MessageAttributeValue) int {
	n := len(aws.ToString(body))
	for name, a := range attributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}
