// Command renewer is the renewer of the faults' application.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartRenewer() }
