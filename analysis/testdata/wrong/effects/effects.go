// Package effects has orchestrations with operations that differ at each replay.
package effects

import (
	"context"
	cryptorand "crypto/rand"
	"fmt"
	"log"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/far"
	"github.com/perdure/perdure/analysis/testdata/nearer"
	"github.com/perdure/perdure/client"
)

type order struct{ ID string }

func direct(ctx *perdure.OrchestrationContext, o order) (time.Time, error) {
	at := time.Now()                                         // want `^direct calls time\.Now: the clock returns a different time at each replay; use ctx\.Now\(\) \[clock\]$`
	time.Sleep(time.Second)                                  // want `direct calls time\.Sleep: .*perdure\.Sleep\(ctx, d\) \[clock\]`
	fmt.Println(time.Since(at), rand.IntN(3), ulid.Make())   // want `fmt\.Println.*\[io\]` `time\.Since.*ctx\.Now\(\)\.Sub.*\[clock\]` `rand\.IntN.*ctx\.Rand\(\) \[random\]` `ulid\.Make.*NewUUID.*\[random\]`
	fmt.Fprintln(os.Stderr, cryptorand.Text(), os.Args)      // want `uses os\.Stderr.*\[io\]` `rand\.Text.*\[random\]` `uses os\.Args.*\[environment\]`
	log.Printf("%s %d", os.Getenv("HOME"), runtime.NumCPU()) // want `log\.Printf.*ctx\.Logger\(\) \[log\]` `os\.Getenv.*\[environment\]` `NumCPU.*\[environment\]`
	slog.Info("hello")                                       // want `slog\.Info.*\[log\]`
	fmt.Fprint(os.Stdout, at.Local())                        // want `os\.Stdout.*\[io\]` `Time\.Local.*UTC \[environment\]`
	return at, nil
}

func waits(ctx *perdure.OrchestrationContext, o order) (int, error) {
	answers := make(chan int)
	go func() { answers <- 1 }() // want `waits starts a goroutine: .*perdure\.Go or perdure\.Async \[goroutine\]`
	n := <-answers               // want `receives from a channel.*\[channel\]`
	select {                     // want `waits selects: .*\[select\]`
	case n = <-answers:
	case answers <- n:
	}
	for range answers { // want `ranges over a channel.*\[channel\]`
		answers <- 2 // want `sends to a channel.*\[channel\]`
	}
	var mu sync.Mutex
	mu.Lock() // want `Mutex\.Lock.*\[sync\]`
	defer mu.Unlock()
	var wg sync.WaitGroup
	wg.Wait() // want `WaitGroup\.Wait.*\[sync\]`
	var count atomic.Int64
	count.Add(1)                           // want `Int64\.Add.*\[sync\]`
	time.AfterFunc(time.Second, func() {}) // want `time\.AfterFunc.*\[goroutine\]`
	return n, nil
}

func reaches(ctx *perdure.OrchestrationContext, c *client.Client) (string, error) {
	if _, err := http.Get("https://example.com"); err != nil { // want `reaches calls http\.Get: .*do it in an activity \[io\]`
		return "", err
	}
	file, err := os.ReadFile("prices.json") // want `os\.ReadFile.*\[io\]`
	if err != nil {
		return "", err
	}
	background := context.Background()                     // want `context\.Background.*\[context\]`
	if _, err := charge(background, order{}); err != nil { // want `passes a context\.Context to charge: .*\[context\]` `reaches calls charge \(effects/effects\.go:\d+\), which calls time\.Now: .*\[clock\]`
		return "", err
	}
	_, err = c.Start(background, "other", nil) // want `client\.Client\.Start.*\[io\]` `passes a context\.Context.*\[context\]`
	return string(file), err
}

// charge is an activity. It has findings only where an orchestration calls it.
func charge(_ context.Context, o order) (time.Time, error) { return time.Now(), nil }

func chains(ctx *perdure.OrchestrationContext, o order) (string, error) {
	o.ID = priceOf(o)                                  // want `^chains calls priceOf \(effects/effects\.go:\d+\), which calls roundUp \(effects/effects\.go:\d+\), which calls time\.Now: .*\[clock\]$`
	o.ID += far.Stamp()                                // want `^chains calls far\.Stamp \(far/far\.go:\d+\), which calls time\.Now: .*\[clock\]$`
	o.ID += nearer.Label(o.ID)                         // want `^chains calls nearer\.Label \(nearer/nearer\.go:7\), which calls far\.Stamp \(far/far\.go:\d+\), which calls time\.Now: .*\[clock\]$`
	_ = far.Dice(2)                                    // want `far\.Dice.*which calls rand\.IntN.*\[random\]`
	_, o.ID = far.Stamped(o.ID)                        // want `far\.Stamped.*, which calls Stamp .*time\.Now.*\[clock\]`
	_ = pick([]int{1})                                 // want `pick \(.*\), which calls rand\.IntN.*\[random\]`
	_ = far.Region                                     // want `^chains reads far\.Region \(far/far\.go:\d+\), whose value calls os\.Getenv: .*\[environment\]$`
	_ = far.Now()                                      // want `calls far\.Now \(far/far\.go:\d+\), which uses time\.Now: .*\[clock\]$`
	_ = started                                        // want `reads started \(.*\), whose value calls time\.Now.*\[clock\]`
	_ = far.Rate                                       // want `^warning: chains reads far\.Rate \(far/far\.go:\d+\), which is written at far/far\.go:\d+: .*\[globalread\]$`
	far.Spawn(func() {})                               // want `far\.Spawn \(.*\), which starts a goroutine.*\[goroutine\]`
	_ = shop{}.price(o)                                // want `shop\.price \(.*\), which calls time\.Now.*\[clock\]`
	_ = (&shop{}).open                                 // want `uses shop\.open \(.*\), which calls time\.Now.*\[clock\]`
	slices.SortFunc([]order{o}, func(a, b order) int { // a literal is part of the function around it
		return time.Now().Second() // want `chains calls time\.Now.*\[clock\]`
	})
	slices.SortFunc([]order{o}, byChance) // want `uses byChance \(.*\), which calls rand\.IntN.*\[random\]`
	now := time.Now                       // want `uses time\.Now.*\[clock\]`
	var c clocked = system{}
	_ = c.now()                                    // want `system\.now \(.*\), which calls time\.Now.*\[clock\]`
	_ = only(dice{}).draw()                        // want `dice\.draw \(.*\), which calls rand\.IntN.*\[random\]`
	return now().String() + clockOf(system{}), nil // the type of an interface parameter is unknown
}

var started = time.Now()

func priceOf(o order) string { return o.ID + roundUp() }

func roundUp() string { return time.Now().String() }

func pick[T any](all []T) T { return all[rand.IntN(len(all))] }

func byChance(a, b order) int { return rand.IntN(3) - 1 }

type shop struct{}

func (shop) price(order) int { return time.Now().Second() }

func (*shop) open() bool { return time.Now().Hour() > 8 }

type clocked interface{ now() time.Time }

type (
	system struct{}
	fixed  struct{}
)

func (system) now() time.Time { return time.Now() }
func (fixed) now() time.Time  { return time.Time{} }

func clockOf(c clocked) string { return c.now().String() }

// only has one implementation in this package.
type only interface{ draw() int }

type dice struct{}

func (dice) draw() int { return rand.IntN(6) }

// saga contains the context, so its methods are orchestration code.
type saga struct{ ctx *perdure.OrchestrationContext }

func (s *saga) step() time.Time { return time.Now() } // want `saga\.step calls time\.Now.*\[clock\]`

func register(r *perdure.Registry) {
	perdure.AddActivity(r, "charge", charge)
	perdure.AddOrchestration(r, "chains", chains)
	perdure.AddOrchestration(r, "literal", func(ctx *perdure.OrchestrationContext, _ struct{}) (int, error) {
		return rand.IntN(3), nil // want `the function in register calls rand\.IntN.*\[random\]`
	})
}

func scopes(ctx *perdure.OrchestrationContext, o order) (_ int, err error) {
	defer perdure.Compensate(ctx, &err, func(ctx *perdure.OrchestrationContext) error {
		return perdure.Sleep(ctx, time.Until(time.Time{})) // want `the function in scopes calls time\.Until.*\[clock\]`
	})
	done := perdure.Go(ctx, func(ctx *perdure.OrchestrationContext) {
		_ = priceOf(o) // want `the function in scopes calls priceOf .*roundUp.*time\.Now.*\[clock\]`
	})
	n, err := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (int, error) {
		return rand.IntN(3), nil // want `rand\.IntN.*\[random\]`
	}).Await(ctx)
	return n, perdure.WhenAll(ctx, done)
}
