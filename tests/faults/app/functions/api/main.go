// Command api is the API function of the application of the fault tests.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartAPI() }
