// Command renewer is the renewer function of the application of the end-to-end tests.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartRenewer() }
