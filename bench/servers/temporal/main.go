// Command temporal is Temporal's server as its development server runs it: all services in one process, SQLite in memory. It prints the
// address of its frontend and the namespace, and ends when its standard input does.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/temporaltest"
)

func main() {
	s := temporaltest.NewServer(
		temporaltest.WithBaseClientOptions(client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))}),
		temporaltest.WithBaseServerOptions(temporal.WithDynamicConfigClient(config())),
	)
	fmt.Println(s.GetFrontendHostPort(), s.GetDefaultNamespace())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Stop()
}

// config lifts the rate limits: by default 20 looks a second at the transfer queue of a shard cost a lone chain 100 ms an activity.
func config() dynamicconfig.StaticClient {
	set := func(v any) []dynamicconfig.ConstrainedValue { return []dynamicconfig.ConstrainedValue{{Value: v}} }
	c := dynamicconfig.StaticClient{dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): set(true)}
	for _, k := range []dynamicconfig.Key{
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key(), dynamicconfig.FrontendRPS.Key(), dynamicconfig.FrontendPersistenceMaxQPS.Key(),
		dynamicconfig.HistoryRPS.Key(), dynamicconfig.HistoryPersistenceMaxQPS.Key(),
		dynamicconfig.MatchingRPS.Key(), dynamicconfig.MatchingPersistenceMaxQPS.Key(),
		dynamicconfig.TransferProcessorMaxPollRPS.Key(), dynamicconfig.TimerProcessorMaxPollRPS.Key(), dynamicconfig.VisibilityProcessorMaxPollRPS.Key(),
	} {
		c[k] = set(100_000)
	}
	return c
}
