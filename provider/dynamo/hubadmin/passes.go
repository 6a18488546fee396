package hubadmin

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

var passing = retry.IsErrorRetryables(append(retry.DefaultRetryables, retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}))

// MayYetSucceed reports whether a call of this package has failed in a way that passes: AWS has throttled it, or has not answered.
func MayYetSucceed(err error) bool { return passing.IsErrorRetryable(err) == aws.TrueTernary }
