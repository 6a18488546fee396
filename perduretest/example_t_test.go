package perduretest_test

import "testing"

// exampleT is the test that examples run in.
var exampleT *testing.T

// The test sets exampleT, so it must not run in parallel.
func TestExamples_eachExample_passes(t *testing.T) { //nolint:paralleltest // it sets exampleT
	for name, example := range map[string]func(){
		"New": ExampleNew, "Env_Stub": ExampleEnv_Stub, "Env_Deploy": ExampleEnv_Deploy,
		"CrashAtEveryCall": ExampleCrashAtEveryCall, "Tables": ExampleTableClient,
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			exampleT = t
			example()
		})
	}
}
