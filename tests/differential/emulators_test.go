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
	name      string
	variable  string                       // the environment variable with its endpoint
	main      func(tests func() int) int   // runs tests while the emulator runs
	normalize func(response string) string // removes known errors of the emulator from a response
}

// realCloud is the emulator of this run.
var realCloud emulator

func emulators() []emulator {
	return []emulator{
		{ministack, localcloud.EndpointVariable, localcloud.Main, func(response string) string { return response }},
		{dynamoDBLocal, dynamodblocal.EndpointVariable, dynamodblocal.Main, normalized},
	}
}

var (
	uncounted  = regexp.MustCompile(`(?m)(^done|^ 0 of 0,) [0-9.]+`)
	impossible = regexp.MustCompile(`^TransactionCanceledException .*ValidationError.*`)
	emptyPage  = regexp.MustCompile(`then \{.*\}\n 0 of 0,, then -`)
	number     = regexp.MustCompile(`#[-+0-9.eE]+`)
)

// normalized removes known errors of DynamoDB Local from a response. It reports 4 units for each transaction and none
// for an empty page. AWS reports 2 units for each written KB, and the minimum for an empty page. DynamoDB Local does
// not name the operation of a transaction that has an invalid update. It returns no empty page after a limit at the
// last possible sort key. It keeps trailing zeros and exponents of numbers.
func normalized(response string) string {
	response = uncounted.ReplaceAllString(response, "$1")
	response = impossible.ReplaceAllString(response, "ValidationException")
	response = emptyPage.ReplaceAllString(response, "then -")

	return number.ReplaceAllStringFunc(response, func(n string) string {
		if value, ok := new(big.Rat).SetString(n[1:]); ok {
			return value.RatString()
		}

		return n
	})
}
