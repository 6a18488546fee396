// Package lambdahandler makes the function binaries of a registry. A user's four mains are a line each:
//
//	func main() { lambdahandler.StartOrchestrator(orders.Registry()) } // the inbox: turns
//	func main() { lambdahandler.StartWorker(orders.Registry()) }       // a work queue: activities
//	func main() { lambdahandler.StartRenewer(orders.Registry()) }      // timers, and the watch
//	func main() { lambdahandler.StartAPI() }                           // HTTP
//
// They are configured by the environment that the stack gives them (docs/internals/formats.md, "Environment"). A variable that is
// missing or malformed ends the function at init with an error that names it.
//
// The same binaries serve a hub from a container or a laptop. Where Lambda has not started them (AWS_LAMBDA_RUNTIME_API
// is not set) they poll their queue, and the API listens on PERDURE_LISTEN, until SIGINT or SIGTERM. There PERDURE_HUB
// and AWS credentials are enough: without PERDURE_TABLE the hub is found by its name. The API needs
// PERDURE_ALLOWED_HOSTS as well if PERDURE_LISTEN is not on loopback.
package lambdahandler
