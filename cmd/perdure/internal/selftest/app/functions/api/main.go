// Command api is the API function of the self-test.
package main

import "github.com/perdure/perdure/lambdahandler"

func main() { lambdahandler.StartAPI() }
