// Command renewer is the renewer function of the self-test.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartRenewer() }
