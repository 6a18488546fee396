// Command reference synthesises the reference stack: one task hub with the
// functions of this repository, or of any folder of the same shape.
package main

import (
	"flag"
	"strings"

	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk"
)

func main() {
	functions := flag.String("functions", "dist", "folder with orchestrator/, worker/, renewer/ and api/, each with a bootstrap")
	queues := flag.String("work-queues", "default", "names of the work queues, separated by commas")
	exclusive := flag.Bool("exclusive", false, "whether each work queue has the FIFO queue beside it that perdure.Exclusive needs")
	client := flag.Bool("client", false, "whether the activities of each work queue may hold a client of the hub")
	large := flag.Bool("large-payloads", false, "whether there is a bucket for payloads that are too large for histories")
	out := flag.String("out", "", "where the cloud assembly goes when not run by the cdk command")
	flag.Parse()

	defer jsii.Close()
	app := cdk.NewApp(*out, cdk.ReferenceStackProps{
		FunctionsDir:  *functions,
		WorkQueues:    strings.Split(*queues, ","),
		Exclusive:     *exclusive,
		Client:        *client,
		LargePayloads: *large,
	})
	app.Synth(nil)
}
