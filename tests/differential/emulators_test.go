package differential_test

import (
	"math/big"
	"regexp"

	"github.com/perdure/perdure/tests/dynamodblocal"
	"github.com/perdure/perdure/tests/localcloud"
)

// The emulators that simaws is compared with.
const (
	ministack     = "ministack"
	dynamoDBLocal = "dynamodb-local"
)

// emulator describes an emulator.
type emulator struct {
	name     string
	variable string                     // the environment variable with its endpoint
	main     func(tests func() int) int // runs tests while the emulator runs
	blur     func(answer string) string // removes known errors of the emulator from a response
}

// genuineCloud is the emulator of this run.
var genuineCloud emulator

func emulators() []emulator {
	return []emulator{
		{ministack, localcloud.EndpointVariable, localcloud.Main, func(answer string) string { return answer }},
		{dynamoDBLocal, dynamodblocal.EndpointVariable, dynamodblocal.Main, blurred},
	}
}

var (
	uncounted  = regexp.MustCompile(`(?m)(^done|^ 0 of 0,) [0-9.]+`)
	impossible = regexp.MustCompile(`^TransactionCanceledException .*ValidationError.*`)
	emptyPage  = regexp.MustCompile(`then \{.*\}\n 0 of 0,, then -`)
	number     = regexp.MustCompile(`#[-+0-9.eE]+`)
)

// blurred removes known errors of DynamoDB Local from a response. It reports 4 units for each transaction and none for
// an empty page. AWS reports 2 units for each written KB, and the minimum for an empty page. DynamoDB Local does not
// name the operation of a transaction that has an invalid update. It returns no empty page after a limit at the last
// possible sort key. It keeps trailing zeros and exponents of numbers.
func blurred(answer string) string {
	answer = uncounted.ReplaceAllString(answer, "$1")
	answer = impossible.ReplaceAllString(answer, "ValidationException")
	answer = emptyPage.ReplaceAllString(answer, "then -")

	return number.ReplaceAllStringFunc(answer, func(n string) string {
		if value, ok := new(big.Rat).SetString(n[1:]); ok {
			return value.RatString()
		}

		return n
	})
}
