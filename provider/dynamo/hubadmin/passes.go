package hubadmin

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

var passing = retry.IsErrorRetryables(append(retry.DefaultRetryables,
	retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}))

// IsTransient reports whether err is transient: AWS throttled the request, failed temporarily or did not respond.
func IsTransient(err error) bool { return passing.IsErrorRetryable(err) == aws.TrueTernary }
