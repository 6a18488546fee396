// Command renewer handles due timers and runs the sweeper.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartRenewer() }
