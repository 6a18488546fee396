package perdure_test

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

var mailbox = make(chan string, 1)

func sendMail(_ context.Context, text string) (struct{}, error) {
	mailbox <- text
	return struct{}{}, nil
}

// welcome can run for weeks.
func welcome(ctx *perdure.OrchestrationContext, name string) (struct{}, error) {
	return perdure.CallActivity(ctx, sendMail, "welcome, "+name).Await(ctx)
}

// signUp starts a detached orchestration and does not wait for it.
func signUp(ctx *perdure.OrchestrationContext, name string) (string, error) {
	return perdure.StartOrchestration(ctx, "welcome", name, perdure.WithInstanceID("welcome/"+name))
}

func ExampleStartOrchestration() {
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "send-mail", sendMail)
	perdure.AddOrchestration(r, "welcome", welcome)
	perdure.AddOrchestration(r, "sign-up", signUp)

	ctx := context.Background()
	c, stop := serve(r)
	defer stop()
	id := must(c.Start(ctx, "sign-up", "Ada"))
	fmt.Println("started", must(client.Result[string](must(c.Wait(ctx, id)))))
	fmt.Println(<-mailbox)
	// Output:
	// started welcome/Ada
	// welcome, Ada
}
