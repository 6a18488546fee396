// Package orders processes the orders of a coffee equipment shop. It reserves the stock, charges the card, waits until
// the warehouse has packed the parcel, ships the parcel and tracks it until delivery. If a step fails, it undoes the
// completed steps.
//
//   - FulfilOrder is the orchestration. It survives a crash at any point and undoes completed steps with deferred calls
//     of perdure.Compensate.
//   - ShipOrder is its sub-orchestration.
//   - Shop has the activities, which call the warehouse, the card processor and the carrier. An activity can fail and
//     can run twice, so each request has an idempotency key.
//   - orders.json has example orders.
package orders
