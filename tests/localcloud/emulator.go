package localcloud

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

	"github.com/perdure/perdure/internal/dynamoknobs"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/provider/dynamo/dynamotest"
	"github.com/perdure/perdure/provider/providertest"
)

// Emulator creates hubs on the emulator at the address in EndpointVariable, for tests of the provider. See Main.
type Emulator struct {
	Tables *dynamodb.Client
	Queues *sqs.Client
	Bucket dynamo.BucketAPI

	hubs atomic.Int64
}

// NewEmulator returns the emulator of this run.
func NewEmulator() *Emulator {
	cfg := Config(os.Getenv(EndpointVariable))
	return &Emulator{Tables: dynamodb.NewFromConfig(cfg), Queues: sqs.NewFromConfig(cfg), Bucket: dynamo.NewBucket(cfg)}
}

// Harness returns a harness that runs the conformance suite. It skips tests that need virtual time, stale reads or
// strict locks, because no emulator has them.
func (e *Emulator) Harness() providertest.Harness {
	return providertest.Harness{
		Capabilities: []providertest.Capability{
			providertest.Faults, providertest.Corruption, providertest.Polling, providertest.LargePayloads,
		},
		Want: providertest.Report{Ran: 422, NotApplicable: []string{
			"heads/StaleReadIsNeverTorn", "heads/TurnOnStaleHeadIsAConflict",
			"heads/InstanceIsReadConsistently", "redispatch/UnwrittenStatusIsRefreshed",
			"executions/OutlivingOutputsAreSentAgainAcrossExecutions",
			"executions/OutlivingOutputsAreSentAgainSinceATime", "children/RepeatedResponseToParent",
			"cancelflags/StalePollMissesNothing", "cancelflags/ReadOfCancelRecordIsNeverStale",
			"activity records/RecordsAreReadConsistently",
			"deletion/OldOutputsAreNotSentAgain", "deletion/DamagedEndIsNotReportedAgain",
			"deletion/UnfinishedDeletionIsFound",
			"retention/InstanceWithoutRetentionIsNeverDue", "retention/EndedInstanceIsDueAfterRetention",
			"retention/PastExecutionsAreErasedOldestFirst",
			"workers/RepeatedReportKeepsStartTime", "retries/DistantAttemptUsesTimer",
			"retries/SettledActivitiesAreReadConsistently",
			"poison/ManyMovedRecords", "poison/UnstoredMovedRecordIsFoundAgain",
			"timers/LongTimerIsReceivedInTime", "timers/LaterTimersDoNotHideAwaitedTimer",
			"management/InstancesThatNeedAttentionAreCounted",
			"large payloads/ReferencedPastExecutionIsKept",
			"large payloads/SweepDeletesUnreferencedPayloads",
			"errors/CallEndsWithItsContext",
			"locking/ReceiveEndsAfterItsWait", "lock expiry/RenewalAfterExpiryDoesNotAffectNextHolder",
			"lock expiry/DeletionAfterExpiryDoesNotAffectNextHolder", "lock expiry/LocksEndAfterTwelveHours",
		}},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			test(t, e.Hub(t, c))
		},
	}
}

// Hub creates a hub with its own table and queues, whose names no test or earlier run has used.
func (e *Emulator) Hub(t *testing.T, c providertest.Config) providertest.Hub {
	t.Helper()
	name := fmt.Sprintf("conformance-%x-%d", time.Now().UnixNano(), e.hubs.Add(1))
	CreateTable(t, e.Tables, TableInput(name))
	if err := e.Bucket.PutObject(t.Context(), name, "", nil); err != nil { // a PUT without a key creates a bucket
		t.Fatal(err)
	}
	return dynamotest.Cloud{
		Options: []dynamo.Option{dynamoknobs.WithRollup(1)}, // the suite has no long histories
		Table:   e.Tables, Queues: e.Queues, Bucket: e.Bucket, BucketName: name,
		CreateQueue: func(queue string, visibility time.Duration) string {
			return e.createQueue(t, name+"-"+queue, visibility)
		},
	}.Hub(t, name, c)
}

func (e *Emulator) createQueue(t *testing.T, name string, visibility time.Duration) string {
	t.Helper()
	attributes := map[string]string{"VisibilityTimeout": strconv.Itoa(int(visibility.Seconds()))}
	if strings.HasSuffix(name, ".fifo") {
		attributes["FifoQueue"], attributes["ContentBasedDeduplication"] = "true", "false"
	}
	out, err := e.Queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}
