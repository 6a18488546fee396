// Package meter counts the AWS calls of a program by kind and by instance, with the bytes that they transfer and the
// units that AWS bills.
//
// Add a Meter to the configuration of SDK clients. It observes each request that they send, including retries. DynamoDB
// reports the consumed capacity, which the meter requests with ReturnConsumedCapacity. The meter calculates the
// capacity of writes whose condition failed, because AWS bills them without reporting it. A Meter is for measurements:
// it keeps an entry for each kind of call and each instance.
package meter
