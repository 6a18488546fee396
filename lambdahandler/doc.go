// Package lambdahandler runs the functions of a hub on AWS Lambda, or in processes that poll. Each of the four
// functions has a main function of one line:
//
//	func main() { lambdahandler.StartOrchestrator(orders.Registry()) } // inbox: turns
//	func main() { lambdahandler.StartWorker(orders.Registry()) }       // work queue: activities
//	func main() { lambdahandler.StartRenewer() }                       // timers and the sweeper
//	func main() { lambdahandler.StartAPI() }                           // HTTP API
//
// Environment variables configure the functions. The CDK stack sets these variables. See
// docs/reference/configuration.md. If a variable is missing or invalid, the process exits with an error that names the
// variable.
//
// The same binaries also run in a container or on a laptop. If AWS_LAMBDA_RUNTIME_API is not set, they poll their
// queue, and the API listens on PERDURE_LISTEN, until SIGINT or SIGTERM. They then need only PERDURE_HUB and AWS
// credentials, because without PERDURE_TABLE they find the hub by its name. The API also needs PERDURE_ALLOWED_HOSTS if
// PERDURE_LISTEN is not on loopback. See docs/guides/polling-workers.md.
package lambdahandler
