package stack_test

import (
	"testing"

	"github.com/perdure/perdure/internal/replay/stack"
)

// A profile pads its columns with tabs, because the names of user functions are mostly shorter than the names of the
// engine below them.
func TestWhere_profileWithTabs_findsUserCode(t *testing.T) {
	t.Parallel()
	const profile = "1 @ 0x1 0x2 0x3\n# labels: {\"perdure_execution\":\"01J\"}\n" +
		"#\t0x84e6a4\ttime.Sleep+0x1a4\t\t\t\t\t\t\t\t\t/usr/local/go/src/runtime/time.go:363\n" +
		"#\t0xa3f1c7\tshop.Fulfil+0x27\t\t\t\t\t\t\t\t\t/home/ada/my shop/fulfil.go:44\n" +
		"#\t0xa2b9ac\tgithub.com/perdure/perdure.runOrchestration[...]+0x12c\t\t\t\t\t/src/orchestration.go:64\n" +
		"#\t0x9b2d48\tgithub.com/perdure/perdure/internal/replay.(*execution).begin.func1.1+0xc8\t/src/internal/replay/execution.go:55\n"
	if got, want := stack.Where(profile), "shop.Fulfil (my shop/fulfil.go:44)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// User code includes tests, examples and functions in this module. It excludes the packages of the engine and the code
// that they call.
func TestFrame_ownerByPackage(t *testing.T) {
	t.Parallel()
	dump := func(function, file string) string {
		return "goroutine 7 [running]:\n" + function + "(0xc000, 0x1)\n\t" + file + ":120 +0x1d\n"
	}
	for function, c := range map[string]struct{ file, want string }{
		"github.com/perdure/perdure/provider/dynamo.(*Provider).transact.func1": {"/src/provider/dynamo/commit.go", ""},
		"github.com/perdure/perdure/internal/simaws.(*Table).PutItem":           {"/src/internal/simaws/write.go", ""},
		"github.com/perdure/perdure/client.(*Client).Start":                     {"/src/client/start.go", ""},
		"github.com/perdure/perdure.CallActivity[...]":                          {"/src/call.go", ""},
		"github.com/perdure/perdure/codec.(*zstd).Encode":                       {"/src/codec/zstd.go", ""},
		"github.com/klauspost/compress/zstd.(*Encoder).EncodeAll":               {"/mod/zstd/encoder.go", ""},
		"github.com/aws/aws-sdk-go-v2/service/sqs.(*Client).SendMessage":        {"/mod/sqs/api_op.go", ""},
		"sync.(*Mutex).Lock": {"/go/src/sync/mutex.go", ""},
		"github.com/perdure/perdure/examples/orders.Fulfil": {
			"/src/examples/orders/fulfil.go", "orders.Fulfil (orders/fulfil.go:120)",
		},
		"github.com/perdure/perdure/perduretest_test.TestX.func1": {
			"/src/perduretest/hangs_test.go", "perduretest_test.TestX.func1 (perduretest/hangs_test.go:120)",
		},
		"github.com/perdure/perdure-shop.Fulfil": {"/src/fulfil.go", "perdure-shop.Fulfil (src/fulfil.go:120)"},
		"main.fulfil":                            {"/src/app/main.go", "main.fulfil (app/main.go:120)"},
	} {
		if got := stack.Where(dump(function, c.file)); got != c.want {
			t.Errorf("position of %s: got %q, want %q", function, got, c.want)
		}
	}
}
