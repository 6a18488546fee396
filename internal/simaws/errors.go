package simaws

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// invalidParameterValue is the error code of SQS for an invalid request.
const invalidParameterValue = "InvalidParameterValue"

// item is a DynamoDB item. The simulation copies the map on input and output, and assumes that the values are
// immutable.
type item = map[string]ddbtypes.AttributeValue

// Codes of the reasons in a cancelled transaction.
const (
	reasonNone            = "None"
	reasonConditionFailed = "ConditionalCheckFailed"
	reasonConflict        = "TransactionConflict"
	reasonValidation      = "ValidationError"
)

// Throttled returns the error of a request that exceeds the table's capacity. An [Interceptor] can return it.
func Throttled() error {
	return &ddbtypes.ProvisionedThroughputExceededException{
		Message: aws.String("The level of configured provisioned throughput for the table was exceeded. " +
			"Consider increasing your provisioning level with the UpdateTable API."),
	}
}

// TransactionConflict returns the error of a transaction of n items that conflicts with another transaction. at
// contains the indexes of the conflicting items; if it is empty, all items conflict. An [Interceptor] can return it
// before it calls next.
func TransactionConflict(n int, at ...int) error {
	reasons := make([]ddbtypes.CancellationReason, n)
	for i := range reasons {
		reasons[i].Code = aws.String(reasonNone)
		if len(at) == 0 {
			reasons[i] = conflictReason()
		}
	}

	for _, i := range at {
		reasons[i] = conflictReason()
	}

	return cancelled(reasons)
}

// WriteConflict returns the error of a PutItem, UpdateItem or DeleteItem that conflicts with a transaction on its item.
// An [Interceptor] can return it before it calls next.
func WriteConflict() error {
	return &ddbtypes.TransactionConflictException{
		Message: aws.String("Transaction is ongoing for the item"),
	}
}

func conflictReason() ddbtypes.CancellationReason {
	return ddbtypes.CancellationReason{
		Code: aws.String(reasonConflict), Message: aws.String("Transaction is ongoing for the item"),
	}
}

// cancelled returns the error of a transaction, with a reason for each item.
func cancelled(reasons []ddbtypes.CancellationReason) error {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = *r.Code
	}

	return &ddbtypes.TransactionCanceledException{
		Message: aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

// invalid returns DynamoDB's error for a request that is invalid regardless of the state of the table.
func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{
		Code: "ValidationException", Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient,
	}
}

// conditionFailed returns the error of a write outside a transaction. old is nil unless the caller requested the item.
func conditionFailed(old item) error {
	return &ddbtypes.ConditionalCheckFailedException{
		Message: aws.String("The conditional request failed"), Item: old,
	}
}

// unsupported returns the error for a feature that the simulation lacks. It is not an error of AWS.
func unsupported(what string) error {
	return fmt.Errorf("simaws: %s is not simulated", what)
}

// sqsCode returns the code of SQS for an error that has a type in the SDK.
func sqsCode(name string) *string { return aws.String("AWS.SimpleQueueService." + name) }

// invalidParameter returns the error of SQS for a value that is out of range.
func invalidParameter(value, parameter, reason string) error {
	const shown = 100
	if len(value) > shown {
		value = value[:shown]
	}

	return &smithy.GenericAPIError{
		Code: invalidParameterValue, Fault: smithy.FaultClient,
		Message: fmt.Sprintf("Value %s for parameter %s is invalid. Reason: %s", value, parameter, reason),
	}
}

// missingParameter returns the error of SQS for a missing required parameter.
func missingParameter(parameter string) error {
	return &smithy.GenericAPIError{
		Code: "MissingParameter", Fault: smithy.FaultClient,
		Message: "The request must contain the parameter " + parameter + ".",
	}
}

func noSuchQueue() error {
	return &sqstypes.QueueDoesNotExist{
		Message: aws.String("The specified queue does not exist."), ErrorCodeOverride: sqsCode("NonExistentQueue"),
	}
}

func notInFlight(receipt string) error {
	return &sqstypes.MessageNotInflight{
		Message: aws.String(fmt.Sprintf("Value %s for parameter ReceiptHandle is invalid. "+
			"Reason: Message does not exist or is not available for visibility timeout change.", receipt)),
		ErrorCodeOverride: sqsCode("MessageNotInflight"),
	}
}

func badReceipt(receipt string) error {
	return &sqstypes.ReceiptHandleIsInvalid{
		Message: aws.String(fmt.Sprintf("The input receipt handle %q is not a valid receipt handle.", receipt)),
	}
}
