// Package orders fulfils orders of a shop for coffee makers: reserve stock for each line in parallel, charge the card, ship.
//
// fulfil.go is the orchestration, a plain function that survives crashes between any two of its lines. shop.go holds the
// activities: they talk to the warehouse, the card processor and the carrier, may fail, and may run twice, so each carries a
// key that makes a repeat harmless. orders.json has a day's orders.
package orders
