// Command renewer is the renewer of the end-to-end tests' application.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartRenewer() }
