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

// TestConformance runs all tests of the suite, except those that need virtual time or stale reads.
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

// ran is the number of tests that run.
const ran = 419

// notApplicable lists tests of features that DynamoDB Local or real time does not have.
var notApplicable = []string{
	"heads/StaleReadIsNeverTorn", "heads/TurnOnStaleHeadIsAConflict",
	"heads/InstanceIsReadConsistently", "redispatch/UnwrittenStatusIsRefreshed",
	"executions/OutlivingOutputsAreSentAgainAcrossExecutions", "executions/OutlivingOutputsAreSentAgainSinceATime",
	"children/RepeatedResponseToParent", "cancelflags/StalePollMissesNothing",
	"cancelflags/ReadOfCancelRecordIsNeverStale",
	"activity records/RecordsAreReadConsistently",
	"deletion/OldOutputsAreNotSentAgain", "deletion/DamagedEndIsNotReportedAgain", "deletion/UnfinishedDeletionIsFound",
	"retention/InstanceWithoutRetentionIsNeverDue", "retention/EndedInstanceIsDueAfterRetention",
	"retention/PastExecutionsAreErasedOldestFirst",
	"workers/RepeatedReportKeepsStartTime", "retries/DistantAttemptUsesTimer",
	"retries/SettledActivitiesAreReadConsistently",
	"poison/ManyMovedRecords", "poison/UnstoredMovedRecordIsFoundAgain",
	"timers/LongTimerIsReceivedInTime", "timers/LaterTimersDoNotHideAwaitedTimer",
	"management/InstancesThatNeedAttentionAreCounted",
	"large payloads/StoredPayloadIsReadAndListed", "large payloads/DeletedPayloadIsNotFound",
	"large payloads/CopyIsIndependent", "large payloads/PageHasAThousandPayloads",
	"large payloads/DeletionDeletesPayloads", "large payloads/ReferencedPastExecutionIsKept",
	"large payloads/SweepDeletesUnreferencedPayloads",
	"errors/CallEndsWithItsContext", "locking/ReceiveEndsAfterItsWait",
	"lock expiry/LocksEndAfterTwelveHours",
}

type emulator struct {
	tables *dynamodb.Client
	hubs   atomic.Int64
}

// hub creates a table with a name that no test or earlier run has used, and queues in memory.
func (e *emulator) hub(t *testing.T, c providertest.Config) providertest.Hub {
	t.Helper()
	name := fmt.Sprintf("conformance-%x-%d", time.Now().UnixNano(), e.hubs.Add(1))
	localcloud.CreateTable(t, e.tables, localcloud.TableInput(name))
	queues := simaws.New().Queues
	return dynamotest.Cloud{
		Options: []dynamo.Option{dynamoknobs.WithRollup(1)}, // the suite has no long histories
		Table:   e.tables, Queues: queues,
		CreateQueue: func(queue string, visibility time.Duration) string {
			return queues.Create(queue, simaws.QueueConfig{VisibilityTimeout: visibility, PerGroupDeduplication: true})
		},
	}.Hub(t, name, c)
}
