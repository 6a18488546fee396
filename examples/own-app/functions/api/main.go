// Command api serves the HTTP API of the hub.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartAPI() }
