// Command api is the function that serves the HTTP API of a task hub.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartAPI() }
