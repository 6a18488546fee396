package perdure_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

type balance struct{ Cents int }

// Each account is an entity, so its operations run one at a time. The first operation creates the account.
func ExampleAddEntity() {
	r := perdure.NewRegistry()
	perdure.AddEntity(r, "account",
		perdure.Operation("deposit", func(_ *perdure.OrchestrationContext, b *balance, cents int) (int, error) {
			b.Cents += cents
			return b.Cents, nil
		}),
		perdure.Operation("withdraw", func(_ *perdure.OrchestrationContext, b *balance, cents int) (int, error) {
			if b.Cents -= cents; b.Cents < 0 {
				return 0, errors.New("insufficient funds") // the balance does not change
			}
			return b.Cents, nil
		}))
	perdure.AddOrchestration(r, "move", func(ctx *perdure.OrchestrationContext, cents int) (string, error) {
		_, err := perdure.CallEntity[int](ctx, "account", "ann", "withdraw", cents).Await(ctx)
		if e, failed := errors.AsType[*perdure.CallUpdateError](err); failed {
			return "not moved: " + e.Message, nil
		}
		_, err = perdure.CallEntity[int](ctx, "account", "bob", "deposit", cents).Await(ctx)
		return "moved", err
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	fmt.Println(string(must(c.CallEntity(ctx, "account", "ann", "deposit", 100))))
	for _, cents := range []int{70, 70} {
		id := must(c.Start(ctx, "move", cents, client.WithInstanceID(fmt.Sprint("move-", cents)),
			client.IfExists(client.Replace)))
		fmt.Println(must(client.Result[string](must(c.Wait(ctx, id)))))
	}
	fmt.Println(string(must(c.EntityState(ctx, "account", "ann"))), string(must(c.EntityState(ctx, "account", "bob"))))
	// Output:
	// 100
	// moved
	// not moved: insufficient funds
	// {"Cents":30} {"Cents":70}
}

// The first update for a commit starts the build. Later updates with the same ID return the result of the first one, so
// that each commit is built once.
func ExampleCallUpdate() {
	r := perdure.NewRegistry()
	perdure.AddOrchestration(r, "builds", func(ctx *perdure.OrchestrationContext, repository string) (string, error) {
		made := map[string]int{}
		err := perdure.SetUpdateHandler(ctx, "build",
			func(ctx *perdure.OrchestrationContext, commit string) (string, error) {
				made[commit]++
				return fmt.Sprintf("%s@%s, made %d time", repository, commit, made[commit]), nil
			})
		if err != nil {
			return "", err
		}
		return perdure.WaitForExternalEvent[string](ctx, "close").Await(ctx)
	})
	perdure.AddOrchestration(r, "release", func(ctx *perdure.OrchestrationContext, commit string) (string, error) {
		return perdure.CallUpdate[string](ctx, "builds/shop", "build", commit, perdure.WithUpdateID(commit),
			perdure.WithStart("builds", "shop")).Await(ctx)
	})

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	for i, commit := range []string{"a1", "a1", "b2"} {
		must(c.Start(ctx, "release", commit, client.WithInstanceID(fmt.Sprint("release-", i))))
	}
	for i := range 3 {
		fmt.Println(must(client.Result[string](must(c.Wait(ctx, fmt.Sprint("release-", i))))))
	}
	// Unordered output:
	// shop@a1, made 1 time
	// shop@a1, made 1 time
	// shop@b2, made 1 time
}
