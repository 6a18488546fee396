package memhub_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/memhub"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/providertest"
)

// TestConformance runs the mandatory tests of the suite, and the tests of the optional interfaces that the fake
// implements.
func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Harness{
		Capabilities: []providertest.Capability{providertest.VirtualTime},
		Lacks:        []provider.Capability{provider.CapabilityDeadLetterRecovery, provider.CapabilityRetention},
		Want:         providertest.Report{Ran: ran, NotApplicable: notApplicable},
		Open: func(t *testing.T, c providertest.Config, test func(*testing.T, providertest.Hub)) {
			t.Helper()
			var passed atomic.Int64 // nanoseconds
			began := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
			now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
			p := memhub.New(now, c.Visibility)
			test(t, providertest.Hub{
				Provider: p, Receive: p.Receive, ReceiveDead: p.ReceiveDead, Now: now,
				Advance: func(d time.Duration) { passed.Add(int64(d)) },
			})
		},
	})
}

// ran is the number of tests that run.
const ran = 328

// notApplicable lists tests that need faults, corruption, stale reads, polling or large payloads.
var notApplicable = []string{
	"atomicity/LostResponseIsSuccess", "atomicity/LostResponseOfLargeTurnIsSuccess",
	"atomicity/RejectedCommitWritesNothing", "atomicity/UnsentOutputsAreFoundInTheSegment",
	"creation/LostResponseOfStartIsTheSameStart", "creation/RejectedStartWritesNothing",
	"heads/StaleReadIsNeverTorn", "heads/TurnOnStaleHeadIsAConflict",
	"heads/InstanceIsReadConsistently", "redispatch/UnwrittenStatusIsWritten",
	"redispatch/UnwrittenStatusIsRefreshed", "redispatch/FinalStatusIsNotRefreshed",
	"redispatch/UnwrittenFinalStatusIsWritten", "redispatch/UnsentOutputsAreSentAndFinalStatusIsWritten",
	"executions/LostResponseIsSuccess", "executions/RejectedCommitWritesNothing",
	"executions/UnsentStartIsFoundAcrossExecutions", "references/DamageDoesNotAffectOthers",
	"children/ParentReceivesOutcomeBeforeStatus", "children/LostResponseOfStartMessageIsTheSameInstance",
	"blocked/UnwrittenBlockIsWritten", "cancelflags/ReceiveReadsCancelRecordOncePerExecution",
	"cancelflags/ReceiveReportsFailedReadOfCancelRecord", "cancelflags/RejectedCommitWritesNoCancelFlag",
	"cancelflags/LostResponseIsSuccess", "cancelflags/StalePollMissesNothing",
	"cancelflags/ReadOfCancelRecordIsNeverStale", "cancelflags/RenewalReturnsCancelFlag",
	"cancelflags/RenewalNeedsOnlyTokenAndLock", "cancelflags/RenewalExtendsLockOfCancelledActivity",
	"cancelflags/RenewalWithoutReadExtendsLock", "cancelflags/CancelDoesNotTouchAttempts",
	"cancelflags/EndOfDamagedHistoryCancelsOpenWork", "cancelflags/UnreachableRecordIsAnError",
	"activity records/RecordsAreReadConsistently", "activity records/RejectedRecordsAreAnError",
	"activity records/UnreachableRecordIsAnError", "deletion/LateStatusDoesNotRestoreInstance",
	"deletion/ParentReceivesOriginalOutcome", "deletion/OutlivingOutputsAreSent",
	"deletion/OutputsOfEarlierExecutionAreSent", "deletion/DamagedInstanceIsDeleted",
	"deletion/EndedDamagedInstanceIsNotEndedAgain", "deletion/DamagedEndIsNotReportedAgain",
	"deletion/ConsumedMessagesOfDamagedInstanceAreKnown", "deletion/DeletionContinuesWhereItStopped",
	"deletion/LostResponseIsSuccess",
	"deletion/IDIsInUseDuringDeletion", "deletion/OwnStartReceivesOneResponse",
	"deletion/CancelDuringDeletionReceivesResponse", "deletion/UnfinishedDeletionIsFound",
	"jobs/RepeatedWriteIsSuccess",
	"workitems/UnacknowledgedRecordIsNotDeleted", "workitems/FailedSendDeletesNoRecords",
	"workitems/FailedDeleteStillSendsOutcome", "retries/UnsentAttemptIsSentByRepeatedFailure",
	"retries/SettledActivitiesAreReadConsistently", "poison/MarkerWithLostResponseIsWrittenOnce",
	"poison/BatchMarkerWithLostResponseIsWrittenOnce", "poison/RejectedMarkersAreErrors",
	"management/InstancesThatNeedAttentionAreCounted", "large payloads/StoredPayloadIsReadAndListed",
	"large payloads/DeletedPayloadIsNotFound", "large payloads/CopyIsIndependent",
	"large payloads/PageHasAThousandPayloads",
	"large payloads/DeletionDeletesPayloads", "large payloads/ReferencedPastExecutionIsKept",
	"large payloads/SweepDeletesUnreferencedPayloads", "corruption/UndecodableTurn",
	"corruption/UndecodableLastTurn", "corruption/UndecodableStart", "corruption/TurnOfLaterRelease",
	"corruption/LastTurnOfLaterRelease", "corruption/MissingPart", "corruption/MissingFirstPart",
	"corruption/MissingTurn", "corruption/MissingStart", "corruption/EndInDamagedTurn",
	"corruption/OtherInstancesAreNotAffected", "corruption/DamagedExecutionCanBeEnded",
	"corruption/DamagedInstanceCanBeTerminated", "corruption/TerminatedDamagedChildReportsToParent",
	"errors/ThrottledCallIsRetried", "errors/RejectedCallNamesItsOperation",
	"errors/EndlesslyThrottledCallIsRetryable", "errors/ErrorsNameTheInstance", "errors/CallEndsWithItsContext",
	"locking/ReceivedRecordsAreLocked", "locking/InstanceHasOneHolder", "locking/OtherInstancesAreNotAffected",
	"locking/EveryReceiveHasNewTokens", "locking/UnknownTokenIsRejected",
	"locking/AcknowledgeDeletesOnlyReceivedRecords", "locking/ConcurrentReceiversGetARecordOnce",
	"locking/ConcurrentReceiversKeepOrderOfInstance", "locking/ReceiveEndsAfterItsWait",
	"locking/ReceiveEndsWithItsContext", "locking/WrongArgumentsAreNamed", "locking/FailedReceiveNamesItsOperation",
	"locking/FailedRenewalLosesNothing", "lock expiry/ExpiredRecordIsReceivedAgain",
	"lock expiry/AbandonedRecordIsReceivedAtOnce", "lock expiry/AbandonedRecordIsReceivedAfterItsDelay",
	"lock expiry/RenewalExtendsLock", "lock expiry/MoreRenewalsThanABatchHolds",
	"lock expiry/RenewalAfterExpiryFails", "lock expiry/LostRecordDoesNotAffectOthers",
	"lock expiry/RenewalAfterAcknowledgeFails", "lock expiry/TurnDoesNotCommitAfterLockExpires",
	"lock expiry/TurnCommitsUnderRenewedLock", "lock expiry/OutcomeIsNotSentAfterLockExpires",
	"lock expiry/AbandonAfterExpiryDoesNotAffectNextHolder",
	"lock expiry/RenewalAfterExpiryDoesNotAffectNextHolder",
	"lock expiry/DeletionAfterExpiryDoesNotAffectNextHolder", "lock expiry/LocksEndAfterTwelveHours",
}
