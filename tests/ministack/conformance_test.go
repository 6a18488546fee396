package ministack_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/perdure/perdure/provider/dynamo/dynamotest"
	"github.com/perdure/perdure/provider/providertest"
	"github.com/perdure/perdure/tests/localcloud"
)

func TestMain(m *testing.M) { os.Exit(localcloud.Main(m.Run)) }

// TestConformance runs all of the suite but what needs virtual time, stale reads or strict locks, which no emulator has.
func TestConformance(t *testing.T) {
	cfg := localcloud.Config(os.Getenv(localcloud.EndpointVariable))
	e := &emulator{tables: dynamodb.NewFromConfig(cfg), queues: sqs.NewFromConfig(cfg)}
	providertest.Run(t, providertest.Harness{
		Capabilities: []providertest.Capability{providertest.Faults, providertest.Corruption, providertest.Polling},
		Want: providertest.Report{Ran: 342, NotApplicable: []string{
			"heads/AnEventualReadMayBeBehindAndIsNeverTorn", "heads/ATurnOnAStaleHeadIsAConflict",
			"heads/AnInstanceIsReadStronglyConsistent", "redispatch/AStatusThatWasNotWrittenIsRefreshed",
			"executions/WhatOutlivesAnExecutionIsSentAgainAcross", "children/TheParentIsToldAgain", "cancelflags/AReadOfTheRecordIsNeverBehind",
			"activity records/RecordsAreReadStrongly",
			"deletion/WhatWasSentLongAgoIsNotSentAgain", "deletion/ADamagedEndIsNotSaidAnew", "deletion/OneThatStaysIsFound",
			"retention/WhatHasNoneIsNeverDue", "retention/AnEndIsDueWhenItsRetentionIsOver", "retention/PastExecutionsAreErasedOldestFirst",
			"workers/WhoIsAtWorkHasNotStartedAgain", "retries/AnAttemptThatIsFarAwayIsATimer", "retries/SettledIsReadStrongly",
			"poison/ManyMovedRecords", "poison/OneThatIsNotKeptIsFoundAgain",
			"timers/ALongOneIsSeenAgainInTime", "timers/OfTwoHeldLaterTheOneThatIsWaitedForIsSeen", "errors/ACallEndsWithItsContext",
			"locking/AFetchIsOverWhenItsWaitIs", "lock expiry/ARenewalAfterExpiryLeavesTheNextHolderAlone",
			"lock expiry/ADeletionAfterExpiryLeavesTheNextHolderAlone", "lock expiry/LocksEndAfterTwelveHours",
		}},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			test(t, e.hub(t, c))
		},
	})
}

type emulator struct {
	tables *dynamodb.Client
	queues *sqs.Client
	hubs   atomic.Int64
}

// hub makes a table and queues that no other test has, also of an earlier run.
func (e *emulator) hub(t *testing.T, c providertest.Config) providertest.Hub {
	t.Helper()
	name := fmt.Sprintf("conformance-%x-%d", time.Now().UnixNano(), e.hubs.Add(1))
	localcloud.CreateTable(t, e.tables, name)
	return dynamotest.Cloud{
		Table: e.tables, Queues: e.queues,
		CreateQueue: func(queue string, visibility time.Duration) string {
			return e.createQueue(t, name+"-"+queue, visibility)
		},
	}.Hub(t, name, c)
}

func (e *emulator) createQueue(t *testing.T, name string, visibility time.Duration) string {
	t.Helper()
	attributes := map[string]string{"VisibilityTimeout": strconv.Itoa(int(visibility.Seconds()))}
	if strings.HasSuffix(name, ".fifo") {
		attributes["FifoQueue"], attributes["ContentBasedDeduplication"] = "true", "false"
	}
	out, err := e.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}
