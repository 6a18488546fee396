// Package meter counts the AWS calls of a program: how often each kind is made, for which instance, what it carries, and what AWS bills for it.
//
// A Meter is added to the configuration of SDK clients, and sees each request that is sent, with its retries. What a table bills it takes from
// AWS's own answer (ReturnConsumedCapacity, which it asks for), and reckons it only for what AWS bills without saying so: writes whose condition
// failed. It is for measurements: it keeps an entry for each kind of call and each instance that it has seen.
package meter
