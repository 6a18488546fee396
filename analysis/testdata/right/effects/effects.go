// Package effects has correct code that looks wrong in orchestrations.
package effects

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/analysis/testdata/far"
)

type order struct {
	ID  string
	Due time.Time
}

// Values that are compiled or created once are equal for all instances.
var (
	pattern  = regexp.MustCompile(`^\d+$`)
	names    = map[string]string{"a": "b"}
	charging = perdure.DefineActivity[order, string]("charge")
	table    = sync.OnceValue(func() map[string]int { return map[string]int{"a": 1} })
	limit    = 3
	logs     = os.Getenv("LOG_LEVEL")
	once     sync.Once
	prices   map[string]int
)

func init() { limit = 4 }

const newest = 2

func price(name string) int {
	once.Do(func() { prices = map[string]int{"a": 1} })
	return prices[name]
}

func right(ctx *perdure.OrchestrationContext, o order) (string, error) {
	seeded := mathrand.New(mathrand.NewPCG(1, 2))
	if o.Due.Before(ctx.Now()) || o.Due.Sub(ctx.Now()) > time.Hour || !pattern.MatchString(o.ID) {
		return names[o.ID], nil
	}
	region := perdure.SideEffect(ctx, func() string { return os.Getenv("REGION") + far.Region })
	id := perdure.SideEffect(ctx, rand.Text)
	if err := perdure.SetQueryHandler(ctx, "age", func(struct{}) (time.Duration, error) { return time.Since(ctx.Now()), nil }); err != nil {
		return "", err
	}
	if err := perdure.SetQueryHandler(ctx, "where", func(struct{}) (string, error) { return ctx.InstanceID() + os.Getenv("REGION"), nil }); err != nil {
		return "", err
	}
	if err := perdure.SetUpdateHandler(ctx, "due", func(own *perdure.OrchestrationContext, due time.Time) (string, error) {
		o.Due = due
		return perdure.CallActivity(own, charge, o).Await(own)
	}, perdure.WithValidator(func(due time.Time) error {
		if due.Before(time.Now()) || os.Getenv("CLOSED") != "" {
			return os.ErrInvalid
		}
		return nil
	})); err != nil {
		return "", err
	}
	ctx.Logger().Info("charging", "limit", limit, "table", table()["a"], "price", price("a"))
	deadline := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seeded.Int64N(9) + ctx.Rand().Int64N(9)))
	if cmp.Equal(o, order{}) || deadline.IsZero() || far.Ordered(1, 2) > 1 {
		return fmt.Sprintf("%s %s", region, id), os.ErrNotExist
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s", o.ID)
	if _, err := perdure.CallActivity(ctx, charge, o).Await(ctx); err != nil {
		return "", err
	}
	if perdure.Version(ctx, "with a rate", perdure.DefaultVersion, newest) == newest {
		perdure.Version(ctx, "of "+"old", 1, 1)
	}
	f := perdure.Async(ctx, func(ctx *perdure.OrchestrationContext) (string, error) { return ctx.NewUUID(), nil })
	return f.Await(ctx)
}

// charge is an activity, so it may have any effects.
func charge(ctx context.Context, o order) (string, error) {
	answers := make(chan string)
	go func() { answers <- time.Now().String() + logs }()
	select {
	case a := <-answers:
		return a, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// serve is not called by an orchestration.
func serve() {
	limit := time.Now()
	fmt.Println(limit)
}

func main2(r *perdure.Registry) {
	perdure.AddOrchestration(r, "right", right)
	perdure.AddActivity(r, "charge", charge)
	perdure.AddActivity(r, "now", func(context.Context, struct{}) (time.Time, error) { return time.Now(), nil })
	charging.Register(r, func(_ context.Context, o order) (string, error) { return os.Getenv(o.ID), nil })
	serve()
}

// clockwork is an interface that the context also implements.
type clockwork interface{ Now() time.Time }

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

func withClock(ctx *perdure.OrchestrationContext, o order) (bool, error) { return late(ctx, o), nil }

func late(c clockwork, o order) bool { return o.Due.Before(c.Now()) }

// shown intentionally writes the same line at each replay.
//
//perdure:ignore io,clock the output is for debugging only
func shown(ctx *perdure.OrchestrationContext, o order) (string, error) {
	fmt.Println(o, time.Now())
	return "", nil
}

func ignored(ctx *perdure.OrchestrationContext, o order) (time.Time, error) {
	println(stamp())
	//perdure:ignore clock the time is only logged
	at := time.Now()
	return at, nil
}

func stamp() string {
	return time.Now().String() //perdure:ignore clock it is shown, and decides nothing
}
