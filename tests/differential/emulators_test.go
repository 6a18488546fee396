package differential_test

import (
	"math/big"
	"regexp"

	"github.com/perdure/perdure/tests/dynamodblocal"
	"github.com/perdure/perdure/tests/localcloud"
)

// The emulators that simaws is held against.
const (
	ministack     = "ministack"
	dynamoDBLocal = "dynamodb-local"
)

// emulator is one of them.
type emulator struct {
	name     string
	variable string                     // has its endpoint
	main     func(tests func() int) int // runs tests while it is there
	blur     func(answer string) string // takes out of a table's answers what it always gets wrong
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

// blurred takes out what DynamoDB Local gets wrong. A transaction costs 4 units whatever is in it, and a page of
// nothing costs none: AWS charges 2 for each KB written, and the least read that there is. A transaction with an update
// that cannot be computed is refused without saying which it was. A page whose limit ends it at the last sort key there
// can be has no empty one after it, as a limit has elsewhere. Numbers keep trailing zeros and exponents.
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
