package perduretest_test

import "testing"

// exampleT is the test that examples run in.
var exampleT *testing.T

func TestExampleNew(t *testing.T) { // alone: it sets exampleT
	exampleT = t
	ExampleNew()
}
