// Package pricing has what AWS charges, by a list that lies beside it with its date and its sources. It calls nothing.
package pricing

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Item is something that AWS bills, as the list names it.
type Item string

// The items.
const (
	WriteUnits          Item = "dynamodb.write"
	ReadUnits           Item = "dynamodb.read"
	StandardRequests    Item = "sqs.standard"
	FIFORequests        Item = "sqs.fifo"
	Invocations         Item = "lambda.requests"
	GBSeconds           Item = "lambda.gbSeconds"
	ScheduleInvocations Item = "scheduler.invocations"
	HTTPRequests        Item = "http.requests"
	ObjectWrites        Item = "s3.write"
	ObjectReads         Item = "s3.read"
	LogBytes            Item = "logs.bytes"
)

// Price is what an item costs.
type Price struct {
	Dollars float64 `json:"dollars"` // for so many
	Per     float64 `json:"per"`
	What    string  `json:"what"`
	Source  string  `json:"source"`
}

// List is the prices of a region on a day.
type List struct {
	Region string         `json:"region"`
	AsOf   string         `json:"asOf"`
	Note   string         `json:"note"`
	Prices map[Item]Price `json:"prices"`
}

//go:embed us-east-1.json
var usEast1 []byte

// current is read when it is wanted: most functions that have a client never want it.
var current = sync.OnceValue(func() *List {
	l := read(usEast1)
	return &l
})

// Current is the list that is in this build.
func Current() *List { return current() }

func read(file []byte) (l List) {
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		panic(fmt.Sprintf("pricing: the list cannot be read: %v", err)) // a test reads it
	}
	return l
}

// Known reports whether the list has an item.
func (l *List) Known(i Item) bool {
	_, ok := l.Prices[i]
	return ok
}

// Of is what so many of an item cost, in dollars; nothing where the list does not have it.
func (l *List) Of(i Item, quantity float64) float64 {
	p, ok := l.Prices[i]
	if !ok {
		return 0
	}
	return quantity * p.Dollars / p.Per
}

// Usage is how much was used of each item.
type Usage map[Item]float64

// Add adds another usage, so many times.
func (u Usage) Add(other Usage, times float64) {
	for i, n := range other {
		u[i] += n * times
	}
}

// Items are the items that were used, in order.
func (u Usage) Items() []Item { return slices.Sorted(maps.Keys(u)) }

// Dollars is what a usage costs by the list.
func (u Usage) Dollars(l *List) (sum float64) {
	for _, i := range u.Items() { // in order, so that the sum of the same is the same
		sum += l.Of(i, u[i])
	}
	return sum
}
