// Command api is the HTTP API of the end-to-end tests' application.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartAPI() }
