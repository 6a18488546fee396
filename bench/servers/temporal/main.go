// Command temporal is a Temporal server like the development server: all services in one process, with SQLite in
// memory. It prints the address of its frontend and the namespace. It ends when its standard input is closed.
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
		temporaltest.WithBaseClientOptions(client.Options{
			Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		}),
		temporaltest.WithBaseServerOptions(temporal.WithDynamicConfigClient(config())),
	)
	fmt.Println(s.GetFrontendHostPort(), s.GetDefaultNamespace())
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Stop()
}

// config raises the rate limits. The default of 20 polls a second of a shard's transfer queue adds 100 ms to each
// activity of a chain.
func config() dynamicconfig.StaticClient {
	set := func(v any) []dynamicconfig.ConstrainedValue { return []dynamicconfig.ConstrainedValue{{Value: v}} }
	c := dynamicconfig.StaticClient{dynamicconfig.ForceSearchAttributesCacheRefreshOnRead.Key(): set(true)}
	for _, k := range []dynamicconfig.Key{
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key(), dynamicconfig.FrontendRPS.Key(),
		dynamicconfig.FrontendPersistenceMaxQPS.Key(),
		dynamicconfig.HistoryRPS.Key(), dynamicconfig.HistoryPersistenceMaxQPS.Key(),
		dynamicconfig.MatchingRPS.Key(), dynamicconfig.MatchingPersistenceMaxQPS.Key(),
		dynamicconfig.TransferProcessorMaxPollRPS.Key(), dynamicconfig.TimerProcessorMaxPollRPS.Key(),
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(),
	} {
		c[k] = set(100_000)
	}
	return c
}
