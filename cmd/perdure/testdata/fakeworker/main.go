// Command fakeworker replaces a worker in tests. It prints its environment and executes the instructions in
// FAKE_WORKER.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	does := os.Getenv("FAKE_WORKER")
	reported := make(chan os.Signal, 1)
	if does == "" {
		signal.Notify(reported, syscall.SIGTERM)
	}
	_, onLambda := os.LookupEnv("AWS_LAMBDA_RUNTIME_API")
	_, elsewhere := os.LookupEnv("PERDURE_TABLE")
	_, api := os.LookupEnv("PERDURE_API")
	fmt.Printf("hub %s, queue %s, region %s, on Lambda %v, another hub's table %v\n",
		os.Getenv("PERDURE_HUB"), os.Getenv("PERDURE_QUEUE"), os.Getenv("AWS_REGION"), onLambda, elsewhere || api)
	fmt.Fprint(os.Stderr, "a complaint without an end")
	switch does {
	case "ends":
	case "fails":
		os.Exit(7)
	case "dies of the signal":
		time.Sleep(time.Hour)
	default:
		<-reported
		fmt.Println("stopped")
	}
}
