// Package orders fulfils orders of a shop for coffee makers: reserve the stock, charge the card, wait until somebody has packed
// the parcel, send it and follow it to the door. What cannot go on is undone.
//
// fulfil.go is the orchestration, a plain function that survives crashes between any two of its lines, and undoes with deferred calls of
// perdure.Compensate; shipping.go is another, which it calls. shop.go and carrier.go hold the activities: they talk to the warehouse,
// the card processor and the carrier, may fail, and may run twice, so each carries a key that makes a repeat harmless.
// orders.json has a day's orders.
package orders
