// Command reference synthesizes the reference stack, which has one task hub with the functions of a directory.
package main

import (
	"flag"
	"strings"

	"github.com/aws/jsii-runtime-go"

	"github.com/perdure/perdure/infra/cdk/reference"
)

func main() {
	functions := flag.String("functions", "dist",
		"directory with orchestrator/, worker/, renewer/ and api/, each with a bootstrap binary")
	queues := flag.String("work-queues", "default", "comma-separated names of the work queues")
	exclusive := flag.Bool("exclusive", false, "FIFO queues for exclusive keys")
	client := flag.Bool("client", false, "permissions for clients in activities")
	large := flag.Bool("large-payloads", false, "bucket for large payloads")
	streams := flag.Bool("stream-url", false, "function URL that streams events")
	table := flag.String("table", "", "name of an existing table, for example of a restored one")
	standalone := flag.Bool("standalone", false, "template for perdure deploy and for other tools than the CDK")
	out := flag.String("out", "", "directory of the cloud assembly, if the cdk command does not run the program")
	flag.Parse()

	defer jsii.Close()
	app := reference.NewApp(*out, reference.StackProps{
		FunctionsDir:  *functions,
		WorkQueues:    strings.Split(*queues, ","),
		Exclusive:     *exclusive,
		Client:        *client,
		LargePayloads: *large,
		StreamURL:     *streams,
		Table:         *table,
		Standalone:    *standalone,
	})
	app.Synth(nil)
}
