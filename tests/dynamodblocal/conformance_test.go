package dynamodblocal_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/dynamotest"
	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/dynamodblocal"
	"github.com/perdure/perdure/tests/localcloud"
)

func TestMain(m *testing.M) { os.Exit(dynamodblocal.Main(m.Run)) }

// TestConformance runs all of the suite but what needs virtual time or stale reads.
func TestConformance(t *testing.T) {
	t.Parallel()
	e := &emulator{tables: dynamodb.NewFromConfig(localcloud.Config(os.Getenv(dynamodblocal.EndpointVariable)))}
	providertest.Run(t, providertest.Harness{
		Capabilities: []providertest.Capability{
			providertest.Faults, providertest.Corruption, providertest.Polling, providertest.StrictLocks,
		},
		Want: providertest.Report{Ran: ran, NotApplicable: notApplicable},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			test(t, e.hub(t, c))
		},
	})
}

// ran is how many of the suite's tests do.
const ran = 417

// notApplicable are the tests of what neither DynamoDB Local nor real time has.
var notApplicable = []string{
	"heads/AnEventualReadMayBeBehindAndIsNeverTorn", "heads/ATurnOnAStaleHeadIsAConflict",
	"heads/AnInstanceIsReadStronglyConsistent", "redispatch/AStatusThatWasNotWrittenIsRefreshed",
	"executions/WhatOutlivesAnExecutionIsSentAgainAcross", "executions/WhatOutlivesAnExecutionIsSentAgainSinceATime",
	"children/TheParentIsToldAgain", "cancelflags/APollThatIsBehindPassesOverNothing",
	"cancelflags/AReadOfTheRecordIsNeverBehind",
	"activity records/RecordsAreReadStrongly",
	"deletion/WhatWasSentLongAgoIsNotSentAgain", "deletion/ADamagedEndIsNotSaidAnew", "deletion/OneThatStaysIsFound",
	"retention/WhatHasNoneIsNeverDue", "retention/AnEndIsDueWhenItsRetentionIsOver",
	"retention/PastExecutionsAreErasedOldestFirst",
	"workers/WhoIsAtWorkHasNotStartedAgain", "retries/AnAttemptThatIsFarAwayIsATimer", "retries/SettledIsReadStrongly",
	"poison/ManyMovedRecords", "poison/OneThatIsNotKeptIsFoundAgain",
	"timers/ALongOneIsSeenAgainInTime", "timers/OfTwoHeldLaterTheOneThatIsWaitedForIsSeen",
	"management/WhatNeedsAttentionIsCounted",
	"large payloads/WhatIsStoredIsReadAndListed", "large payloads/WhatIsDeletedIsGone",
	"large payloads/ACopyIsOnItsOwn", "large payloads/APageHasAThousand",
	"large payloads/ADeletionTakesThem", "large payloads/APastExecutionStaysWhileItsPayloadsAreReferredTo",
	"large payloads/ASweepTakesWhatNobodyRefersTo",
	"errors/ACallEndsWithItsContext", "locking/AFetchIsOverWhenItsWaitIs",
	"lock expiry/LocksEndAfterTwelveHours",
}

type emulator struct {
	tables *dynamodb.Client
	hubs   atomic.Int64
}

// hub makes a table that no other test has, also of an earlier run, and queues in memory.
func (e *emulator) hub(t *testing.T, c providertest.Config) providertest.Hub {
	t.Helper()
	name := fmt.Sprintf("conformance-%x-%d", time.Now().UnixNano(), e.hubs.Add(1))
	localcloud.CreateTable(t, e.tables, name)
	queues := simaws.New().Queues
	return dynamotest.Cloud{
		Options: []dynamo.Option{dynamoknobs.WithRollup(1)}, // of long histories there are none in the suite
		Table:   e.tables, Queues: queues,
		CreateQueue: func(queue string, visibility time.Duration) string {
			return queues.Create(queue, simaws.QueueConfig{VisibilityTimeout: visibility, PerGroupDeduplication: true})
		},
	}.Hub(t, name, c)
}
